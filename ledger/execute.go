package ledger

import (
	"context"
	"errors"
	"time"
)

// Execute lets the action happen, or answers from what is known of it. The numbers are
// those of docs/architecture.md; step 1, decoding and naming the call, is the
// caller's.
//
// An error is a *Refusal, and then nothing was done; or a bug, and then the outcome
// is open and the operation can be looked at.
func (l *Ledger) Execute(ctx context.Context, r Request) (Answer, error) {
	l.init()
	// 2. A caller that is gone starts nothing. After the claim nobody looks at ctx again.
	if err := ctx.Err(); err != nil {
		return Answer{}, &Refusal{Code: ShuttingDown, Cause: err, Message: "The call was cancelled before anything was done."}
	}
	k := flightKey{key: r.Key, fingerprint: r.Digest.Fingerprint}
	if !r.BaseKey.IsZero() {
		k.key, k.content = r.BaseKey, r.Digest.Content
	}
	f, leads, refusal := l.flights.board(k)
	if refusal != nil {
		return Answer{}, refusal
	}
	if leads {
		if a, ok := l.finals.get(&r, l.now()); ok {
			l.flights.fly(k, f, func() (Answer, error) { return a, nil })
			return a, nil
		}
		if !l.works.start() {
			l.flights.fly(k, f, func() (Answer, error) { return Answer{}, shuttingDown() })
			return Answer{}, shuttingDown()
		}
		detached := context.WithoutCancel(ctx)
		go func() {
			defer l.works.done()
			l.flights.fly(k, f, func() (Answer, error) { return l.run(detached, &r, f) })
		}()
	}
	return l.await(ctx, &r, f, leads)
}

// await waits for a flight, for as long as a call may take. Its work goes on when
// nobody waits any more.
func (l *Ledger) await(ctx context.Context, r *Request, f *flight, leads bool) (Answer, error) {
	patience := time.NewTimer(l.answerWithin(r))
	defer patience.Stop()
	select {
	case <-f.landed:
	case <-patience.C:
		return l.inProgress(f)
	case <-ctx.Done():
		return l.inProgress(f)
	}
	a := f.answer
	if !leads && f.err == nil {
		// 7. The result is the first call's, and so were the arguments.
		a.Replayed = true
		d := decider{request: r}
		a.Ignored = d.ignored(a.Operation)
	}
	return a, f.err
}

// answerWithin is how long a call waits for its own result.
func (l *Ledger) answerWithin(r *Request) time.Duration {
	return either(l.Rules[r.Action].AnswerWithin, l.Policy.AnswerWithin)
}

func (l *Ledger) inProgress(f *flight) (Answer, error) {
	a := Answer{Status: AnswerInProgress, Replayed: true, RetryAfter: 5 * time.Second}
	if op := f.operation.Load(); op != nil {
		a.Operation = *op
	}
	return a, nil
}

// run is one call's work. It ends with an answer, or with the time that a call may
// take.
func (l *Ledger) run(ctx context.Context, r *Request, f *flight) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, l.answerWithin(r))
	defer cancel()
	for {
		// 3. One durable transaction reads, decides and writes.
		d, err := l.begin(ctx, r)
		if err != nil {
			return Answer{}, err
		}
		f.operation.Store(&d.op)
		if d.alike != "" {
			l.alarm(ctx, "second_intent", d.op)
		}
		switch d.next {
		case reply:
			l.finals.put(d.op, l.now())
			a := answer(d.op, d.replayed)
			a.Ignored = d.ignored
			a.RetryAfter = l.retryAfter(d.op)
			return a, nil
		case refuse:
			l.alarm(ctx, string(d.refusal.Code), d.op)
			return Answer{}, d.refusal
		case attempt:
			// 4, 5 and 6.
			op := l.attempt(ctx, d.op, d.sealed)
			l.finals.put(op, l.now())
			a := answer(op, false)
			a.Ignored, a.RetryAfter = d.ignored, l.retryAfter(op)
			return a, nil
		case wait:
			if moved := l.waitFor(ctx, d.op); !moved {
				a := answer(d.op, true)
				a.RetryAfter = l.retryAfter(d.op)
				return a, nil
			}
		case reconcile:
			if l.clockOff() {
				return answer(d.op, true), nil // what seems to be over may not be
			}
			op, err := l.reconcile(ctx, d.op, true)
			if err != nil && !errors.Is(err, ErrStale) {
				return Answer{}, err
			}
			if err != nil || op.Status == Executing {
				if !l.waitFor(ctx, op) { // somebody else is at it
					return answer(op, true), nil
				}
				continue
			}
			a := answer(op, true)
			a.Ignored, a.RetryAfter = d.ignored, l.retryAfter(op)
			return a, nil
		}
	}
}

