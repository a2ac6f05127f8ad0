package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// racers is how many callers race for one thing.
const racers = 16

var raceTests = map[string]func(*tester){
	// Between the reading and the writing another caller inserts. Whether it can come
	// between at all is the Store's affair; two inserts, or a decision on what is no
	// longer so, is not.
	"an insert between reading and writing is seen": func(t *tester) {
		first, second := strict(1), strict(2)
		second.Key = first.Key
		var last ledger.Found
		intruded := false
		t.begin(ledger.Sought{Key: first.Key}, func(f ledger.Found) (ledger.Move, error) {
			last = f
			if !intruded {
				intruded = true
				t.elsewhere(func() { t.insert(second) })
			}
			if f.Operation != nil {
				return ledger.Move{}, nil
			}
			return first.Insert(aClaim(first), seal(first), note("claimed"))
		})
		if last.Operation == nil || last.Operation.ID != second.ID {
			t.Errorf("the last decision saw %v, want the operation that came between", last.Operation)
		}
		if got := t.all(); len(got) != 1 || got[0].ID != second.ID {
			t.Errorf("there are %d operations, want the one that came between", len(got))
		}
	},
	"a move between reading and writing is seen": func(t *tester) {
		op := t.plan(strict(1))
		op = t.record(isApproved(op))
		var last ledger.Operation
		intruded := false
		t.begin(ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
			last = *f.Operation
			if !intruded {
				intruded = true
				t.elsewhere(func() { t.record(isClaimed(op)) })
			}
			if last.Status != ledger.Planned {
				return ledger.Move{}, nil
			}
			return isClaimed(last)
		})
		if last.Status != ledger.Executing || last.Attempts != 1 {
			t.Errorf("the last decision saw %s with %d attempts, want executing with 1", last.Status, last.Attempts)
		}
		if got := t.get(op.ID).Attempts; got != 1 {
			t.Errorf("it has %d attempts, want 1", got)
		}
	},
	"many callers with one key: one inserts": func(t *tester) {
		var inserted atomic.Int32
		t.race(func(i int) error {
			op, inserts := strict(i), false
			op.Key = strict(0).Key
			err := t.store.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
				if inserts = f.Operation == nil; !inserts {
					return ledger.Move{}, nil
				}
				return op.Insert(aClaim(op), seal(op), note("claimed"))
			})
			if inserts && err == nil {
				inserted.Add(1)
			}
			return err
		})
		if got := inserted.Load(); got != 1 || len(t.all()) != 1 {
			t.Errorf("%d callers inserted, and there are %d operations; want 1 and 1", got, len(t.all()))
		}
	},
	"many callers claim what waits: one gets it": func(t *tester) {
		op := t.plan(strict(0))
		op = t.record(isApproved(op))
		var claimed atomic.Int32
		t.race(func(int) error {
			claims := false
			err := t.store.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
				if claims = f.Operation.Status == ledger.Planned; !claims {
					return ledger.Move{}, nil
				}
				return isClaimed(*f.Operation)
			})
			if claims && err == nil {
				claimed.Add(1)
			}
			return err
		})
		if got := claimed.Load(); got != 1 || t.get(op.ID).Attempts != 1 {
			t.Errorf("%d callers claimed it, and it has %d attempts; want 1 and 1", got, t.get(op.ID).Attempts)
		}
	},
	"many callers record from one reading: one does": func(t *tester) {
		op := t.insert(strict(0))
		var recorded atomic.Int32
		t.race(func(int) error {
			m, err := succeeds(op)
			if err != nil {
				return err
			}
			switch err := t.store.Record(t.Context(), m); {
			case err == nil:
				recorded.Add(1)
				return nil
			case errors.Is(err, ledger.ErrStale):
				return nil
			default:
				return err
			}
		})
		if got := recorded.Load(); got != 1 || len(t.history(op.ID)) != 2 {
			t.Errorf("%d callers recorded, and the history has %d lines; want 1 and 2", got, len(t.history(op.ID)))
		}
	},
	"many callers with alike actions: one inserts, the others see it": func(t *tester) {
		var inserted atomic.Int32
		t.race(func(i int) error {
			op, inserts := revision(i, 1), false
			op.Alike = revision(0, 1).Alike
			sought := ledger.Sought{BaseKey: op.BaseKey, Alike: op.Alike, Since: start.Add(-hour)}
			err := t.store.Begin(t.Context(), sought, func(f ledger.Found) (ledger.Move, error) {
				if inserts = f.Alike == nil; inserts {
					return op.Insert(aClaim(op), seal(op), note("claimed"))
				}
				return op.Plan(op.CreatedAt, op.CreatedAt.Add(hour), ledger.Approval{Reason: "alike"}, seal(op), note("alike"))
			})
			if inserts && err == nil {
				inserted.Add(1)
			}
			return err
		})
		executing := len(t.find(ledger.Filter{Statuses: []ledger.Status{ledger.Executing}}))
		if got := inserted.Load(); got != 1 || executing != 1 || len(t.all()) != racers {
			t.Errorf("%d callers claimed, %d of %d operations are executing; want 1 and 1 of %d", got, executing, len(t.all()), racers)
		}
	},
	"many look-alikes under keys of their own: one inserts, the others see it": func(t *tester) {
		var inserted atomic.Int32
		t.race(func(i int) error {
			op, inserts := strict(i), false
			op.Alike = revision(0, 1).Alike
			sought := ledger.Sought{Key: op.Key, Alike: op.Alike, Since: start.Add(-hour)}
			err := t.store.Begin(t.Context(), sought, func(f ledger.Found) (ledger.Move, error) {
				if inserts = f.Alike == nil; inserts {
					return op.Insert(aClaim(op), seal(op), note("claimed"))
				}
				return op.Plan(op.CreatedAt, op.CreatedAt.Add(hour), ledger.Approval{Reason: "second_intent"}, seal(op), note("second_intent"))
			})
			if inserts && err == nil {
				inserted.Add(1)
			}
			return err
		})
		executing := len(t.find(ledger.Filter{Statuses: []ledger.Status{ledger.Executing}}))
		if got := inserted.Load(); got != 1 || executing != 1 || len(t.all()) != racers {
			t.Errorf("%d callers claimed, %d of %d operations are executing; want 1 and 1 of %d", got, executing, len(t.all()), racers)
		}
	},
	"many different operations at once are all kept": func(t *tester) {
		done := make([]ledger.Operation, racers)
		t.race(func(i int) (err error) {
			op := strict(i)
			m, err := op.Insert(aClaim(op), seal(op), note("claimed"))
			if err != nil {
				return err
			}
			if err = t.store.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(ledger.Found) (ledger.Move, error) { return m, nil }); err != nil {
				return err
			}
			if m, err = succeeds(m.To()); err != nil {
				return err
			}
			done[i] = m.To()
			return t.store.Record(t.Context(), m)
		})
		for _, want := range done {
			if diff := cmp.Diff(&want, t.get(want.ID)); diff != "" {
				t.Errorf("stored operation (-want +got):\n%s", diff)
			}
		}
	},
}

// elsewhere does something in another goroutine and waits for it.
func (t *tester) elsewhere(do func()) {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	<-done
}

// race has all racers do something at the same time. An error of any is the test's.
func (t *tester) race(do func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	gun := make(chan struct{})
	errs := make([]error, racers)
	for i := range racers {
		wg.Go(func() {
			<-gun
			if err := do(i); err != nil {
				errs[i] = fmt.Errorf("caller %d: %w", i, err)
			}
		})
	}
	close(gun)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
