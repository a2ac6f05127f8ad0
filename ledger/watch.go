package ledger

import (
	"context"
	"time"
)

// watch looks at an object that was accepted and may yet turn rejected. Success stays
// success: it meant that the provider took it on. A rejection is noted and alarmed.
func (l *Ledger) watch(ctx context.Context, op Operation, actor Actor) (Operation, error) {
	if actor.Lookup == nil || !op.inScope(actor) || op.Pruned {
		return l.stopWatching(ctx, op)
	}
	f := l.lookup(ctx, op, actor)
	rejected := f.Verdict == Refused && f.Receipt.State == Rejected
	settled := f.Verdict == Done && f.Receipt.State == Settled
	if op.NextCheckAt.IsZero() && (!rejected || f.Receipt.ProviderStatus == op.ProviderStatus) {
		return op, nil // asked by hand, and nothing is new
	}
	now := l.now()
	m, err := op.Observe(now, Note{"sweep:" + l.Owner, "looked_up", f.proof()}, func(o *Operation) {
		o.take(Receipt{ProviderStatus: f.Receipt.ProviderStatus})
		o.NextCheckAt = l.nextWatch(op, now)
		if rejected || settled {
			o.NextCheckAt = time.Time{}
		}
	})
	op, err = l.compareAndSet(ctx, m, err)
	if err == nil && rejected {
		l.alarm(ctx, "rejected_later", op)
	}
	return op, err
}

// stopWatching takes an operation off the sweep's list: nobody here can be asked about it.
func (l *Ledger) stopWatching(ctx context.Context, op Operation) (Operation, error) {
	if op.NextCheckAt.IsZero() {
		return op, nil
	}
	note := Note{"sweep:" + l.Owner, "not_watched", evidence(map[string]string{"provider_status": op.ProviderStatus})}
	m, err := op.Observe(l.now(), note, func(o *Operation) { o.NextCheckAt = time.Time{} })
	return l.compareAndSet(ctx, m, err)
}

// nextWatch spaces the looks ever wider; after WatchFor there are none.
func (l *Ledger) nextWatch(op Operation, now time.Time) time.Time {
	age := now.Sub(op.CompletedAt)
	next := now.Add(3 * max(age, l.Policy.FirstWatch))
	if next.Sub(op.CompletedAt) > l.Policy.WatchFor {
		return time.Time{}
	}
	return next
}
