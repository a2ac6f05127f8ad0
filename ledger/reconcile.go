package ledger

import (
	"context"
	"errors"
	"time"
)

// Reconcile asks what became of an operation, by id or key, and does what follows: it
// settles on proof, makes an attempt that is safe, or opens a review. An operation that
// has nothing to be asked about is returned as it is.
func (l *Ledger) Reconcile(ctx context.Context, name string) (Operation, error) {
	l.init()
	if !l.works.start() {
		return Operation{}, shuttingDown()
	}
	defer l.works.done()
	op, err := l.find(ctx, name)
	if err != nil {
		return Operation{}, err
	}
	reconciled, err := l.reconcile(ctx, op, true)
	if errors.Is(err, ErrStale) {
		return l.find(ctx, op.ID) // somebody else is at it
	}
	return reconciled, err
}

// reconcile returns ErrStale if op has moved since it was read: what was learnt may then
// belong to an attempt that is no longer the last.
func (l *Ledger) reconcile(ctx context.Context, op Operation, onDemand bool) (Operation, error) {
	op, err := l.expire(ctx, op)
	if err != nil {
		return op, err
	}
	actor, ok := l.actor(op.Action)
	switch {
	case op.Status == Succeeded:
		return l.watch(ctx, op, actor)
	case op.Status != Unknown:
		return op, nil
	case !ok:
		return l.ask(ctx, op, ReviewNoProvider)
	case !op.inScope(actor):
		return l.ask(ctx, op, ReviewScopeChanged)
	case op.UnsettledSince.IsZero():
		return l.tryAgain(ctx, op, actor, true, Note{"sweep:" + l.Owner, "allowed_by_person", nil})
	}
	// 1. Ask, if the provider can be asked.
	asked, settled, err := l.inquire(ctx, op, actor)
	if err != nil || !settled.IsZero() {
		return l.compareAndSet(ctx, settled, err)
	}
	// 2, 3 and 4. Nothing was found: repeat, try anew, wait, or ask a person.
	now := l.now()
	switch way := l.Policy.way(op, actor, asked, now); way.kind {
	case sendAgain:
		return l.tryAgain(ctx, op, actor, false, Note{"sweep:" + l.Owner, "sent_again_under_key", asked.proof()})
	case startAnew:
		return l.tryAgain(ctx, op, actor, true, Note{"sweep:" + l.Owner, "absence_proven", asked.proof()})
	case lookLater:
		if onDemand && now.Before(op.NextCheckAt) {
			return op, nil // it is scheduled; whoever asks often changes nothing
		}
		m, err := op.Observe(now, Note{"sweep:" + l.Owner, "looked_up", asked.proof()}, func(o *Operation) {
			o.NextCheckAt = way.at
			if asked.verdict != Absent {
				o.Checks++
			}
		})
		return l.compareAndSet(ctx, m, err)
	case askPerson:
		return l.ask(ctx, op, way.why)
	case leave:
	}
	return op, nil
}

// expire turns an operation whose worker was not heard of in time into an unknown one.
func (l *Ledger) expire(ctx context.Context, op Operation) (Operation, error) {
	now := l.now()
	if op.Status != Executing || now.Before(op.LeaseUntil) || l.clockOff() {
		return op, nil
	}
	m, err := op.Doubt(now, CodeLeaseExpired, now, Note{"sweep:" + l.Owner, "lease_expired", nil})
	return l.compareAndSet(ctx, m, err)
}

// compareAndSet carries a move out, or says ErrStale.
func (l *Ledger) compareAndSet(ctx context.Context, m Move, err error) (Operation, error) {
	if err != nil {
		return m.from, err
	}
	if err := l.commit(ctx, &m); err != nil {
		return m.from, err
	}
	return m.to, nil
}

// ask opens a review; one that is open stays as it is.
func (l *Ledger) ask(ctx context.Context, op Operation, why string) (Operation, error) {
	if op.Review.Open() {
		return op, nil
	}
	m, err := op.Ask(l.now(), "", why, Note{"sweep:" + l.Owner, "review_opened", evidence(map[string]string{"why": why})})
	return l.compareAndSet(ctx, m, err)
}

