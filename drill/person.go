package drill

import (
	"context"

	"github.com/onceward/onceward/ledger"
)

// personScenarios are about actions that need somebody's approval.
func personScenarios() []scenario {
	return []scenario{
		{"it needs approval", noApproval, waits},
		{"it is approved", noApproval, approved},
		{"it is denied", noApproval, denied},
		{"nobody decides in time", noApproval, lapsed},
		{"another action under an approved name", noApproval, changedAfterApproval},
	}
}

func noApproval(s Subject) string {
	if _, ok := s.sensitive(s.plain()); !ok {
		return "nobody has to agree (approval: never)"
	}
	return ""
}

// planned opens the stage and makes a call that has to wait for a person.
func (st *stage) planned(ctx context.Context) (c call, id string, err error) {
	if err := st.open(ctx); err != nil {
		return c, "", err
	}
	o, _ := st.subject.sensitive(st.subject.plain())
	o.name = st.name
	c = st.about(o)
	a, err := st.call(ctx, st.first, c)
	if err != nil {
		return c, "", err
	}
	st.expect("the call", a, awaiting)
	return c, a.OperationID, st.effectsNow(ctx, "before a person agreed", 0)
}

func waits(ctx context.Context, st *stage) error {
	c, _, err := st.planned(ctx)
	if err != nil {
		return err
	}
	for range 3 { // neither a repeat nor automation lets it go
		a, err := st.call(ctx, st.first, c)
		if err != nil {
			return err
		}
		st.expect("a repeat", a, awaiting)
		if err := st.first.ledger.Sweep(ctx); err != nil {
			return err
		}
	}
	st.asked = "May it be done?"
	st.tell("it waits, repeats wait too, one request for a person")
	return st.effectsNow(ctx, "before a person agreed", 0)
}

func approved(ctx context.Context, st *stage) error {
	c, id, err := st.planned(ctx)
	if err != nil {
		return err
	}
	if _, err := st.first.ledger.Approve(ctx, id, drillmaster); err != nil {
		return err
	}
	if st.rules.RunOnApproval {
		if err := st.first.ledger.Sweep(ctx); err != nil {
			return err
		}
		if err := st.effectsNow(ctx, "after a person agreed", 1); err != nil {
			return err
		}
	}
	for range 3 {
		a, err := st.call(ctx, st.first, c)
		if err != nil {
			return err
		}
		st.expect("the call after a person agreed", a, succeeded)
	}
	st.tell("done once, repeats get its result")
	return st.effectsNow(ctx, "after a person agreed", 1)
}

func denied(ctx context.Context, st *stage) error {
	c, id, err := st.planned(ctx)
	if err != nil {
		return err
	}
	if _, err := st.first.ledger.Deny(ctx, id, drillmaster); err != nil {
		return err
	}
	return st.never(ctx, c)
}

func lapsed(ctx context.Context, st *stage) error {
	c, id, err := st.planned(ctx)
	if err != nil {
		return err
	}
	op, err := st.operation(ctx, c)
	if err != nil {
		return err
	}
	st.clock.to(op.ExpiresAt)
	if _, err := st.first.ledger.Approve(ctx, id, drillmaster); err == nil {
		st.must(false, "it could be approved after its time was over")
	}
	return st.never(ctx, c)
}

// never expects that an action that wasn't let go stays undone, whatever comes.
func (st *stage) never(ctx context.Context, c call) error {
	for range 2 {
		a, err := st.call(ctx, st.first, c)
		if err != nil {
			return err
		}
		st.expect("the repeat", a, failedFinal)
		if err := st.first.ledger.Sweep(ctx); err != nil {
			return err
		}
	}
	return st.effectsNow(ctx, "without approval", 0)
}

func changedAfterApproval(ctx context.Context, st *stage) error {
	c, id, err := st.planned(ctx)
	if err != nil {
		return err
	}
	if _, err := st.first.ledger.Approve(ctx, id, drillmaster); err != nil {
		return err
	}
	if st.rules.RunOnApproval { // else it could have run before the other call came
		if err := st.first.ledger.Sweep(ctx); err != nil {
			return err
		}
	}
	other := c
	other.order = c.order.other()
	a, err := st.call(ctx, st.first, other)
	if err != nil {
		return err
	}
	st.conflicts("the other call", a)
	a, err = st.call(ctx, st.first, c)
	st.must(a.Status == string(ledger.AnswerSucceeded), "the approved call got %s", a)
	st.tell("refused: the approval is for what was approved")
	return err
}