// begin is step 3.
func (l *Ledger) begin(ctx context.Context, r *Request) (decision, error) {
	actor, ok := l.Actors[r.Action]
	if !ok {
		return decision{}, errors.New("ledger: nobody serves " + r.Action)
	}
	var made decision
	rules := l.Rules[r.Action]
	d := decider{request: r, actor: actor, policy: l.Policy, rules: rules, owner: l.Owner, newID: l.id(), seal: l.sealFor(r)}
	err := l.Store.Begin(ctx, l.sought(r, rules), func(found Found) (m Move, err error) {
		d.now = l.now()
		made, m, err = d.decide(found)
		if begins := m.Inserts() || made.next == attempt; begins && err == nil && !m.IsZero() {
			switch { // nothing new begins here any more
			case l.works.isClosed():
				return Move{}, shuttingDown()
			case l.clockOff():
				return Move{}, clocksDiffer()
			}
		}
		if l.Audit.link(&m); !m.IsZero() {
			made.op.Chain, made.sealed = m.to.Chain, m.seal
		}
		return m, err
	})
	if err == nil {
		return made, nil
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return decision{}, refusal
	}
	if _, ok := errors.AsType[*IllegalMoveError](err); ok {
		return decision{}, err
	}
	return decision{}, unavailable(err)
}

// sought is what the decision about a call rests on.
func (l *Ledger) sought(r *Request, rules Rules) Sought {
	s := Sought{Key: r.Key, BaseKey: r.BaseKey, Tenant: r.Tenant}
	if !r.BaseKey.IsZero() || rules.SecondIntent != SecondIntentOff {
		s.Content, s.Alike = r.Digest.Content, r.Digest.Alike
		s.Since = l.now().Add(-either(rules.AlikeWithin, l.Policy.AlikeWithin))
	}
	s.Buckets = rules.buckets(Operation{Action: r.Action, Tenant: r.Tenant, Intent: r.Intent, Amount: r.Amount}, l.now())
	return s
}

// sealFor prepares what will be sent, once per operation id, when a claim or a plan
// needs it: a replay renders nothing.
func (l *Ledger) sealFor(r *Request) func(Operation) ([]byte, error) {
	var id string
	var sealed []byte
	return func(op Operation) ([]byte, error) {
		if sealed != nil && id == op.ID+op.Key.String() {
			return sealed, nil
		}
		payload, err := r.Prepare(op.ID, ProviderKey(op.Key, 0))
		if err != nil {
			return nil, err
		}
		id, sealed = op.ID+op.Key.String(), l.Sealer.Seal(op.Key, payload)
		return sealed, nil
	}
}

// answer says where an operation stands.
func answer(op Operation, replayed bool) Answer {
	a := Answer{Operation: op, Replayed: replayed, Status: AnswerStatus(op.Status)}
	switch op.Status {
	case Planned:
		a.Status = AnswerAwaitingApproval
	case Executing:
		a.Status = AnswerInProgress
	case Succeeded, FailedRetryable, FailedFinal, Unknown:
	}
	return a
}

// retryAfter is when asking again can bring something new.
func (l *Ledger) retryAfter(op Operation) time.Duration {
	until := op.NextCheckAt
	switch op.Status {
	case Executing:
		until = op.LeaseUntil
	case FailedRetryable, Unknown:
	case Planned, Succeeded, FailedFinal:
		return 0
	}
	if op.Review.Open() {
		return 0
	}
	return max(until.Sub(l.now()), time.Second)
}

// waitFor waits until an operation has moved, another process having it: it polls, and a store
// that can tells it at once. False means
// that the time is over.
func (l *Ledger) waitFor(ctx context.Context, op Operation) bool {
	var moved <-chan struct{} // for ever silent, where nobody tells
	if waiter, ok := l.Store.(Waiter); ok {
		var stop func()
		moved, stop = waiter.Moved(op.ID)
		defer stop()
	}
	pause := 5 * time.Millisecond
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case _, open := <-moved:
			timer.Stop()
			if !open {
				moved = nil
			}
		case <-timer.C:
		}
		found, err := l.Store.Find(ctx, Filter{ID: op.ID, Limit: 1})
		if err == nil && len(found) == 1 {
			fresh := found[0]
			if fresh.Moves != op.Moves || !l.now().Before(fresh.LeaseUntil) {
				return true
			}
		}
		pause = min(2*pause, 80*time.Millisecond)
	}
}