// An inquiry is what a look-up brought, and what it is worth.
type inquiry struct {
	at      time.Time // when it began
	clock   time.Time // the provider's, where its answer told
	verdict Verdict   // Absent, Unclear, or empty where nobody was asked
	code    string
}

func (q inquiry) proof() []byte {
	if q.verdict == "" {
		return nil
	}
	return evidence(map[string]string{"look_up": string(q.verdict), "code": q.code, "begun_at": q.at.Format(time.RFC3339Nano)})
}

// inquire looks the operation up. The move is the one that settles it, if it does.
func (l *Ledger) inquire(ctx context.Context, op Operation, actor Actor) (inquiry, Move, error) {
	asked := inquiry{at: l.now()}
	if actor.Lookup == nil {
		return asked, Move{}, nil
	}
	f := l.lookup(ctx, op, actor)
	asked.verdict, asked.code, asked.clock = f.Verdict, f.Code, f.Clock
	if f.Alarm != "" {
		l.alarm(ctx, f.Alarm, op)
	}
	now, note := l.now(), Note{"sweep:" + l.Owner, "found", f.proof()}
	var m Move
	var err error
	switch f.Verdict {
	case Done:
		m, err = op.Succeed(now, f.Receipt, l.firstWatch(op, f, now), note)
	case Refused:
		note.Reason = "found_rejected"
		m, err = op.Fail(now, f.Code, note)
	case Contradiction:
		if !op.Review.Open() {
			m, err = op.Ask(now, f.Code, ReviewContradiction, note)
		}
	case Absent:
	case NotSent, Unclear:
		asked.verdict = Unclear
	}
	return asked, m, err
}

// lookup asks the provider, within its deadline. A panic teaches nothing.
func (l *Ledger) lookup(ctx context.Context, op Operation, actor Actor) (f Finding) {
	defer func() {
		if p := recover(); p != nil {
			l.Log.ErrorContext(ctx, "a provider's look-up panicked", "operation_id", op.ID, "action_type", op.Action)
			f = Finding{Verdict: Unclear, Code: CodePanic}
		}
	}()
	payload, err := l.payload(ctx, op, nil)
	if err != nil && !op.Status.Final() {
		return Finding{Verdict: Unclear, Code: CodeUnsealed}
	}
	q := Question{
		OperationID: op.ID, ProviderKey: op.ProviderKey, ProviderOperationID: op.ProviderOperationID,
		Reference: op.Reference, FirstSentAt: op.FirstSentAt, Payload: payload,
	}
	for g := range op.Generation {
		q.EarlierKeys = append(q.EarlierKeys, ProviderKey(op.Key, g))
	}
	ctx, cancel := context.WithTimeout(ctx, actor.Promise.Deadline)
	defer cancel()
	f = actor.Lookup(ctx, q)
	l.Log.InfoContext(ctx, "look-up", "operation_id", op.ID, "action_type", op.Action, "verdict", f.Verdict, "code", f.Code)
	return f
}

// tryAgain claims the next attempt, compared and set with what the evidence was
// gathered for, and makes it. settled: what earlier attempts did is known.
func (l *Ledger) tryAgain(ctx context.Context, op Operation, actor Actor, settled bool, note Note) (Operation, error) {
	if l.works.isClosed() || l.clockOff() {
		return op, nil // no new claim here; another server makes it
	}
	generation := op.Generation
	if settled && op.keptError(actor.Promise) {
		generation++ // under the old key the provider would only repeat its error
	}
	m, err := op.Claim(Claim{
		Owner: l.Owner, At: l.now(), Lease: actor.Promise.Lease, Provider: actor.Provider, Scope: actor.Scope,
		Settled: settled, Generation: generation,
	}, note)
	claimed, err := l.compareAndSet(ctx, m, err)
	if err != nil {
		return op, err
	}
	return l.attempt(ctx, claimed, nil), nil
}

// keptError reports whether the last answer was an error that the provider keeps
// under the key.
func (op Operation) keptError(p Promise) bool {
	return p.CachesErrors && op.ErrorCode == CodeServerError
}
