package drill

import (
	"context"
	"fmt"
	"time"

	"github.com/onceward/onceward/ledger"
)

// maxSteps bounds how often time goes on to what is due next.
const maxSteps = 400

// settle makes a call and lets time pass until automation has come to an end with it: it is final,
// or a person is asked. A person agrees where one has to. It returns what the call gets then.
func (st *stage) settle(ctx context.Context, v *server, c call) (answer, error) {
	a, err := st.call(ctx, v, c)
	if err != nil || a.Status == refused {
		return a, err
	}
	return st.wait(ctx, v, c)
}

// wait is settle for a call that was made.
func (st *stage) wait(ctx context.Context, v *server, c call) (answer, error) {
	for range maxSteps {
		op, err := st.operation(ctx, c)
		switch {
		case err != nil:
			return answer{}, err
		case op.Status.Final() || op.Review.Open():
			st.knownAfter = max(st.knownAfter, op.UpdatedAt.Sub(st.begun))
			return st.call(ctx, v, c)
		}
		if err := st.step(ctx, v, c, op); err != nil {
			return answer{}, err
		}
	}
	return answer{}, fmt.Errorf("after %d steps it is still open", maxSteps)
}

// step goes on to what is due next, and does it.
func (st *stage) step(ctx context.Context, v *server, c call, op ledger.Operation) error {
	switch op.Status {
	case ledger.Planned:
		if op.Approval.State == ledger.Waiting {
			if _, err := v.ledger.Approve(ctx, op.ID, drillmaster); err != nil {
				return err
			}
		}
		_, err := st.call(ctx, v, c)
		return err
	case ledger.FailedRetryable:
		st.clock.to(op.NextCheckAt)
		_, err := st.call(ctx, v, c)
		return err
	case ledger.Executing:
		st.clock.to(op.LeaseUntil)
	default:
		st.clock.to(op.NextCheckAt)
		if op.NextCheckAt.IsZero() {
			st.clock.pass(time.Minute)
		}
	}
	return v.ledger.Sweep(ctx)
}

// admit brings a call so far that the next one acts: a person has agreed, where one has to.
func (st *stage) admit(ctx context.Context, v *server, c call) error {
	if st.subject.Policy.NeedsApproval(c.order.typed()) == "" {
		return nil
	}
	a, err := st.call(ctx, v, c)
	if err != nil {
		return err
	}
	if a.Status != awaiting {
		st.must(false, "it needs a person's approval, and the call got %s", a)
		return nil
	}
	_, err = v.ledger.Approve(ctx, a.OperationID, drillmaster)
	return err
}

// act makes the call that acts, after a person has agreed where one has to.
func (st *stage) act(ctx context.Context, v *server, c call) (answer, error) {
	if err := st.admit(ctx, v, c); err != nil {
		return answer{}, err
	}
	return st.call(ctx, v, c)
}

// operation is the one that a call is about, as the ledger has it.
func (st *stage) operation(ctx context.Context, c call) (ledger.Operation, error) {
	all, err := st.reader().Find(ctx, ledger.Filter{WorkflowID: c.workflow})
	if err != nil {
		return ledger.Operation{}, err
	}
	for _, op := range all {
		if op.Intent.BusinessObject == c.object {
			return op, nil
		}
	}
	return ledger.Operation{}, fmt.Errorf("the ledger has no operation for the call")
}

// reader reads past a line that is cut.
func (st *stage) reader() ledger.Store { return st.first.line.Store }
