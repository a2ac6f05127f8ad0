package ledgertest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

var critical = map[string][]string{"refund": {"amount", "currency"}}

var pruneTests = map[string]func(*tester){
	"a tombstone keeps what a replay needs": func(t *tester) {
		ops := []ledger.Operation{
			t.succeed(t.insert(strict(1))),
			t.succeed(t.insert(labelled(revision(1, 1)))),
			t.record(fails(t.insert(strict(2)))),
		}
		t.prune(len(ops))
		for _, op := range ops {
			if diff := cmp.Diff(essence(op), essence(*t.get(op.ID))); diff != "" {
				t.Errorf("essence of the tombstone (-want +got):\n%s", diff)
			}
			got := t.get(op.ID)
			if !got.Pruned || got.Result != nil || got.Reference != nil || got.Last.Evidence != nil {
				t.Errorf("the tombstone has pruned %v, result %s, reference %s, evidence %s; want true and nothing", got.Pruned, got.Result, got.Reference, got.Last.Evidence)
			}
			if got := t.history(op.ID); len(got) != 0 {
				t.Errorf("the tombstone has %d lines of history, want none", len(got))
			}
		}
	},
	"a tombstone is exactly what was made of the operation and its history": func(t *tester) {
		op := t.succeed(t.insert(strict(1)))
		want := bury(op, t.history(op.ID))
		t.prune(1)
		t.wantStored(want)
	},
	"only those of an action type": func(t *tester) {
		mail := strict(1)
		mail.Action = "email.send"
		t.succeed(t.insert(strict(0)))
		t.succeed(t.insert(mail))
		t.succeed(t.insert(strict(2)))
		n, err := t.store.Prune(t.Context(), ledger.Prunable{Before: start.Add(50 * hour), Action: "email.send", Limit: 5}, bury)
		if err != nil || n != 1 || !t.get(mail.ID).Pruned || t.get(strict(0).ID).Pruned || t.get(strict(2).ID).Pruned {
			t.Errorf("Prune = %d, %v; want only the mail", n, err)
		}
	},
	"only old, final, settled operations are pruned": func(t *tester) {
		all := t.population()
		late := strict(900)
		late.CreatedAt = start.Add(99 * hour)
		all = append(all, t.succeed(t.insert(late)))
		var want []string
		for _, op := range all {
			if op.Status.Final() && op.NextCheckAt.IsZero() && !op.Review.Open() && op.UpdatedAt.Before(start.Add(50*hour)) {
				want = append(want, op.ID)
			}
		}
		t.prune(len(want))
		var got []string
		for _, op := range t.all() {
			if op.Pruned {
				got = append(got, op.ID)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pruned (-want +got):\n%s", diff)
		}
	},
	"oldest first, as many as the limit says": func(t *tester) {
		for i := range 5 {
			t.succeed(t.insert(strict(i)))
		}
		for _, want := range []int{2, 2, 1, 0} {
			n, err := t.store.Prune(t.Context(), ledger.Prunable{Before: start.Add(50 * hour), Limit: 2}, bury)
			if err != nil || n != want {
				t.Fatalf("Prune = %d, %v; want %d", n, err, want)
			}
			if want == 2 && t.get(strict(4).ID).Pruned {
				t.Errorf("the newest was pruned before older ones")
			}
		}
	},
	"a tombstone is found, and still tells a conflict": func(t *tester) {
		op := t.succeed(t.insert(strict(1)))
		t.prune(1)
		t.begin(ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
			if f.Operation == nil || f.Operation.Fingerprint != op.Fingerprint {
				t.Errorf("found %v, want the tombstone with its fingerprint", f.Operation)
				return ledger.Move{}, nil
			}
			return conflicts(*f.Operation)
		})
		got := t.get(op.ID)
		if got.Conflicts != 1 || !got.Pruned || len(t.history(op.ID)) != 1 {
			t.Errorf("after the conflict: %d conflicts, pruned %v, %d lines; want 1, true, 1", got.Conflicts, got.Pruned, len(t.history(op.ID)))
		}
	},
	"the key of a tombstone is never given again": func(t *tester) {
		for _, op := range []ledger.Operation{strict(1), revision(1, 1)} {
			t.succeed(t.insert(op))
			t.prune(1)
			again := op
			again.ID = "op_again"
			t.refuses(again)
		}
	},
	"a late success reaches a tombstone": func(t *tester) {
		op := t.record(fails(t.insert(strict(1))))
		t.prune(1)
		t.wantStaleFrom(op)
		late := t.record(succeeds(*t.get(op.ID)))
		late.Pruned = true
		t.wantStored(late)
	},
	"a tombstone of the workflow identity still knows its content": func(t *tester) {
		op := t.succeed(t.insert(revision(1, 1)))
		t.prune(1)
		tomb := t.get(op.ID)
		t.wantFound(ledger.Sought{BaseKey: op.BaseKey, Content: op.Content}, ledger.Found{Operation: tomb, SameContent: tomb})
	},
}

// bury is what the ledger makes of an operation; its chain is the history's business.
func bury(op ledger.Operation, history []ledger.Transition) ledger.Operation {
	stone := op.Tombstone(critical[op.Action])
	stone.Chain = chainOf(op.ID, len(history))
	return stone
}

// prune prunes all it can, and demands a number.
func (t *tester) prune(want int) {
	t.Helper()
	n, err := t.store.Prune(t.Context(), ledger.Prunable{Before: start.Add(50 * hour), Limit: 1000}, bury)
	if err != nil || n != want {
		t.Fatalf("Prune = %d, %v; want %d", n, err, want)
	}
}

// wantStaleFrom demands that what was read before the pruning can't be moved any more.
func (t *tester) wantStaleFrom(op ledger.Operation) {
	t.Helper()
	m, err := succeeds(op)
	if err != nil {
		t.Fatal(err)
	}
	t.wantStale(m)
}

// essence is what a tombstone keeps.
func essence(op ledger.Operation) ledger.Operation {
	kept := ledger.Operation{
		ID: op.ID, Key: op.Key, BaseKey: op.BaseKey, Tenant: op.Tenant, Action: op.Action,
		Fingerprint: op.Fingerprint, Status: op.Status, Attempts: op.Attempts,
		Provider: op.Provider, ProviderOperationID: op.ProviderOperationID, ErrorCode: op.ErrorCode,
		CreatedAt: op.CreatedAt, UpdatedAt: op.UpdatedAt, CompletedAt: op.CompletedAt,
		Fields: ledger.FieldHashes{},
	}
	kept.Intent.Identity, kept.Intent.Revision = op.Intent.Identity, op.Intent.Revision
	for _, name := range critical[op.Action] {
		kept.Fields[name] = op.Fields[name]
	}
	if !op.BaseKey.IsZero() {
		kept.Content = op.Content
	}
	return kept
}
