package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/onceward/onceward/ledger"
)

const maxReason = 400 // bytes; the history takes 512

// A decision is something that a person may decide about an operation.
type decision struct {
	path    string // the last part of its form's address
	role    Role
	done    string          // which notice is shown afterwards
	reasons map[string]bool // what stands in the history once it is recorded
	carry   func(c *Console, r *http.Request, op ledger.Operation, e entered, who ledger.Person) error
}

var decisions = []decision{
	{"approve", Approver, "approved", map[string]bool{"approved": true}, (*Console).approve},
	{"deny", Approver, "denied", map[string]bool{"denied": true}, (*Console).deny},
	{"resolve", Operator, "resolved", map[string]bool{"resolved_happened": true, "resolved_dropped": true, "resolved_retry": true}, (*Console).resolve},
	{"repeat", Approver, "repeat", map[string]bool{"repeat_allowed": true}, (*Console).allowRepeat},
}

// stale is shown where a decision was about something else than what there is now.
const stale = "It has moved since you looked, so your decision was about something else. Nothing was done. This is how it stands now: decide again."

// decide carries a decision out if the operation still is what the person saw. The ledger
// compares once more, in the transaction that records it.
func (c *Console) decide(w http.ResponseWriter, r *http.Request, s *session, d decision) error {
	p, err := c.operation(r, s)
	if err != nil {
		return err
	}
	p.Entered = entered{
		What: r.PostForm.Get("what"), ProviderOperationID: strings.TrimSpace(r.PostForm.Get("provider_operation_id")),
		Reason: strings.TrimSpace(r.PostForm.Get("reason")), SameContent: r.PostForm.Get("same_content") == "yes",
	}
	refuse := func(status int, problem string) error {
		p.Problem = problem
		return c.renderOperation(w, r, s, status, p)
	}
	seen, err := strconv.Atoi(r.PostForm.Get("moves"))
	if err != nil || seen < 1 {
		return refuse(http.StatusBadRequest, "The form was incomplete. Nothing was done.")
	}
	if p.Op.Moves != seen || p.Op.Fingerprint.String() != r.PostForm.Get("fingerprint") {
		if c.recorded(p, seen, s.person, d) {
			return done(w, r, p.Op, d)
		}
		return refuse(http.StatusConflict, stale)
	}
	if problem := p.Entered.problem(d); problem != "" {
		return refuse(http.StatusBadRequest, problem)
	}
	if d.path == "approve" && !equal(r.PostForm.Get("shown"), shownToken(s, p.Op)) {
		return refuse(http.StatusBadRequest, "Look at the arguments first. Nothing was approved.")
	}
	err = d.carry(c, r, p.Op, p.Entered, ledger.Person{By: s.person.Name, Reason: p.Entered.Reason, Saw: seen})
	refused, ok := errors.AsType[*ledger.DecisionError](err)
	switch {
	case err == nil:
		return done(w, r, p.Op, d)
	case !ok:
		return err
	}
	entered := p.Entered
	if p, err = c.operation(r, s); err != nil {
		return err
	}
	if c.recorded(p, seen, s.person, d) { // the same form came twice, at the same time
		return done(w, r, p.Op, d)
	}
	p.Entered = entered
	return refuse(http.StatusConflict, "Nothing was done: "+visible(refused.Problem)+".")
}

// recorded reports whether what a person decides is what happened next after what they
// saw: then the form came a second time.
func (c *Console) recorded(p operationPage, seen int, who Person, d decision) bool {
	for _, t := range p.History {
		if t.Seq == seen+1 {
			return t.Actor == "person:"+who.Name && d.reasons[t.Reason]
		}
	}
	return false
}

func done(w http.ResponseWriter, r *http.Request, op ledger.Operation, d decision) error {
	redirect(w, r, "/console/operations/"+url.PathEscape(op.ID)+"?done="+d.done)
	return nil
}

// problem says what is wrong with what was entered.
func (e entered) problem(d decision) string {
	broken := func(s string) bool { return len(s) > maxReason || strings.ContainsFunc(s, unicode.IsControl) }
	switch {
	case broken(e.Reason):
		return "Nothing was done: the reason is one line of at most 400 characters."
	case broken(e.ProviderOperationID):
		return "Nothing was done: the provider's id is one line of at most 400 characters."
	case d.path != "resolve":
		return ""
	case e.What == "":
		return "Nothing was done: say what you found out."
	case e.Reason == "":
		return "Nothing was done: say how you know. It is kept in the history."
	case e.What == string(ledger.Happened) && e.ProviderOperationID == "":
		return "Nothing was done: say under which id the provider has it."
	}
	return ""
}

func (c *Console) approve(r *http.Request, op ledger.Operation, _ entered, who ledger.Person) error {
	_, err := c.o.Ledger.Approve(r.Context(), op.ID, who)
	return err
}

func (c *Console) deny(r *http.Request, op ledger.Operation, _ entered, who ledger.Person) error {
	_, err := c.o.Ledger.Deny(r.Context(), op.ID, who)
	return err
}

func (c *Console) resolve(r *http.Request, op ledger.Operation, e entered, who ledger.Person) error {
	if e.What != string(ledger.Happened) {
		e.ProviderOperationID = ""
	}
	_, err := c.o.Ledger.Resolve(r.Context(), op.ID, ledger.Resolution(e.What), e.ProviderOperationID, op.Attempts, who)
	return err
}

// allowRepeat is about what is final: a planned operation is approved or denied, as what it is.
func (c *Console) allowRepeat(r *http.Request, op ledger.Operation, e entered, who ledger.Person) error {
	if !op.Status.Final() {
		return &ledger.DecisionError{OperationID: op.ID, Problem: "only what is final can be repeated"}
	}
	_, err := c.o.Ledger.AllowRepeat(r.Context(), op.ID, e.SameContent, who)
	return err
}
