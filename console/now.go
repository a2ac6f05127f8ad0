package console

import (
	"net/http"

	"github.com/onceward/onceward/ledger"
)

// needsShown is how many of a kind the first page shows; the list of operations has the rest.
const needsShown = 25

// A nowPage is what needs somebody now.
type nowPage struct {
	Approvals, Reviews         []ledger.Operation
	MoreApprovals, MoreReviews bool
	Alarms                     []ledger.Alarm
	AlarmsKept                 bool
}

// showNow reads the two short lists of what is open. It doesn't count: there may be millions.
func (c *Console) showNow(w http.ResponseWriter, r *http.Request, s *session) error {
	var p nowPage
	var err error
	if p.Approvals, p.MoreApprovals, err = c.some(r, ledger.Filter{Approval: true}); err != nil {
		return err
	}
	if p.Reviews, p.MoreReviews, err = c.some(r, ledger.Filter{Review: true}); err != nil {
		return err
	}
	if c.o.Alarms != nil {
		p.Alarms, p.AlarmsKept = c.o.Alarms.Recent(), true
	}
	c.render(w, r, s, http.StatusOK, "now", view{Title: "What needs me now", Data: p})
	return nil
}

// some returns the oldest that match, and whether there are more.
func (c *Console) some(r *http.Request, f ledger.Filter) ([]ledger.Operation, bool, error) {
	f.Limit = needsShown + 1
	found, err := c.o.Ledger.List(r.Context(), f)
	if len(found) > needsShown {
		return found[:needsShown], true, err
	}
	return found, false, err
}
