package console

import (
	"slices"
	"sync"

	"github.com/onceward/onceward/ledger"
)

// alarmsKept bounds how many alarms are remembered.
const alarmsKept = 50

// Alarms remembers the last alarms that this process raised. What must not be forgotten
// stands in the ledger: a review stays open until somebody decides. The zero value is ready
// for use.
type Alarms struct {
	mu   sync.Mutex
	kept []ledger.Alarm
}

// Note remembers an alarm.
func (a *Alarms) Note(alarm ledger.Alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.kept) >= alarmsKept {
		a.kept = slices.Delete(a.kept, 0, len(a.kept)-alarmsKept+1)
	}
	a.kept = append(a.kept, alarm)
}

// Recent returns what is remembered, newest first.
func (a *Alarms) Recent() []ledger.Alarm {
	a.mu.Lock()
	defer a.mu.Unlock()
	recent := slices.Clone(a.kept)
	slices.Reverse(recent)
	return recent
}
