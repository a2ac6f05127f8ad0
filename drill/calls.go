package drill

import (
	"context"
	"slices"
	"sync"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// crowd is how many equal calls come at once.
const crowd = 50

// callScenarios are about calls that come once, again, or together.
func callScenarios() []scenario {
	return []scenario{
		{"the first call", nil, firstCall},
		{"the same call again", nil, again},
		{"the same call, reworded", nil, reworded},
		{"the same name, another action", nil, changed},
		{"50 equal calls at once", nil, together},
		{"two servers at once", nil, twoServers},
		{"another workflow tries the same", noLookAlikes, secondIntent},
	}
}

func firstCall(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	c := st.ordinary()
	if st.subject.Policy.NeedsApproval(c.order.typed()) != "" {
		st.asked = "May it be done?"
	}
	a, err := st.act(ctx, st.first, c)
	if err != nil {
		return err
	}
	st.expect("it", a, succeeded)
	if a.Status == refused {
		st.tell("%s", a)
	}
	return nil
}

// done makes a call that succeeds.
func (st *stage) done(ctx context.Context, c call) (answer, error) {
	a, err := st.act(ctx, st.first, c)
	st.expect("the first call", a, succeeded)
	return a, err
}

func again(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	c := st.ordinary()
	first, err := st.done(ctx, c)
	if err != nil {
		return err
	}
	a, err := st.call(ctx, st.first, c)
	st.same("the repeat", first, a)
	st.tell("the first result, as success")
	return err
}

func reworded(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	c := st.ordinary()
	first, err := st.done(ctx, c)
	if err != nil {
		return err
	}
	c.order = c.order.reworded()
	a, err := st.call(ctx, st.first, c)
	st.same("the repeat", first, a)
	st.must(len(a.IgnoredChanges) == 1, "the repeat wasn't told that its words were ignored")
	st.tell("the first result, as success, with a word on what was ignored")
	return err
}

func changed(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	c := st.ordinary()
	if _, err := st.done(ctx, c); err != nil {
		return err
	}
	object := c.object
	c.order, c.object = c.order.other(), object
	a, err := st.call(ctx, st.first, c)
	st.conflicts("the other call", a)
	st.tell("the second is refused, and told what differs (%s)", sentence(a.Fields))
	return err
}

func (st *stage) conflicts(when string, a answer) {
	field := "amount"
	if st.subject.Action == providers.EmailSend {
		field = "to"
	}
	st.must(a.Status == refused && a.Code == string(ledger.OperationConflict) && slices.Contains(a.Fields, field), "%s got %s, not a conflict that names %s", when, a, field)
}

func together(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	servers := make([]*server, crowd)
	for i := range servers {
		servers[i] = st.first
	}
	if err := st.race(ctx, servers); err != nil {
		return err
	}
	st.tell("one acts, %d get its result", crowd-1)
	return nil
}

func twoServers(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	second, err := st.another(ctx)
	if err != nil {
		return err
	}
	var servers []*server
	for range 4 {
		servers = append(servers, st.first, second)
	}
	if err := st.race(ctx, servers); err != nil {
		return err
	}
	st.tell("one acts, the other seven calls get its result")
	return nil
}

// race makes the same call at each of the servers, at once.
func (st *stage) race(ctx context.Context, servers []*server) error {
	c := st.ordinary()
	if err := st.admit(ctx, st.first, c); err != nil {
		return err
	}
	answers, errs := make([]answer, len(servers)), make([]error, len(servers))
	var calls sync.WaitGroup
	start := make(chan struct{})
	for i, v := range servers {
		calls.Go(func() {
			<-start
			answers[i], errs[i] = st.call(ctx, v, c)
		})
	}
	close(start)
	calls.Wait()
	fresh := 0
	for i, a := range answers {
		if errs[i] != nil {
			return errs[i]
		}
		st.expect("one of them", a, succeeded)
		if !a.Replayed {
			fresh++
		}
	}
	st.must(fresh == 1, "%d calls were told that they acted", fresh)
	return nil
}

func noLookAlikes(s Subject) string {
	if !s.Policy.LookAlikes() {
		return "second_intent is off: a second name is a second action"
	}
	return ""
}

// secondIntent makes the same call, named by another workflow.
func secondIntent(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	c := st.ordinary()
	if _, err := st.done(ctx, c); err != nil {
		return err
	}
	c.workflow, c.run = st.elsewhere(), st.elsewhere()
	a, err := st.call(ctx, st.first, c)
	if err != nil {
		return err
	}
	if a.Code == string(ledger.LimitExceeded) {
		st.tell("the second is refused by a limit")
		return nil
	}
	st.must(st.heard(a.OperationID, "second_intent"), "no alarm was raised")
	switch {
	case st.rules.SecondIntent == ledger.SecondIntentApprove:
		st.expect("the second", a, awaiting)
		st.asked = "Is it a second one, or the same one under another name?"
		st.tell("the second waits for a person, an alarm is raised")
		return st.effectsNow(ctx, "before a person agreed", 1)
	case a.Status == awaiting: // by another rule
		st.asked = "May it be done? It looks like another one."
		st.tell("the second waits for approval like any, an alarm is raised")
		return st.effectsNow(ctx, "before a person agreed", 1)
	}
	st.expect("the second", a, succeeded)
	st.tell("taken for a second action, an alarm is raised (second_intent: approve would ask first)")
	return nil
}
