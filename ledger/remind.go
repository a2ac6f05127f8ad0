package ledger

import (
	"context"
	"time"
)

// reminders are the reviews that were reminded of, and when. They aren't kept: after a restart
// what is overdue is called out again.
type reminders map[string]time.Time

// remind raises the alarm of reviews that nobody has settled for long, again and again.
func (l *Ledger) remind(ctx context.Context, r *reminders) error {
	open, err := l.Store.Find(ctx, Filter{Review: true, Limit: sweepBatch})
	if err != nil {
		return err
	}
	now, still := l.now(), reminders{}
	for _, op := range open {
		last := (*r)[op.ID]
		if last.Before(op.Review.OpenedAt) {
			last = op.Review.OpenedAt
		}
		if now.Sub(last) >= l.Policy.ReviewOverdue {
			last = now
			l.alarm(ctx, "review_overdue", op)
		}
		still[op.ID] = last
	}
	*r = still
	return nil
}
