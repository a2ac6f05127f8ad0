package console

import (
	"net/http"
	"strconv"

	"github.com/onceward/onceward/ledger"
)

// An operationPage is one operation, and what this person may do about it.
type operationPage struct {
	Op      ledger.Operation
	History []ledger.Transition
	Lost    int // transitions that a tombstone no longer has

	Arguments []fact // what will be sent, once somebody asked for it
	Shown     string // proves that this session was shown them; see shownToken

	Notice  string // what was just done
	Problem string // why nothing was done
	Entered entered

	May may
}

// may says which forms a person gets.
type may struct {
	Unseal, Approve, Deny, Resolve, Happened, Drop, Repeat bool
}

// entered is what a form was sent with, to be shown again if it was refused.
type entered struct {
	What, ProviderOperationID, Reason string
	SameContent                       bool
}

// notices are what a page says after a decision was recorded.
var notices = map[string]string{
	"approved": "You approved it. It runs with the arguments you saw.",
	"denied":   "You denied it. It never runs.",
	"resolved": "Your decision is recorded.",
	"repeat":   "One more action with this name is allowed, once and for a short time.",
}

func (c *Console) showOperation(w http.ResponseWriter, r *http.Request, s *session) error {
	p, err := c.operation(r, s)
	if err != nil {
		return err
	}
	p.Notice = notices[r.URL.Query().Get("done")]
	return c.renderOperation(w, r, s, http.StatusOK, p)
}

// operation reads an operation as one state: what came into its history since is left for
// the next look.
func (c *Console) operation(r *http.Request, s *session) (operationPage, error) {
	op, history, err := c.o.Ledger.History(r.Context(), r.PathValue("id"))
	if err != nil {
		return operationPage{}, err
	}
	for len(history) > 0 && history[len(history)-1].Seq > op.Moves {
		history = history[:len(history)-1]
	}
	p := operationPage{Op: op, History: history, May: c.may(op, s.person.Role)}
	if op.Pruned {
		p.Lost = op.Moves - len(history)
	}
	return p, nil
}

func (c *Console) may(op ledger.Operation, role Role) may {
	open := !op.Status.Final()
	drop := op.Status == ledger.Unknown || op.Status == ledger.FailedRetryable
	return may{
		Unseal:   role >= Approver && open && c.o.Unseal != nil,
		Approve:  role >= Approver && waiting(op),
		Deny:     role >= Approver && op.Status == ledger.Planned,
		Resolve:  role >= Operator && (drop || op.Review.Open() && op.Attempts > 0),
		Happened: op.Attempts > 0,
		Drop:     drop,
		Repeat:   role >= Approver && !open && !op.BaseKey.IsZero() && !op.Pruned,
	}
}

func (c *Console) renderOperation(w http.ResponseWriter, r *http.Request, s *session, status int, p operationPage) error {
	c.render(w, r, s, status, "operation", view{Title: words(p.Op.Action) + " " + p.Op.ID, Data: p})
	return nil
}

// showArguments opens what is sealed, for this one answer: it comes in no address, and no
// browser keeps it.
func (c *Console) showArguments(w http.ResponseWriter, r *http.Request, s *session) error {
	p, err := c.operation(r, s)
	if err != nil {
		return err
	}
	if !p.May.Unseal {
		p.Problem = "Its arguments are erased: it is final, and nobody needs them any more."
		return c.renderOperation(w, r, s, http.StatusConflict, p)
	}
	arguments, err := c.o.Unseal(r.Context(), p.Op)
	if err != nil {
		c.o.Log.Error("arguments can't be shown", "operation_id", p.Op.ID, "error", err)
		p.Problem = "Its arguments can't be opened here. The server's log says why."
		return c.renderOperation(w, r, s, http.StatusConflict, p)
	}
	// They were read apart from the operation: only if it has not moved do they belong together.
	now, _, err := c.o.Ledger.History(r.Context(), p.Op.ID)
	if err != nil {
		return err
	}
	if now.Moves != p.Op.Moves || arguments == nil {
		p.Problem = "It moved just now. Open the page again."
		return c.renderOperation(w, r, s, http.StatusConflict, p)
	}
	c.o.Log.Info("arguments were shown", "operation_id", p.Op.ID, "by", s.person.Name)
	p.Arguments = facts(arguments)
	p.Shown = shownToken(s, p.Op)
	return c.renderOperation(w, r, s, http.StatusOK, p)
}

// shownToken proves that a session was shown the arguments of an operation as it stands:
// nobody approves what they haven't seen.
func shownToken(s *session, op ledger.Operation) string {
	return s.token("shown", op.ID, op.Fingerprint.String(), strconv.Itoa(op.Moves))
}
