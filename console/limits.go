package console

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Limit is a bound that the policy sets, and how much of it is taken.
type Limit struct {
	Name     string // what it is for: "per day", "per run run-77"
	Action   string
	Used     int64
	Bound    int64
	Currency string // empty for a count; then the numbers are minor units of it
	Digits   int    // of the currency after the point
	FreesAt  time.Time
}

// Percent is how full it is, from 0 to 100, rounded down: 100 is only what is really full.
func (l Limit) Percent() int {
	if l.Bound <= 0 || l.Used >= l.Bound {
		return 100
	}
	return int(float64(max(l.Used, 0)) / float64(l.Bound) * 100)
}

// Level is a word for it: "full", "high" or "low".
func (l Limit) Level() string {
	switch p := l.Percent(); {
	case p >= 100:
		return "full"
	case p >= 80:
		return "high"
	}
	return "low"
}

// UsedText is Used as people write it.
func (l Limit) UsedText() string { return l.text(l.Used) }

// BoundText is Bound as people write it.
func (l Limit) BoundText() string { return l.text(l.Bound) }

func (l Limit) text(n int64) string {
	if l.Currency == "" {
		return number(n)
	}
	digits := fmt.Sprintf("%0*d", l.Digits+1, max(n, 0))
	whole, part := digits[:len(digits)-l.Digits], digits[len(digits)-l.Digits:]
	if len(whole) < 18 { // what an int64 holds of any currency
		var units int64
		for _, digit := range whole {
			units = units*10 + int64(digit-'0')
		}
		whole = number(units)
	}
	return strings.TrimSuffix(whole+"."+part, ".") + " " + l.Currency
}

func (c *Console) showLimits(w http.ResponseWriter, r *http.Request, s *session) error {
	var limits []Limit
	if c.o.Limits != nil {
		var err error
		if limits, err = c.o.Limits(r.Context()); err != nil {
			return err
		}
	}
	c.render(w, r, s, http.StatusOK, "limits", view{Title: "Limits", Data: limits})
	return nil
}
