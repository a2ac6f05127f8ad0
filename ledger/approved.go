package ledger

import (
	"context"
	"errors"
)

// runApproved makes the attempt that a person has let go, without waiting for the next call. It
// sends what was sealed when the operation was planned. A limit that is used up makes it wait.
func (l *Ledger) runApproved(ctx context.Context, op Operation) error {
	actor, ok := l.Actors[op.Action]
	if !ok || l.works.isClosed() {
		return nil // another server makes it
	}
	by, rules := "sweep:"+l.Owner, l.Rules[op.Action]
	var claimed Operation
	sought := Sought{Key: op.Key, Buckets: rules.buckets(op, l.now())}
	err := l.Store.Begin(ctx, sought, func(found Found) (m Move, err error) {
		claimed = Operation{}
		now, fresh := l.now(), found.Operation
		if fresh == nil || fresh.Status != Planned || fresh.Approval.State != Approved || fresh.Review.Open() || !now.Before(fresh.ExpiresAt) {
			return Move{}, nil
		}
		takes, refusal := rules.allow(*fresh, found.Used, now)
		switch {
		case !fresh.inScope(actor):
			m, err = fresh.Ask(now, "", ReviewScopeChanged, Note{by, "scope_changed", nil})
		case refusal != nil:
			m, err = fresh.Observe(now, Note{by, "limit_exceeded", evidence(refusal.Fields)}, func(o *Operation) { o.NextCheckAt = now.Add(l.Policy.MaxBackoff) })
		default:
			m, err = fresh.Claim(Claim{
				Owner: l.Owner, At: now, Lease: actor.Promise.Lease, Provider: actor.Provider, Scope: actor.Scope,
				Settled: true, Generation: fresh.Generation, Takes: takes,
			}, Note{by, "claimed", nil})
		}
		l.Audit.link(&m)
		claimed = m.to
		return m, err
	})
	if err != nil {
		if illegal, ok := errors.AsType[*IllegalMoveError](err); ok {
			return illegal
		}
		return unavailable(err)
	}
	if claimed.Status == Executing {
		l.attempt(ctx, claimed, nil)
	}
	return nil
}
