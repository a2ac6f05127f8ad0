package ledger

import (
	"context"
	"sync/atomic"
	"time"
)

// A Clocked store can tell how far its clock is ahead of ours. Times come from here, never
// from the database; but with several servers on one, theirs must agree, and the database is
// what all can compare with.
type Clocked interface {
	ClockSkew(ctx context.Context) (time.Duration, error)
}

// A Waiter is a store that can tell at once that another server has moved an operation. The
// channel gets a value, or is closed, when it may have; stop ends the waiting. It may miss one:
// whoever waits polls besides.
type Waiter interface {
	Moved(operationID string) (moved <-chan struct{}, stop func())
}

// skew is how far our clock is off, as last seen, in nanoseconds.
type skew struct{ atomic.Int64 }

// checkClock compares our clock with the store's, if that has one. What can't be asked leaves
// what was known.
func (l *Ledger) checkClock(ctx context.Context) {
	clocked, ok := l.Store.(Clocked)
	if !ok {
		return
	}
	off, err := clocked.ClockSkew(ctx)
	if err != nil {
		return
	}
	was := l.clockOff()
	l.skew.Store(int64(off.Abs()))
	if now := l.clockOff(); now && !was {
		l.Log.Error("this server's clock and the database's differ by more than leases allow; no new attempt is made here until they agree", "skew", off)
		l.alarm(ctx, "clock_skew", Operation{})
	} else if was && !now {
		l.Log.Info("the clocks agree again", "skew", off)
	}
}

// clockOff reports whether our clock may take another server's running attempt for a lapsed
// one: half of what a lease is longer than a request, for both may be off.
func (l *Ledger) clockOff() bool {
	off := time.Duration(l.skew.Load())
	for _, a := range l.Actors {
		if off > (a.Promise.Lease-a.Promise.Deadline)/2 {
			return true
		}
	}
	return false
}

// actor is who serves an action type. Where several machines share the ledger, their clocks may differ
// by what clockOff tolerates, each way: what one of them counts from a lease or from the first request
// waits so much longer.
func (l *Ledger) actor(action string) (Actor, bool) {
	a, ok := l.Actors[action]
	if _, shared := l.Store.(Clocked); shared {
		tolerated := a.Promise.Lease - a.Promise.Deadline
		a.Promise.Settle += tolerated
		a.Promise.Margin += tolerated
	}
	return a, ok
}

func clocksDiffer() *Refusal {
	return &Refusal{Code: LedgerUnavailable, RetryAfter: time.Minute,
		Message: "This server's clock and the ledger's differ too much, so nothing was done. Set the clock; the same call can then be made again."}
}
