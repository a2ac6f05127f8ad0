package drill

import (
	"strconv"
	"sync"
	"time"
)

// A clock is the time of the ledger and of the provider. It stands still until it is told to go on.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock(zone *time.Location) *clock {
	if zone == nil {
		zone = time.UTC
	}
	return &clock{now: time.Date(2026, time.January, 5, 12, 0, 0, 0, zone)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// to goes on to a time, never back.
func (c *clock) to(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t.In(c.now.Location())
	}
}

// nextNoon goes on to a noon at least a day away: what one scenario took of a day's limits is not
// missing in the next.
func (c *clock) nextNoon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = time.Date(c.now.Year(), c.now.Month(), c.now.Day()+2, 12, 0, 0, 0, c.now.Location())
}

func formatSeconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}
