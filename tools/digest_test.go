package tools_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/tools"
)

// TestHashes compares with hashes of canonical JSON written by hand.
func TestHashes(t *testing.T) {
	t.Parallel()
	s := secret(t)
	workflow := workflowOptions(t)
	workflow.Templates = []string{"paid"}
	for _, tc := range []struct {
		name, tool string
		options    tools.Options
		change     map[string]string
		meta       string

		fingerprint, content, alike string
		fields                      map[string]string
	}{
		{"a refund", "refund", options(t), map[string]string{"note": `"n"`}, wholeIntent,
			`{"action_type":"refund","amount":10000,"currency":"USD","payment_id":"pay_8812"}`,
			`{"action_type":"refund","amount":10000,"currency":"USD","note":"n","payment_id":"pay_8812"}`, "",
			map[string]string{"amount": `10000`, "currency": `"USD"`, "note": `"n"`, "payment_id": `"pay_8812"`}},
		{"a mail", "email_send", options(t), map[string]string{"bcc": `["b@example.com"]`, "cc": `[]`}, wholeIntent,
			`{"action_type":"email.send","bcc":["b@example.com"],"to":["ann@example.com"]}`,
			`{"action_type":"email.send","bcc":["b@example.com"],"body":"Dear Ann,\nit is on its way.","subject":"Your refund","to":["ann@example.com"]}`, "",
			map[string]string{"to": `["ann@example.com"]`, "bcc": `["b@example.com"]`, "subject": `"Your refund"`, "body": `"Dear Ann,\nit is on its way."`}},
		{"a mail named by the workflow", "email_send", workflow, map[string]string{"about": `"case-1"`, "template": `"paid"`}, `{}`,
			`{"about":"case-1","action_type":"email.send","template":"paid","to":["ann@example.com"]}`,
			`{"about":"case-1","action_type":"email.send","body":"Dear Ann,\nit is on its way.","subject":"Your refund","template":"paid","to":["ann@example.com"]}`,
			`{"action_type":"email.send","to":["ann@example.com"]}`,
			map[string]string{"to": `["ann@example.com"]`, "subject": `"Your refund"`, "body": `"Dear Ann,\nit is on its way."`, "about": `"case-1"`, "template": `"paid"`}},
	} {
		r := captured(t, tc.options, tc.tool, with(tc.tool, tc.change), tc.meta)
		want := ledger.Digest{
			Fingerprint: s.Hash("fingerprint", []byte(tc.fingerprint)), Content: s.Hash("content", []byte(tc.content)), Fields: ledger.FieldHashes{},
		}
		if tc.alike != "" {
			hash := s.Hash("alike", []byte(tc.alike))
			want.Alike = ledger.FieldHash(hash[:8])
		}
		for name, canonical := range tc.fields {
			want.Fields[name] = s.Field(name, []byte(canonical))
		}
		want.Critical = tools.Critical()[r.Action]
		if diff := cmp.Diff(want, r.Digest); diff != "" {
			t.Errorf("%s: digest (-want +got):\n%s", tc.name, diff)
		}
	}
}

// key is the HMAC of canonical JSON, as any orchestrator can compute it.
func key(canonical string) string {
	mac := hmac.New(sha256.New, []byte("a secret for tests"))
	mac.Write([]byte(canonical))
	return "v1:" + hex.EncodeToString(mac.Sum(nil))
}

func TestStrictKey(t *testing.T) {
	t.Parallel()
	r := captured(t, options(t), "refund", with("refund", nil), wholeIntent)
	want := key(`{"action_type":"refund","business_object":"application-731","revision":1,"step":"notify","workflow_id":"case-1842"}`)
	if r.Key.String() != want || !r.BaseKey.IsZero() || r.KeyAt != nil {
		t.Errorf("key %s, want %s, and no other", r.Key, want)
	}
	if diff := cmp.Diff(ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-1842", Step: "notify", BusinessObject: "application-731", Revision: 1, RunID: "run-77"}, r.Intent); diff != "" {
		t.Errorf("intent (-want +got):\n%s", diff)
	}
	r = captured(t, options(t), "refund", with("refund", nil), `{"onceward/operation":{"business_operation_id":"refund_request_8812_1","workflow_id":"case-1842"}}`)
	if want = key(`{"action_type":"refund","business_operation_id":"refund_request_8812_1"}`); r.Key.String() != want {
		t.Errorf("key %s, want %s", r.Key, want)
	}
}

