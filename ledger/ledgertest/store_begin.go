package ledgertest

import (
	"context"
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

var beginTests = map[string]func(*tester){
	"inserts and claims in one commit": func(t *tester) {
		op := t.insert(strict(1))
		t.wantStored(op)
		if got, want := t.sealed(op.ID), string(seal(op)); got != want {
			t.Errorf("Sealed = %q, want %q", got, want)
		}
		if got := len(t.history(op.ID)); got != 1 {
			t.Errorf("the history has %d lines, want 1", got)
		}
	},
	"inserts an operation that waits": func(t *tester) {
		op := t.plan(strict(1))
		t.wantStored(op)
	},
	"finds what is there, and a zero Move writes nothing": func(t *tester) {
		op := t.insert(strict(1))
		var found ledger.Found
		t.begin(ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
			found = f
			return ledger.Move{}, nil
		})
		if diff := cmp.Diff(ledger.Found{Operation: &op}, found); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		t.wantStored(op)
	},
	"a zero Move on nothing writes nothing": func(t *tester) {
		t.begin(ledger.Sought{Key: strict(1).Key}, func(ledger.Found) (ledger.Move, error) { return ledger.Move{}, nil })
		t.wantNothing()
	},
	"moves what is there": func(t *tester) {
		op := t.insert(strict(1))
		var done ledger.Operation
		t.begin(ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
			m, err := succeeds(*f.Operation)
			done = m.To()
			return m, err
		})
		t.wantStored(done)
	},
	"returns the decision's error as it is, and writes nothing": func(t *tester) {
		refusal := errors.New("refused")
		err := t.store.Begin(t.Context(), ledger.Sought{Key: strict(1).Key}, func(ledger.Found) (ledger.Move, error) {
			m, _ := strict(1).Insert(aClaim(strict(1)), nil, note("claimed"))
			return m, refusal
		})
		if err != refusal { //nolint:errorlint // as it is, says the contract
			t.Errorf("Begin = %v, want exactly the decision's error", err)
		}
		t.wantNothing()
	},
	"refuses an id that another operation has": func(t *tester) {
		op := t.insert(strict(1))
		other := strict(2)
		other.ID = op.ID
		t.refuses(other)
		t.wantStored(op)
	},
	"an operation without a payload is open all the same": func(t *tester) {
		op := strict(1)
		op = t.add(op.Insert(aClaim(op), nil, note("claimed")))
		if got := t.sealed(op.ID); got != "" {
			t.Errorf("Sealed = %q, want nothing", got)
		}
		if diff := cmp.Diff([]ledger.Operation{op}, t.find(ledger.Filter{Due: op.LeaseUntil})); diff != "" {
			t.Errorf("due (-want +got):\n%s", diff)
		}
	},
	"an ended context writes nothing": func(t *tester) {
		ctx := t.ended()
		insert, _ := strict(1).Insert(aClaim(strict(1)), nil, note("claimed"))
		calls := map[string]error{
			"Begin":  t.store.Begin(ctx, ledger.Sought{Key: strict(1).Key}, func(ledger.Found) (ledger.Move, error) { return insert, nil }),
			"Record": t.store.Record(ctx, insert),
		}
		_, calls["Find"] = t.store.Find(ctx, ledger.Filter{})
		_, calls["Remember"] = t.store.Remember(ctx, "name", []byte("value"))
		for name, err := range calls {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s = %v, want context.Canceled", name, err)
			}
		}
		t.wantNothing()
	},
	"a context that ends while it is decided stops the write": func(t *tester) {
		ctx, cancel := context.WithCancel(t.Context())
		err := t.store.Begin(ctx, ledger.Sought{Key: strict(1).Key}, func(ledger.Found) (ledger.Move, error) {
			cancel()
			return strict(1).Insert(aClaim(strict(1)), nil, note("claimed"))
		})
		stored := t.get(strict(1).ID)
		if (err == nil) != (stored != nil) || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Begin = %v and the operation is stored: %v; want both or neither", err, stored != nil)
		}
	},
}

// refuses demands that a blind insert fails and leaves the Store as it was.
func (t *tester) refuses(op ledger.Operation) {
	t.Helper()
	before := t.all()
	sought := ledger.Sought{Key: op.Key}
	if !op.BaseKey.IsZero() {
		sought = ledger.Sought{BaseKey: op.BaseKey}
	}
	err := t.store.Begin(t.Context(), sought, func(ledger.Found) (ledger.Move, error) {
		return op.Insert(aClaim(op), seal(op), note("claimed"))
	})
	if err == nil {
		t.Errorf("Begin inserted %s, want an error", op.ID)
	}
	if diff := cmp.Diff(before, t.all()); diff != "" {
		t.Errorf("a refused insert changed (-before +after):\n%s", diff)
	}
}
