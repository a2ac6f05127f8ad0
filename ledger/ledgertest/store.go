package ledgertest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// TestStore tests whether a Store keeps every promise of [ledger.Store]. fresh makes a new,
// empty place for a test; what it returns opens a Store there, as often as it is called, as
// several processes would. Whoever opened a Store closes it, the suite does so too where that is
// what it tests.
func TestStore(t *testing.T, fresh func(t *testing.T) (open func() ledger.Store)) {
	groups := map[string]map[string]func(*tester){
		"Begin":    beginTests,
		"Race":     raceTests,
		"Workflow": workflowTests,
		"Record":   recordTests,
		"Find":     findTests,
		"Prune":    pruneTests,
		"Limits":   limitTests,
		"Audit":    auditTests,
		"Place":    placeTests,
	}
	for group, tests := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					open := fresh(t)
					test(&tester{T: t, open: open, store: open()})
				})
			}
		})
	}
}

// A tester is one test with its Store.
type tester struct {
	*testing.T
	open  func() ledger.Store
	store ledger.Store
}

type decide = func(ledger.Found) (ledger.Move, error)

// begin is Begin, which must succeed.
func (t *tester) begin(sought ledger.Sought, d decide) {
	t.Helper()
	if err := t.store.Begin(t.Context(), sought, d); err != nil {
		t.Fatalf("Begin: %v", err)
	}
}

// insert claims an operation that isn't there yet.
func (t *tester) insert(op ledger.Operation) ledger.Operation {
	t.Helper()
	return t.add(op.Insert(aClaim(op), seal(op), note("claimed")))
}

// plan inserts an operation that waits.
func (t *tester) plan(op ledger.Operation) ledger.Operation {
	t.Helper()
	return t.add(op.Plan(op.CreatedAt, op.CreatedAt.Add(hour), ledger.Approval{Reason: "alike"}, seal(op), note("alike")))
}

func (t *tester) add(m ledger.Move, err error) ledger.Operation {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.begin(ledger.Sought{Key: m.To().Key}, func(found ledger.Found) (ledger.Move, error) {
		if found.Operation != nil {
			t.Errorf("%s is there already", m.To().ID)
		}
		return m, nil
	})
	return m.To()
}

// record is Record of a step, both of which must succeed. It returns the operation
// as it is then.
func (t *tester) record(m ledger.Move, err error) ledger.Operation {
	t.Helper()
	if err == nil {
		err = t.store.Record(t.Context(), m)
	}
	if err != nil {
		t.Fatalf("Record: %v", err)
	}
	return m.To()
}

func (t *tester) succeed(op ledger.Operation) ledger.Operation {
	t.Helper()
	return t.record(op.Succeed(op.UpdatedAt.Add(second), aReceipt(op), never, note("provider_answered")))
}

// get reads an operation, or nil.
func (t *tester) get(id string) *ledger.Operation {
	t.Helper()
	found, err := t.store.Find(t.Context(), ledger.Filter{ID: id})
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return &found[0]
	}
	t.Fatalf("%d operations have the id %s", len(found), id)
	return nil
}

// all reads every operation, oldest first.
func (t *tester) all() []ledger.Operation {
	t.Helper()
	return t.find(ledger.Filter{})
}

func (t *tester) find(f ledger.Filter) []ledger.Operation {
	t.Helper()
	found, err := t.store.Find(t.Context(), f)
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return found
}

func (t *tester) history(id string) []ledger.Transition {
	t.Helper()
	h, err := t.store.History(t.Context(), id)
	if err != nil {
		t.Fatalf("History: %v", err)
	}
	return h
}

func (t *tester) sealed(id string) string {
	t.Helper()
	b, err := t.store.Sealed(t.Context(), id)
	if err != nil {
		t.Fatalf("Sealed: %v", err)
	}
	return string(b)
}

// wantStored compares what is stored with an operation.
func (t *tester) wantStored(want ledger.Operation) {
	t.Helper()
	if diff := cmp.Diff(&want, t.get(want.ID)); diff != "" {
		t.Errorf("stored operation (-want +got):\n%s", diff)
	}
}

// wantNothing demands that the Store holds no operation.
func (t *tester) wantNothing() {
	t.Helper()
	if found := t.all(); len(found) != 0 {
		t.Errorf("the store holds %d operations, want none", len(found))
	}
}

func (t *tester) ended() context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
