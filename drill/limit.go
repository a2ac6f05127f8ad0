package drill

import (
	"context"
	"fmt"
	"slices"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers/sandbox"
)

// rehearsedCount is how many actions fill a limit at most; a larger one is rehearsed with
// as many.
const rehearsedCount = 25

// limitScenarios are about each limit that is set.
func limitScenarios(s Subject) []scenario {
	limits := s.Policy.Rules.Limits
	if len(limits) == 0 {
		none := func(Subject) string { return "no limit is set" }
		return []scenario{{"a limit is reached", none, nil}}
	}
	var all []scenario
	for _, l := range limits {
		takes := func(s Subject) string { return s.takes(l) }
		all = append(all,
			scenario{"limit " + l.String() + " is reached", takes, filled(l, reached)},
			scenario{"limit " + l.String() + ", and one is unknown", takes, filled(l, keepsItsPlace)},
			scenario{"limit " + l.String() + ", and one is refused", takes, filled(l, givesBack)},
		)
	}
	return all
}

func (s Subject) takes(l ledger.Limit) string {
	if l.Currency != "" && len(s.Traits.Currencies) > 0 && !slices.Contains(s.Traits.Currencies, l.Currency) {
		return s.Provider + " doesn't take " + l.Currency
	}
	return ""
}

// filled plays with one limit alone: the others would only refuse earlier.
func filled(l ledger.Limit, play func(context.Context, *stage, limit) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		// 1. How many calls fill it, and how large they are.
		f := limit{Limit: l, whole: l.Max, calls: 1, order: st.subject.plain()}
		if l.Currency == "" {
			f.Max = min(l.Max, rehearsedCount)
			f.Text, f.calls = "", int(f.Max)
		} else {
			f.order.currency, f.order.minor = l.Currency, l.Max
		}
		st.rules.Limits = []ledger.Limit{f.Limit}
		return play(ctx, st, f)
	}
}

// A limit is one that is to be filled.
type limit struct {
	ledger.Limit
	whole int64 // what is set; larger than Max where that is too many to rehearse
	calls int   // that fill it
	order order // of each
}

// number is the n-th call that counts for the limit. One over it is as small as can be.
func (f limit) number(st *stage, n int) call {
	o := f.order
	o.name = fmt.Sprintf("%s-%d", st.name, n)
	if f.Currency != "" && n > f.calls {
		o.minor = 1
	}
	return st.about(o)
}

// fill makes all calls but the last one.
func (f limit) fill(ctx context.Context, st *stage) error {
	for n := 1; n < f.calls; n++ {
		if _, err := st.done(ctx, f.number(st, n)); err != nil {
			return err
		}
	}
	return nil
}

// exceeds makes one call more than the limit allows.
func (f limit) exceeds(ctx context.Context, st *stage) error {
	a, err := st.act(ctx, st.first, f.number(st, f.calls+1))
	st.must(a.Status == refused && a.Code == string(ledger.LimitExceeded), "one more got %s, not limit_exceeded", a)
	return err
}

func (f limit) size() string {
	if f.Currency != "" {
		return f.Text
	}
	if f.whole > f.Max {
		return fmt.Sprintf("%d (instead of %d, for the drill)", f.calls, f.whole)
	}
	return fmt.Sprint(f.calls)
}

func reached(ctx context.Context, st *stage, f limit) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	if err := f.fill(ctx, st); err != nil {
		return err
	}
	last := f.number(st, f.calls)
	first, err := st.done(ctx, last)
	if err != nil {
		return err
	}
	if err := f.exceeds(ctx, st); err != nil {
		return err
	}
	a, err := st.call(ctx, st.first, last)
	st.same("a repeat at the limit", first, a)
	st.tell("%s pass, one more is refused, a repeat is free", f.size())
	if err != nil {
		return err
	}
	return st.effectsNow(ctx, "at the limit", f.calls)
}

// keepsItsPlace: what may have happened counts. The last one's reply is lost, and nobody looks.
func keepsItsPlace(ctx context.Context, st *stage, f limit) error {
	f.calls = 1
	if f.Currency == "" {
		st.rules.Limits[0].Max = 1
	}
	if err := st.open(ctx, sandbox.LoseReply); err != nil {
		return err
	}
	c := f.number(st, 1)
	a, err := st.act(ctx, st.first, c)
	if err != nil {
		return err
	}
	st.expect("the call whose reply is lost", a, unknown)
	if err := f.exceeds(ctx, st); err != nil {
		return err
	}
	_, err = st.wait(ctx, st.first, c)
	st.tell("the unknown one keeps its place, one more is refused")
	return err
}

// givesBack: what provably didn't happen doesn't count.
func givesBack(ctx context.Context, st *stage, f limit) error {
	f.calls = 1
	if f.Currency == "" {
		st.rules.Limits[0].Max = 1
	}
	if err := st.open(ctx, sandbox.Refuse); err != nil {
		return err
	}
	a, err := st.act(ctx, st.first, f.number(st, 1))
	if err != nil {
		return err
	}
	st.expect("the call that is refused", a, failedFinal)
	next := f.number(st, 1)
	next.object, next.order.name = st.name+"-next", st.name+"-next"
	if _, err := st.done(ctx, next); err != nil {
		return err
	}
	st.tell("the refused one gives its place back, another one takes it")
	return f.exceeds(ctx, st)
}