// TestWorkflowKey: the declared arguments name the action, prose never does.
func TestWorkflowKey(t *testing.T) {
	t.Parallel()
	templates := workflowOptions(t)
	templates.Templates = []string{"paid"}
	for _, tc := range []struct {
		name, tool string
		options    tools.Options
		change     map[string]string
		subject    string
	}{
		{"a mail", "email_send", workflowOptions(t), map[string]string{"about": `"case-1"`}, `["","case-1"]`},
		{"a reworded mail", "email_send", workflowOptions(t), map[string]string{"about": `"case-1"`, "subject": `"Other"`, "body": `"words"`}, `["","case-1"]`},
		{"a mail with a template", "email_send", templates, map[string]string{"about": `"case-1"`, "template": `"paid"`}, `["paid","case-1"]`},
		{"a payment order", "payment_order_create", workflowOptions(t), nil, `["INV-42"]`},
		{"a refund", "refund", workflowOptions(t), map[string]string{"note": `"words"`}, `["pay_8812"]`},
	} {
		r := captured(t, tc.options, tc.tool, with(tc.tool, tc.change), `{}`)
		action := map[string]string{"email_send": "email.send", "payment_order_create": "payment_order.create", "refund": "refund"}[tc.tool]
		at := func(revision string) string {
			return key(`{"action_type":"` + action + `","identity":"workflow",` + revision + `"subject":` + tc.subject + `,"workflow_id":"case-1842"}`)
		}
		got := []string{r.BaseKey.String(), r.KeyAt(1).String(), r.KeyAt(2).String()}
		if diff := cmp.Diff([]string{at(""), at(`"revision":1,`), at(`"revision":2,`)}, got); diff != "" {
			t.Errorf("%s: keys (-want +got):\n%s", tc.name, diff)
		}
		if !r.Key.IsZero() || r.Intent.Identity != ledger.Workflow || r.Digest.Alike.IsZero() {
			t.Errorf("%s: key %s, identity %q, alike %x", tc.name, r.Key, r.Intent.Identity, r.Digest.Alike)
		}
	}
	whole := captured(t, workflowOptions(t), "refund", with("refund", nil), wholeIntent)
	if whole.Key.IsZero() || whole.KeyAt != nil || !whole.Digest.Alike.IsZero() || whole.Intent.Identity != ledger.Strict {
		t.Error("a whole intent isn't the whole identity in workflow mode")
	}
}

// TestWorkflowArguments: what names a mail is demanded where it is part of its name.
func TestWorkflowArguments(t *testing.T) {
	t.Parallel()
	templates := workflowOptions(t)
	templates.Templates = []string{"paid", "approved"}
	for name, tc := range map[string]struct {
		options tools.Options
		change  map[string]string
		field   string
	}{
		"no about":                          {workflowOptions(t), nil, "about"},
		"an about of prose":                 {workflowOptions(t), map[string]string{"about": `"the mail to Ann"`}, "about"},
		"an about with a line break":        {workflowOptions(t), map[string]string{"about": `"case-1\n"`}, "about"},
		"an about that is too long":         {workflowOptions(t), map[string]string{"about": quoted(string(make([]byte, 65)))}, "about"},
		"a template where none is listed":   {workflowOptions(t), map[string]string{"about": `"c"`, "template": `"free words"`}, "template"},
		"a template that isn't listed":      {templates, map[string]string{"about": `"c"`, "template": `"free words"`}, "template"},
		"no template where some are listed": {templates, map[string]string{"about": `"c"`}, "template"},
	} {
		b := newBench(t, aLedger{t: t}, tc.options)
		r := b.call(t.Context(), "email_send", with("email_send", tc.change), `{}`)
		if r.get("code") != "invalid_arguments" || !contains(r.fields(), tc.field) {
			t.Errorf("%s: %s", name, r.text())
		}
	}
	o := workflowOptions(t)
	o.Scope.WorkflowID = ""
	if r := newBench(t, aLedger{t: t}, o).call(t.Context(), "refund", with("refund", nil), `{}`); r.get("code") != "intent_missing" {
		t.Errorf("a call without a workflow: %s", r.text())
	}
}
