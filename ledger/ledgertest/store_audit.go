package ledgertest

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// chainOf is some chain that depends on how long the history is.
func chainOf(id string, lines int) ledger.Chain {
	return ledger.Chain(digest("chain "+id, lines))
}

var auditTests = map[string]func(*tester){
	"evidence comes back byte for byte": func(t *tester) {
		odd := json.RawMessage("{ \"b\":1,  \"a\" : 1.0, \"u\":\"\\u00e9\\u2028\", \"a\":2}")
		op := t.insert(strict(1))
		n := note("provider_answered")
		n.Evidence = odd
		r := aReceipt(op)
		r.Result, r.Reference = odd, odd
		op = t.record(op.Succeed(op.UpdatedAt.Add(second), r, never, n))
		t.wantStored(op)
		if got := t.history(op.ID)[1].Evidence; !bytes.Equal(got, odd) {
			t.Errorf("evidence in the history: %s, want %s", got, odd)
		}
	},
	"what is remembered is recalled": func(t *tester) {
		for _, name := range []string{"a", "b"} {
			if got, err := t.store.Recall(t.Context(), name); err != nil || got != nil {
				t.Errorf("Recall of nothing = %q, %v", got, err)
			}
			if _, err := t.store.Remember(t.Context(), name, []byte("value of "+name)); err != nil {
				t.Fatal(err)
			}
		}
		other := t.open()
		defer func() { _ = other.Close() }()
		if got, err := other.Recall(t.Context(), "b"); err != nil || string(got) != "value of b" {
			t.Errorf("Recall = %q, %v; want what was remembered", got, err)
		}
	},
	"ids are a range": func(t *tester) {
		for i := range 6 {
			t.insert(strict(i))
		}
		got := t.find(ledger.Filter{FromID: "op_0001", ToID: "op_0004"})
		if diff := cmp.Diff([]string{"op_0001", "op_0002", "op_0003"}, ids(got)); diff != "" {
			t.Errorf("ids from 1 to before 4 (-want +got):\n%s", diff)
		}
		got = t.find(ledger.Filter{FromID: "op_0001", After: "op_0002", Limit: 2})
		if diff := cmp.Diff([]string{"op_0003", "op_0004"}, ids(got)); diff != "" {
			t.Errorf("the next page of them (-want +got):\n%s", diff)
		}
	},
	"those that wait for an approval, and revisions, are found": func(t *tester) {
		waits := t.plan(revision(1, 1))
		t.record(isApproved(t.plan(revision(2, 1))))
		t.succeed(t.insert(strict(1)))
		if diff := cmp.Diff([]string{waits.ID}, ids(t.find(ledger.Filter{Approval: true}))); diff != "" {
			t.Errorf("waiting for approval (-want +got):\n%s", diff)
		}
		t.succeed(t.insert(revision(3, 1)))
		newest := t.insert(revision(3, 2))
		got := ids(t.find(ledger.Filter{Revised: newest.BaseKey, Newest: true}))
		if diff := cmp.Diff([]string{newest.ID, revision(3, 1).ID}, got); diff != "" {
			t.Errorf("revisions, newest first (-want +got):\n%s", diff)
		}
	},
	"an approved operation that runs at once is due": func(t *tester) {
		op := t.record(isApproved(t.plan(revision(1, 1))))
		op = t.record(op.Observe(op.UpdatedAt, byPerson("approved"), func(o *ledger.Operation) { o.NextCheckAt = o.UpdatedAt }))
		if !slices.Contains(ids(t.find(ledger.Filter{Due: op.UpdatedAt})), op.ID) {
			t.Error("it isn't due")
		}
	},
}
