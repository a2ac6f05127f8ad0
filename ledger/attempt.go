package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// attempt makes the one request that op's claim allows, and records what came of it.
// It returns the operation as the ledger then knows it. sealed is what was sealed with
// the claim; nil has it read.
func (l *Ledger) attempt(ctx context.Context, op Operation, sealed []byte) Operation {
	// 4. The effect runs on a context that nobody but its deadline ends.
	f := l.apply(context.WithoutCancel(ctx), op, sealed)
	level := slog.LevelInfo
	if f.Verdict == Done {
		level = slog.LevelDebug // the usual case; a line for each would cost a tenth of the speed
	}
	l.Log.Log(ctx, level, "attempt", "operation_id", op.ID, "action_type", op.Action, "attempt", op.Attempts, "verdict", f.Verdict, "code", f.Code)
	if f.Alarm != "" {
		l.alarm(ctx, f.Alarm, op)
	}
	return l.conclude(context.WithoutCancel(ctx), op, f)
}

// apply has the provider do it, with the sealed bytes and never the caller's.
func (l *Ledger) apply(ctx context.Context, op Operation, sealed []byte) (f Finding) {
	defer func() {
		if p := recover(); p != nil {
			l.Log.ErrorContext(ctx, "a provider panicked", "operation_id", op.ID, "action_type", op.Action, "type", fmt.Sprintf("%T", p))
			f = Finding{Verdict: Unclear, Code: CodePanic, Alarm: CodePanic}
		}
	}()
	actor := l.Actors[op.Action]
	payload, err := l.payload(ctx, op, sealed)
	if err != nil {
		return Finding{Verdict: NotSent, Code: CodeUnsealed, Alarm: CodeUnsealed}
	}
	a := Attempt{
		OperationID: op.ID, Number: op.Attempts, ProviderKey: op.ProviderKey, Payload: payload,
		MaySend: func() error { return maySend(op, l.now(), actor.Promise.Deadline) },
	}
	if err := a.MaySend(); err != nil {
		return Finding{Verdict: NotSent, Code: CodeLeaseExpired}
	}
	ctx, cancel := context.WithTimeout(ctx, actor.Promise.Deadline)
	defer cancel()
	return actor.Apply(ctx, a)
}

// maySend is the last look at the clock, just before the first byte: a worker that slept
// may have lost its turn to another one, and the lease must outlast the request.
func maySend(op Operation, now time.Time, deadline time.Duration) error {
	if now.Add(deadline).After(op.LeaseUntil) {
		return ErrTooLate
	}
	return nil
}

// payload opens what is sealed for op, and reads it unless it is at hand.
func (l *Ledger) payload(ctx context.Context, op Operation, sealed []byte) (_ Payload, err error) {
	if sealed == nil {
		if sealed, err = l.Store.Sealed(ctx, op.ID); err != nil {
			return Payload{}, err
		}
	}
	return l.Sealer.Open(op.Key, sealed)
}

// conclude records what an attempt showed, fenced by the attempt's number. If it can't,
// it holds the finding and tries again with every sweep.
func (l *Ledger) conclude(ctx context.Context, op Operation, f Finding) Operation {
	concluded, err := l.record(ctx, op, f)
	if err == nil {
		return concluded
	}
	l.Log.ErrorContext(ctx, "an outcome can't be recorded yet", "operation_id", op.ID, "attempt", op.Attempts, "verdict", f.Verdict, "error", err)
	l.held.add(op, f)
	// Nobody may be told of a success that a restart would not know of.
	op.Status, op.NextCheckAt = Unknown, op.LeaseUntil
	return op
}

// record is steps 5 and 6: what the finding means for the operation, compared and set.
func (l *Ledger) record(ctx context.Context, op Operation, f Finding) (Operation, error) {
	number, fresh := op.Attempts, op
	for {
		if fresh.Status != Executing || fresh.Attempts != number {
			return l.late(ctx, fresh, f)
		}
		m, err := l.outcome(fresh, f)
		if err != nil {
			return op, err
		}
		switch err := l.commit(ctx, &m); {
		case err == nil:
			return m.to, nil
		case !errors.Is(err, ErrStale):
			return op, err
		}
		if fresh, err = l.find(ctx, op.ID); err != nil {
			return op, err
		}
	}
}

