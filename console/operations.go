package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A searchForm is what the page's form was sent with, as it was sent.
type searchForm struct {
	Name, Status, Action, Workflow, Run, Tenant, Needs, From, To string
}

// More reports whether the fields that are folded away say something.
func (f searchForm) More() bool { return f.Run+f.Tenant+f.From+f.To != "" }

// An operationsPage is a page of the list.
type operationsPage struct {
	Form     searchForm
	Statuses []ledger.Status
	Actions  []string
	Problems []string
	Narrowed bool // the form says something
	result
	Older  string // the next page's address, empty if there is none
	Newest string // the first page's, empty on it
}

func (c *Console) showOperations(w http.ResponseWriter, r *http.Request, s *session) error {
	form, problems := readSearchForm(r.URL.Query())
	if form.Name != "" {
		op, _, err := c.o.Ledger.History(r.Context(), form.Name)
		if err == nil {
			redirect(w, r, "/console/operations/"+url.PathEscape(op.ID))
			return nil
		}
		if refusal, ok := errors.AsType[*ledger.Refusal](err); !ok || refusal.Code != ledger.NotFound {
			return err
		}
		problems = append(problems, "There is no operation with this id or key.")
	}
	p := operationsPage{Form: form, Statuses: ledger.Statuses(), Actions: c.o.Actions, Narrowed: form != searchForm{}}
	q, more := form.search()
	if p.Problems = append(problems, more...); len(p.Problems) == 0 {
		if err := q.begin(r.URL.Query()); err != nil {
			return err
		}
		var err error
		if p.result, err = c.find(r.Context(), q); err != nil {
			return err
		}
		if p.next != nil {
			p.Older = form.address(p.next.query())
		}
		if q.at.after != "" || len(r.URL.Query().Get("before")) > 0 {
			p.Newest = form.address(url.Values{})
		}
	}
	c.render(w, r, s, http.StatusOK, "operations", view{Title: "Operations", Data: p})
	return nil
}

// fields are the form's fields under their names in an address.
func (f *searchForm) fields() map[string]*string {
	return map[string]*string{
		"name": &f.Name, "status": &f.Status, "action": &f.Action, "workflow": &f.Workflow, "run": &f.Run,
		"tenant": &f.Tenant, "needs": &f.Needs, "from": &f.From, "to": &f.To,
	}
}

func readSearchForm(q url.Values) (f searchForm, problems []string) {
	for name, field := range f.fields() {
		*field = strings.TrimSpace(q.Get(name))
		if len(*field) > 512 {
			*field = ""
			problems = append(problems, "The field "+name+" is too long.")
		}
	}
	slices.Sort(problems)
	return f, problems
}

func (f *searchForm) address(v url.Values) string {
	for name, field := range f.fields() {
		if *field != "" {
			v.Set(name, *field)
		}
	}
	if len(v) == 0 {
		return "/console/operations"
	}
	return "/console/operations?" + v.Encode()
}

// search makes a question of a form, or says what is wrong with it.
func (f *searchForm) search() (q search, problems []string) {
	q.filter = ledger.Filter{Action: f.Action, WorkflowID: f.Workflow, RunID: f.Run}
	if f.Tenant != "" {
		q.filter.Tenant = &f.Tenant
	}
	if status := ledger.Status(f.Status); status.Known() {
		q.filter.Statuses = []ledger.Status{status}
		q.indexed = !status.Final()
	} else if f.Status != "" {
		problems = append(problems, "There is no such status.")
	}
	switch f.Needs {
	case "":
	case "approval":
		q.filter.Approval = true
	case "review":
		q.filter.Review = true
	default:
		problems = append(problems, "An operation needs an approval, a review, or nothing.")
	}
	day := func(field, name string) time.Time {
		t, err := time.Parse(time.DateOnly, field)
		if err != nil && field != "" {
			problems = append(problems, "The "+name+" day is written like 2026-11-30.")
		}
		return t
	}
	q.since = day(f.From, "first")
	if until := day(f.To, "last"); !until.IsZero() {
		q.at.until = until.AddDate(0, 0, 1)
	}
	if !q.since.IsZero() && !q.at.until.IsZero() && !q.since.Before(q.at.until) {
		problems = append(problems, "The first day is after the last one.")
	}
	q.indexed = q.indexed || f.Needs != "" || f.Workflow != ""
	q.everything = *f == searchForm{}
	return q, problems
}

// begin moves a question to the page that an address names.
func (q *search) begin(v url.Values) error {
	broken := &failure{http.StatusBadRequest, "This address is broken", "Begin again with the list of operations."}
	for name, to := range map[string]*time.Time{"before": &q.at.until, "down": &q.at.down} {
		if text := v.Get(name); text != "" {
			t, err := time.Parse(time.RFC3339Nano, text)
			if err != nil || !to.IsZero() && t.After(*to) {
				return broken
			}
			*to = t
		}
	}
	if text := v.Get("span"); text != "" {
		span, err := time.ParseDuration(text)
		if err != nil {
			return broken
		}
		q.at.span = span
	}
	if q.at.after = v.Get("after"); len(q.at.after) > 128 {
		return broken
	}
	return nil
}
