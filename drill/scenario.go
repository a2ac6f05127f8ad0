package drill

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A scenario is one thing that can go wrong, or has to go right.
type scenario struct {
	name string
	// inapplicable says why it can't happen with this configuration; empty where it can.
	inapplicable func(Subject) string
	play         func(context.Context, *stage) error
}

// scenarios are all there are for a subject, in the order in which they are told.
func scenarios(s Subject) []scenario {
	var all []scenario
	for _, some := range [][]scenario{callScenarios(), lossScenarios(), crashScenarios(), personScenarios(), limitScenarios(s), identityScenarios()} {
		all = append(all, some...)
	}
	return all
}

// Run plays all scenarios of the subjects, and yields what became of each, in order. It ends after
// an error, which is of the drill itself and no verdict.
func (w World) Run(ctx context.Context, subjects []Subject) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var plays sync.WaitGroup
		defer plays.Wait()
		defer cancel()
		// The action types have nothing in common but the processor, and mostly wait for the disk.
		all := make([]chan played, len(subjects))
		for i, s := range subjects {
			all[i] = make(chan played, Count(s))
			plays.Go(func() {
				defer close(all[i])
				w.rehearse(ctx, s, all[i])
			})
		}
		for _, results := range all {
			for p := range results {
				if !yield(p.result, p.err) || p.err != nil {
					return
				}
			}
		}
	}
}

// A played scenario is a result, or the drill's own failure.
type played struct {
	result Result
	err    error
}

// rehearse plays the scenarios of one subject, one after the other. There is room for all results.
func (w World) rehearse(ctx context.Context, s Subject, results chan<- played) {
	r, err := newRun(ctx, w, s)
	if err != nil {
		results <- played{err: err}
		return
	}
	passes := true
	for i, sc := range scenarios(s) {
		result, err := r.play(ctx, sc, passes)
		if err != nil {
			results <- played{err: errors.Join(fmt.Errorf("%s, %s: %w", s.Action, sc.name, err), r.store.Close())}
			return
		}
		results <- played{result: result}
		if i == 0 {
			passes = result.Verdict != Broken
		}
	}
	_ = r.store.Close() // it is thrown away
}

// play plays one scenario. passes: the first call of the action got through.
func (r *run) play(ctx context.Context, sc scenario, passes bool) (result Result, err error) {
	s := r.subject
	idle := Result{Action: s.Action, Provider: s.Provider, Scenario: sc.name, Verdict: DoesNotApply}
	if err := ctx.Err(); err != nil {
		return idle, err
	}
	if !passes {
		idle.Happened = "the first call didn't get through"
		return idle, nil
	}
	if sc.inapplicable != nil {
		if idle.Happened = sc.inapplicable(s); idle.Happened != "" {
			return idle, nil
		}
	}
	st, err := r.stage()
	if err != nil {
		return idle, err
	}
	defer func() { err = errors.Join(err, st.close(context.WithoutCancel(ctx))) }()
	if err := sc.play(ctx, st); err != nil && !st.refusedTo(err) {
		return idle, err
	}
	return st.judge(ctx, sc.name)
}

// refusedTo takes a decision that the ledger refused, and that a scenario rests on, for what it is:
// a promise that isn't kept, and no failure of the drill.
func (st *stage) refusedTo(err error) bool {
	var decision *ledger.DecisionError
	if !errors.As(err, &decision) {
		return false
	}
	st.must(false, "a person's decision was refused: %s", decision.Problem)
	return true
}

// Reasons why something can't happen.

func noKeys(s Subject) string {
	if s.Traits.Key == providers.NoKey {
		return s.Provider + " knows no keys"
	}
	return ""
}

func noLookup(s Subject) string {
	if s.Traits.Lookup == providers.NoLookup {
		return s.Provider + " can't be asked, so nobody would notice"
	}
	return ""
}

// onlyTheKey: nothing but the provider's word protects a repeat.
func onlyTheKey(s Subject) string {
	if why := noKeys(s); why != "" {
		return why
	}
	if s.Traits.Lookup == providers.NoLookup || s.Traits.LookupLag > 0 {
		return "nothing but the key protects a repeat here: " + s.Provider + " has to keep that promise"
	}
	return ""
}

// Count is how many scenarios a subject has, those that don't apply included.
func Count(s Subject) int { return len(scenarios(s)) }