// outcome is what an attempt's finding makes of an operation. A failure proves only
// its own attempt: while an earlier one is unsettled, anything but success stays unknown.
func (l *Ledger) outcome(op Operation, f Finding) (Move, error) {
	now, by := l.now(), "worker:"+l.Owner
	note := Note{by, "provider_answered", f.proof()}
	unsettled := !op.UnsettledSince.IsZero()
	switch f.Verdict {
	case Done:
		return op.Succeed(now, f.Receipt, l.firstWatch(op, f, now), note)
	case Refused:
		if !unsettled {
			return op.Fail(now, f.Code, note)
		}
	case NotSent:
		note.Reason = "not_sent"
		if !unsettled {
			return op.Postpone(now, f.Code, now.Add(l.Policy.backoff(op.Attempts, f.RetryAfter)), l.retryUntil(op), note)
		}
	case Contradiction:
		return op.Ask(now, f.Code, ReviewContradiction, note)
	case Unclear, Absent:
		note.Reason = "no_proof"
	}
	return l.doubt(op, f, now, note)
}

// retryUntil is when an operation that was never sent is given up.
func (l *Ledger) retryUntil(op Operation) time.Time {
	return op.CreatedAt.Add(either(l.Rules[op.Action].RetryFor, l.Policy.RetryFor))
}

// doubt records an open outcome, with what can be done about it next.
func (l *Ledger) doubt(op Operation, f Finding, now time.Time, note Note) (Move, error) {
	actor, _ := l.actor(op.Action)
	asked := op
	asked.ErrorCode = f.Code
	if actor.Lookup == nil {
		if way := l.Policy.way(asked, actor, inquiry{at: now}, now); way.kind == askPerson {
			return op.Ask(now, f.Code, way.why, note)
		}
	}
	next := now // the first look costs nothing and tells most
	if op.Attempts > 1 {
		next = now.Add(l.Policy.backoff(op.Attempts-1, f.RetryAfter))
	}
	return op.Doubt(now, f.Code, next, note)
}

// late deals with a finding whose attempt is no longer the current one. A success is
// never dropped; anything else proves nothing about what came after.
func (l *Ledger) late(ctx context.Context, op Operation, f Finding) (Operation, error) {
	if f.Verdict != Done {
		return op, nil
	}
	return l.change(ctx, op, func(op Operation) (Move, error) {
		note := Note{"worker:" + l.Owner, "late_success", f.proof()}
		if op.Status != Succeeded {
			return op.Succeed(l.now(), f.Receipt, l.firstWatch(op, f, l.now()), note)
		}
		if op.ProviderOperationID == f.Receipt.ProviderOperationID || f.Receipt.ProviderOperationID == "" {
			return Move{}, nil
		}
		return op.Ask(l.now(), "", ReviewContradiction, note)
	})
}

// change applies a decision that depends on nothing but the operation as it is now,
// however often that changes meanwhile.
func (l *Ledger) change(ctx context.Context, op Operation, decide func(Operation) (Move, error)) (Operation, error) {
	for {
		m, err := decide(op)
		if err != nil || m.IsZero() {
			return op, err
		}
		switch err := l.commit(ctx, &m); {
		case err == nil:
			return m.to, nil
		case !errors.Is(err, ErrStale):
			return op, err
		}
		if op, err = l.find(ctx, op.ID); err != nil {
			return op, err
		}
	}
}

// commit writes a move and raises the alarms that belong to it.
func (l *Ledger) commit(ctx context.Context, m *Move) error {
	l.Audit.link(m)
	if err := l.Store.Record(ctx, *m); err != nil {
		return err
	}
	if m.to.Review.Open() && !m.from.Review.Open() {
		l.alarm(ctx, "review_opened", m.to)
	}
	if m.to.Status == Succeeded && m.from.Status == FailedFinal {
		l.alarm(ctx, "late_success", m.to)
	}
	return nil
}

// firstWatch is when an accepted object is looked at again: it may yet turn rejected. Where
// nobody can be asked, it isn't.
func (l *Ledger) firstWatch(op Operation, f Finding, now time.Time) time.Time {
	if f.Receipt.State != Accepted || l.Actors[op.Action].Lookup == nil {
		return time.Time{}
	}
	return now.Add(l.Policy.FirstWatch)
}

// proof is what goes into the history: the provider's evidence, or what was seen instead.
func (f Finding) proof() []byte {
	if len(f.Receipt.Evidence) > 0 {
		return f.Receipt.Evidence
	}
	seen := map[string]string{"verdict": string(f.Verdict)}
	if f.Code != "" {
		seen["code"] = f.Code
	}
	if f.Receipt.ProviderOperationID != "" {
		seen["provider_operation_id"] = f.Receipt.ProviderOperationID
	}
	return evidence(seen)
}
