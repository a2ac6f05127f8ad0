package ledgertest

import (
	"errors"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// bucket is the count of strict operations' run, by the name that [ledger.Taking] documents.
const bucket = `["refund","run","","run:run-77","",""]`

// amounts is the count of what they are worth.
const amounts = `["refund","day","","","2026-11-30","USD"]`

// paid is an operation worth 100.00 USD.
func paid(i int) ledger.Operation {
	op := strict(i)
	op.Amount = ledger.Amount{Minor: 10000, Currency: "USD"}
	return op
}

// limited is a claim that takes one of the run's count, at most so many, and its amount.
func limited(op ledger.Operation, most int64) ledger.Claim {
	c := aClaim(op)
	c.Takes = ledger.Allowance{Reserved: "run,day$2026-11-30", Bounds: map[string]int64{bucket: most}}
	return c
}

var limitTests = map[string]func(*tester){
	"a claim takes, and proof that nothing happened gives back": func(t *tester) {
		t.wantUsed(0, 0)
		op := t.add(paid(1).Insert(limited(paid(1), 10), nil, note("claimed")))
		t.wantUsed(1, 10000)
		op = t.record(isDoubted(op))
		t.wantUsed(1, 10000) // it may have happened
		op = t.record(op.Claim(next(op, false), note("sent_again_under_key")))
		t.wantUsed(1, 10000) // once per operation
		op = t.record(isDoubted(op))
		op = t.record(fails(op))
		t.wantUsed(0, 0)
		t.record(succeeds(op)) // after all
		t.wantUsed(1, 10000)
	},
	"what was not sent takes anew with its next claim": func(t *tester) {
		op := t.add(paid(1).Insert(limited(paid(1), 10), nil, note("claimed")))
		op = t.record(isPostponed(op))
		t.wantUsed(0, 0)
		c := limited(op, 10)
		c.At = op.UpdatedAt.Add(second)
		c.Takes.Reserved = "run"
		t.record(op.Claim(c, note("claimed")))
		t.wantUsed(1, 0)
	},
	"a planned operation takes nothing before it is claimed": func(t *tester) {
		op := t.plan(paid(1))
		op = t.record(isApproved(op))
		t.wantUsed(0, 0)
		c := limited(op, 10)
		c.At = op.UpdatedAt.Add(second)
		t.record(op.Claim(c, note("claimed")))
		t.wantUsed(1, 10000)
	},
	"a move that would pass the bound is stale, and changes nothing": func(t *tester) {
		t.add(paid(1).Insert(limited(paid(1), 1), nil, note("claimed")))
		op := t.record(isApproved(t.plan(paid(2))))
		c := limited(op, 1)
		c.At = op.UpdatedAt.Add(second)
		m, err := op.Claim(c, note("claimed"))
		if err != nil {
			t.Fatal(err)
		}
		t.wantStale(m)
		t.wantStored(op)
		t.wantUsed(1, 10000)
	},
	"a decision sees what is taken, also what comes between": func(t *tester) {
		intruded := false
		var seen []int64
		refused := errors.New("used up")
		err := t.store.Begin(t.Context(), ledger.Sought{Key: paid(1).Key, Buckets: []string{bucket}}, func(f ledger.Found) (ledger.Move, error) {
			seen = append(seen, f.Used[bucket])
			if f.Used[bucket] >= 1 {
				return ledger.Move{}, refused
			}
			if !intruded {
				intruded = true
				t.elsewhere(func() { t.add(paid(2).Insert(limited(paid(2), 1), nil, note("claimed"))) })
			}
			return paid(1).Insert(limited(paid(1), 1), nil, note("claimed"))
		})
		if !errors.Is(err, refused) || !cmp.Equal(seen, []int64{0, 1}) {
			t.Errorf("Begin = %v, having seen %v taken; want the decision's own error after 0 and 1", err, seen)
		}
		if t.get(paid(1).ID) != nil {
			t.Error("the refused operation was written")
		}
		t.wantUsed(1, 10000)
	},
	"many callers, a bound for some of them: exactly so many get in": func(t *tester) {
		const most = 5
		var let atomic.Int32
		refused := errors.New("used up")
		t.race(func(i int) error {
			op := paid(i)
			err := t.store.Begin(t.Context(), ledger.Sought{Key: op.Key, Buckets: []string{bucket}}, func(f ledger.Found) (ledger.Move, error) {
				if f.Used[bucket] >= most {
					return ledger.Move{}, refused
				}
				return op.Insert(limited(op, most), seal(op), note("claimed"))
			})
			switch {
			case err == nil:
				let.Add(1)
			case !errors.Is(err, refused):
				return err
			}
			return nil
		})
		if got := let.Load(); got != most || len(t.all()) != most {
			t.Errorf("%d got in, %d operations are there; want %d", got, len(t.all()), most)
		}
		t.wantUsed(most, most*10000)
	},
}

// wantUsed demands what is taken of both counts.
func (t *tester) wantUsed(run, day int64) {
	t.Helper()
	got, err := t.store.Usage(t.Context(), []string{bucket, amounts})
	if err != nil {
		t.Fatalf("Usage: %v", err)
	}
	if got[bucket] != run || got[amounts] != day {
		t.Errorf("taken: %d and %d, want %d and %d", got[bucket], got[amounts], run, day)
	}
	all, err := t.store.Usage(t.Context(), nil)
	if err != nil || all[bucket] != run || all[amounts] != day {
		t.Errorf("Usage of all = %v, %v; want the same", all, err)
	}
}
