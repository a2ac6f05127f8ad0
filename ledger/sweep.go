package ledger

import (
	"context"
	"errors"
	"sync"
	"time"
)

// How much one sweep takes on. What is left waits for the next one.
const (
	sweepBatch   = 500
	sweepWorkers = 8
)

// Run sweeps now and every interval, until ctx is done.
func (l *Ledger) Run(ctx context.Context, every time.Duration) {
	l.init()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var overdue reminders
	for {
		l.checkClock(ctx)
		if err := errors.Join(l.Sweep(ctx), l.Seal(ctx), l.remind(ctx, &overdue)); err != nil && ctx.Err() == nil {
			l.Log.Error("the sweep failed; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Sweep does what time has made due: it records the outcomes that are held, turns
// expired leases into unknown, looks unknown ones up, and ends what has lapsed.
// An error of one operation doesn't keep the others from it.
func (l *Ledger) Sweep(ctx context.Context) error {
	l.init()
	l.held.retry(func(h heldOutcome) error {
		_, err := l.record(ctx, h.op, h.finding)
		return err
	})
	if l.clockOff() {
		return nil // what seems to have lapsed may not have
	}
	due, err := l.Store.Find(ctx, Filter{Due: l.now(), Limit: sweepBatch})
	if err != nil {
		return err
	}
	work := make(chan Operation)
	var workers sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range min(sweepWorkers, len(due)) {
		workers.Go(func() {
			for op := range work {
				if err := l.sweep(ctx, op); err != nil && !errors.Is(err, ErrStale) {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, op := range due {
		if ctx.Err() == nil {
			work <- op
		}
	}
	close(work)
	workers.Wait()
	return failed
}

func (l *Ledger) sweep(ctx context.Context, op Operation) error {
	if !l.works.start() {
		return nil
	}
	defer l.works.done()
	var err error
	switch op.Status {
	case Executing, Unknown, Succeeded:
		_, err = l.reconcile(ctx, op, false)
	case Planned:
		if l.now().Before(op.ExpiresAt) {
			return l.runApproved(ctx, op)
		}
		m, stepErr := op.Fail(l.now(), CodeApprovalExpired, Note{"sweep:" + l.Owner, "expired", nil})
		_, err = l.compareAndSet(ctx, m, stepErr)
	case FailedRetryable:
		m, stepErr := op.Fail(l.now(), CodeRetryExpired, Note{"sweep:" + l.Owner, "retry_over", nil})
		_, err = l.compareAndSet(ctx, m, stepErr)
	case FailedFinal:
	}
	return err
}

// held are outcomes that couldn't be recorded. They are kept for as long as the process
// lives; should it end, the operation's lease does, and it is looked up.
type held struct {
	mu       sync.Mutex
	outcomes []heldOutcome
}

type heldOutcome struct {
	op      Operation
	finding Finding
}

func (h *held) add(op Operation, f Finding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outcomes = append(h.outcomes, heldOutcome{op, f})
}

// retry tries all held outcomes once and keeps those that fail again.
func (h *held) retry(record func(heldOutcome) error) {
	h.mu.Lock()
	outcomes := h.outcomes
	h.outcomes = nil
	h.mu.Unlock()
	for _, o := range outcomes {
		if record(o) != nil {
			h.mu.Lock()
			h.outcomes = append(h.outcomes, o)
			h.mu.Unlock()
		}
	}
}
