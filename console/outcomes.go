package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/onceward/onceward/ledger"
)

// The chart is made from so many operations at most, the newest ones, and reaches so far back
// at most. It costs the same however many there are.
const (
	chartHours = 24
	chartMost  = 5000
)

// An hour is what became of the operations that were created in it.
type hour struct {
	At                               time.Time
	Succeeded, Failed, Open, Unknown int
}

func (h hour) total() int { return h.Succeeded + h.Failed + h.Open + h.Unknown }

func (h *hour) count(s ledger.Status) {
	switch s {
	case ledger.Succeeded:
		h.Succeeded++
	case ledger.FailedFinal:
		h.Failed++
	case ledger.Unknown:
		h.Unknown++
	case ledger.Planned, ledger.Executing, ledger.FailedRetryable:
		h.Open++
	}
}

// An outcomesPage is a chart, and the numbers it is drawn from.
type outcomesPage struct {
	Chart chart
	Hours []hour // newest first, those with operations only
	Total int
	Most  int
	Cut   time.Time // set where there were more than Most: those before aren't counted
}

func (c *Console) showOutcomes(w http.ResponseWriter, r *http.Request, s *session) error {
	now := c.o.Now().UTC()
	from := now.Truncate(time.Hour).Add(-(chartHours - 1) * time.Hour)
	found, err := c.list(r.Context(), ledger.Filter{Newest: true, Limit: chartMost})
	if err != nil {
		return err
	}
	p := outcomesPage{Most: chartMost}
	if n := len(found); n == chartMost && !found[n-1].CreatedAt.Before(from) {
		p.Cut = found[n-1].CreatedAt
	}
	found = slices.DeleteFunc(found, func(op ledger.Operation) bool { return op.CreatedAt.Before(from) })
	p.Total = len(found)
	hours := hourly(from, found)
	p.Chart = draw(hours)
	for i := len(hours) - 1; i >= 0; i-- {
		if hours[i].total() > 0 {
			p.Hours = append(p.Hours, hours[i])
		}
	}
	c.render(w, r, s, http.StatusOK, "outcomes", view{Title: "Outcomes", Data: p})
	return nil
}

func hourly(from time.Time, found []ledger.Operation) []hour {
	hours := make([]hour, chartHours)
	for i := range hours {
		hours[i].At = from.Add(time.Duration(i) * time.Hour)
	}
	for _, op := range found {
		i := int(op.CreatedAt.Sub(from) / time.Hour)
		hours[min(max(i, 0), chartHours-1)].count(op.Status)
	}
	return hours
}
