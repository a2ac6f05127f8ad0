package console

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	ticketAge  = 2 * time.Minute
	maxTickets = 100
)

// tickets let somebody in once each, without a credential. They are kept hashed.
type tickets struct {
	now func() time.Time

	mu   sync.Mutex
	good map[[sha256.Size]byte]ticket
}

type ticket struct {
	person Person
	until  time.Time
}

func (ts *tickets) issue(p Person) string {
	id := random()
	now := ts.now()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.good == nil {
		ts.good = map[[sha256.Size]byte]ticket{}
	}
	for old, t := range ts.good {
		if !now.Before(t.until) || len(ts.good) >= maxTickets {
			delete(ts.good, old)
		}
	}
	ts.good[sha256.Sum256([]byte(id))] = ticket{p, now.Add(ticketAge)}
	return id
}

// spend takes a ticket: whoever comes second with it gets nothing.
func (ts *tickets) spend(id string) (Person, bool) {
	hash := sha256.Sum256([]byte(id))
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t, ok := ts.good[hash]
	delete(ts.good, hash)
	return t.person, ok && ts.now().Before(t.until)
}
