package intent_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
)

func secret(t testing.TB, b []byte) ledger.Secret {
	t.Helper()
	s, err := ledger.NewSecret(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var testSecret = []byte("test-secret-not-for-production")

// action is what Read and Action make of a whole intent.
func action(t testing.TB, actionType, tenant string, op object) intent.Action {
	t.Helper()
	r, err := intent.Read(intent.Strict, intent.Carried{Meta: meta(op)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Action(actionType, tenant, []string{"the subject of a whole intent doesn't count"})
}

// workflowAction is what they make of a scope.
func workflowAction(t testing.TB, actionType, tenant, workflowID string, subject []string) intent.Action {
	t.Helper()
	r, err := intent.Read(intent.Workflow, intent.Carried{Process: intent.Scope{WorkflowID: workflowID}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Action(actionType, tenant, subject)
}

// The vectors were made by Python's json, hmac and hashlib.
func TestKeyVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../testdata/idempotency_keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name      string
		SecretHex string `json:"secret_hex"`
		Action    map[string]any
		Canonical string
		Key       string
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 13 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			b, err := hex.DecodeString(v.SecretHex)
			if err != nil {
				t.Fatal(err)
			}
			s := secret(t, b)
			m := v.Action
			actionType, _ := m["action_type"].(string)
			tenant, _ := m["tenant"].(string)
			delete(m, "action_type")
			delete(m, "tenant")
			var a intent.Action
			var revision int
			if m["identity"] == "workflow" {
				var subject []string
				for _, e := range m["subject"].([]any) {
					subject = append(subject, e.(string))
				}
				a = workflowAction(t, actionType, tenant, m["workflow_id"].(string), subject)
				revision = int(m["revision"].(float64))
			} else {
				a = action(t, actionType, tenant, m)
				revision = a.Revision
			}
			if diff := cmp.Diff(v.Canonical, string(a.Canonical(revision))); diff != "" {
				t.Errorf("canonical (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(v.Key, a.KeyAt(s, revision).String()); diff != "" {
				t.Errorf("key (-want +got):\n%s", diff)
			}
			if a.Revision == revision && a.Key(s) != a.KeyAt(s, revision) {
				t.Error("Key isn't KeyAt of the action's own revision")
			}
		})
	}
}

func TestBaseKey(t *testing.T) {
	t.Parallel()
	s := secret(t, testSecret)
	w := workflowAction(t, "refund", "acme", "desktop", []string{"pay_8812"})
	if got, want := w.BaseKey(s), s.Key([]byte(`{"action_type":"refund","identity":"workflow","subject":["pay_8812"],"tenant":"acme","workflow_id":"desktop"}`)); got != want {
		t.Errorf("BaseKey = %v, want the key without a revision, %v", got, want)
	}
	second := w
	second.Revision = 2
	if w.BaseKey(s) != second.BaseKey(s) || w.KeyAt(s, 2) != second.Key(s) || w.Key(s) == second.Key(s) {
		t.Error("revisions share the base key and nothing else")
	}
	if w.BaseKey(s) == w.Key(s) {
		t.Error("a base key is also the key of a revision")
	}
	other := workflowAction(t, "refund", "acme", "desktop", []string{"pay_8813"})
	if w.BaseKey(s) == other.BaseKey(s) {
		t.Error("two subjects share a base key")
	}
	id := action(t, "refund", "", object{"business_operation_id": "b", "workflow_id": "w"})
	if id.BaseKey(s) != id.Key(s) || id.KeyAt(s, 7) != id.Key(s) {
		t.Error("an action with a business_operation_id has no revisions")
	}
}

func TestActionKeepsItsSubject(t *testing.T) {
	t.Parallel()
	subject := []string{"", "order:8812"}
	a := workflowAction(t, "email.send", "", "desktop", subject)
	before := string(a.Canonical(1))
	subject[1] = "order:1"
	if diff := cmp.Diff(before, string(a.Canonical(1))); diff != "" {
		t.Errorf("the action changed with the caller's slice (-before +after):\n%s", diff)
	}
}

// No key comes from an action that could be mistaken for another.
func TestCanonicalPanics(t *testing.T) {
	t.Parallel()
	r := intent.Resolved{Intent: intent.Intent{WorkflowID: "w", Revision: 1}}
	whole := intent.Resolved{Intent: intent.Intent{WorkflowID: "w", Step: "s", BusinessObject: "b", Revision: 1}, Whole: true}
	for name, f := range map[string]func(){
		"the zero action":      func() { intent.Action{}.Canonical(1) },
		"nothing resolved":     func() { intent.Resolved{}.Action("refund", "", []string{"p"}).Canonical(1) },
		"no type":              func() { whole.Action("", "", nil).Canonical(1) },
		"no subject":           func() { r.Action("refund", "", nil).Canonical(1) },
		"no subject, base key": func() { r.Action("refund", "", nil).BaseKey(ledger.Secret{}) },
		"a broken subject":     func() { r.Action("refund", "", []string{"\xff"}).Canonical(1) },
		"revision 0":           func() { r.Action("refund", "", []string{"p"}).Canonical(0) },
		"revision -1, whole":   func() { whole.Action("refund", "", nil).Canonical(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// call is one call in all that can make its action another one, as a tuple of
// values that Go compares.
type call struct {
	actionType, tenant, form string
	a, b, c                  string // the form's strings, in order
	revision                 int
}

func (c call) build(t testing.TB) (intent.Action, int) {
	switch c.form {
	case "id":
		return action(t, c.actionType, c.tenant, object{"business_operation_id": c.a}), 1
	case "workflow":
		return workflowAction(t, c.actionType, c.tenant, c.a, []string{c.b, c.c}), c.revision
	case "workflow, one":
		return workflowAction(t, c.actionType, c.tenant, c.a, []string{c.b}), c.revision
	}
	a := action(t, c.actionType, c.tenant, object{"workflow_id": c.a, "step": c.b, "business_object": c.c, "revision": float64(c.revision), "run_id": "run"})
	return a, a.Revision
}

// canon empties what is no part of the form's identity.
func (c call) canon() call {
	switch c.form {
	case "id":
		c.b, c.c, c.revision = "", "", 0
	case "workflow, one":
		c.c = ""
	}
	return c
}

// Two calls have the same key if and only if their actions are the same; the
// strings are few, so that both happen often, and of the kind that could run
// into each other.
func TestSameKeyIffSameAction(t *testing.T) {
	t.Parallel()
	s := secret(t, testSecret)
	texts := []string{"a", "A", "aa", `a","b`, `","`, "a\\", `"`, "\u2028", "é", "e\u0301", "\u212a", "k", "null", "workflow", "1"}
	calls := rapid.Custom(func(t *rapid.T) call {
		text := rapid.SampledFrom(texts)
		return call{
			actionType: rapid.SampledFrom([]string{"refund", "email.send"}).Draw(t, "type"),
			tenant:     rapid.SampledFrom([]string{"", "acme", "a"}).Draw(t, "tenant"),
			form:       rapid.SampledFrom([]string{"whole", "id", "workflow", "workflow, one"}).Draw(t, "form"),
			a:          text.Draw(t, "a"), b: text.Draw(t, "b"), c: text.Draw(t, "c"),
			revision: rapid.IntRange(1, 3).Draw(t, "revision"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		x := calls.Draw(rt, "x")
		y := x
		// Change few things, so that equal and nearly equal calls are common.
		for range rapid.IntRange(0, 2).Draw(rt, "changes") {
			other := calls.Draw(rt, "y")
			change := []func(){
				func() { y.actionType = other.actionType }, func() { y.tenant = other.tenant }, func() { y.form = other.form },
				func() { y.a = other.a }, func() { y.b = other.b }, func() { y.c = other.c }, func() { y.revision = other.revision },
				func() { y.a, y.b = y.b, y.a }, func() { y = other },
			}
			rapid.SampledFrom(change).Draw(rt, "change")()
		}
		ax, rx := x.build(t)
		ay, ry := y.build(t)
		sameKey := ax.KeyAt(s, rx) == ay.KeyAt(s, ry)
		if want := x.canon() == y.canon(); sameKey != want {
			rt.Fatalf("same key %t, same action %t\n%s\n%s", sameKey, want, ax.Canonical(rx), ay.Canonical(ry))
		}
		sameBase := ax.BaseKey(s) == ay.BaseKey(s)
		bx, by := x.canon(), y.canon()
		bx.revision, by.revision = 0, 0
		if sameBase != (bx == by) {
			rt.Fatalf("same base key %t, same action but for the revision %t", sameBase, bx == by)
		}
	})
}

// What isn't part of the identity doesn't change the key.
func TestKeyIgnores(t *testing.T) {
	t.Parallel()
	s := secret(t, testSecret)
	want := action(t, "refund", "", first()).Key(s)
	for name, carried := range map[string]intent.Carried{
		"the run":              {Meta: meta(with(first(), object{"run_id": "run-78"}))},
		"revision 1, said":     {Meta: meta(with(first(), object{"revision": 1.0}))},
		"the scope":            {Meta: meta(first()), Header: header("Onceward-Run-Id", "r"), Process: intent.Scope{WorkflowID: "other"}},
		"the carrier":          {Header: header("Onceward-Operation", `{"business_object":"order-8812","step":"refund","workflow_id":"case-1842"}`)},
		"other members":        {Meta: object{"onceward/operation": first(), "progressToken": "q", "claudecode/toolUseId": "toolu_2", "idempotency-key": "k"}},
		"headers of arguments": {Meta: meta(first()), Header: header("Mcp-Param-Step", "other", "Mcp-Name", "refund")},
	} {
		r, err := intent.Read(intent.Strict, carried)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := r.Action("refund", "", nil).Key(s); got != want {
			t.Errorf("%s changed the key", name)
		}
	}
	grouped := action(t, "refund", "", with(second(), object{"workflow_id": "w"}))
	if !slices.Equal(grouped.Canonical(1), action(t, "refund", "", second()).Canonical(1)) {
		t.Error("workflow_id for grouping changed the action")
	}
}

func BenchmarkKey(b *testing.B) {
	s := secret(b, testSecret)
	a := action(b, "email.send", "", first())
	b.ReportAllocs()
	for b.Loop() {
		a.Key(s)
	}
}
