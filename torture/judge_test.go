package torture

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/onceward/onceward/ledger"
)

// find is an operation as the database has it, or nil.
func (w *world) find(i int) *ledger.Operation {
	found, err := w.store.Find(w.t.Context(), ledger.Filter{Key: w.keyOf(i)})
	if err != nil {
		w.fail("Find: %v", err)
	}
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

// sent is judged at the moment of a request: it needs a claim, and a person's word where the
// rules want one.
func (w *world) sent(srv *server, a ledger.Attempt, o order) {
	op := w.state(o.Op)
	if op.ID == "" {
		w.fail("operation %d was sent by server %d, and nothing of it is written", o.Op, srv.n)
		return
	}
	if !w.plot.Ops[o.Op].Approval {
		return
	}
	w.mu.Lock()
	free := w.approved[approval(o.Op, op.Fingerprint)]
	w.mu.Unlock()
	if !free {
		w.fail("operation %d was sent, attempt %d, and nobody had approved it", o.Op, a.Number)
	}
}

// acted is judged at the moment of an effect, which may come when the ledger has long gone on.
func (w *world) acted(e effect) {
	op := w.state(e.op)
	if op.Status != ledger.Executing && op.Status != ledger.Unknown && op.Status != ledger.Succeeded {
		w.fail("operation %d has its effect while it is %q (%s)", e.op, op.Status, op.ErrorCode)
	}
	w.trace("the effect %s of operation %d", e.id, e.op)
}

// live are the effects that weren't taken back by the provider.
func live(effects []effect) []effect {
	return slices.DeleteFunc(slices.Clone(effects), func(e effect) bool { return e.rejected })
}

// happened are the effects before now.
func (w *world) happened(effects []effect) []effect {
	now := w.now()
	return slices.DeleteFunc(slices.Clone(effects), func(e effect) bool { return !e.at.Before(now) })
}

var ownErrors = []error{context.DeadlineExceeded, errDead, errDisk, errCut, ledger.ErrCommitLost}

func isOwn(err error) bool {
	return slices.ContainsFunc(ownErrors, func(own error) bool { return errors.Is(err, own) })
}

// hear makes a call, and checks that what it says is so.
func (w *world) hear(srv *server, i int, changed, reworded bool) {
	r := w.request(i, changed, reworded)
	w.tally.calls.Add(1)
	a, err := srv.Execute(w.t.Context(), r)
	effects := w.model.done(i)
	if err != nil {
		w.trace("server %d answers about operation %d: %v", srv.n, i, err)
		w.hearRefusal(i, r, err)
		return
	}
	w.trace("server %d answers about operation %d: %s %s", srv.n, i, a.Status, a.Operation.ProviderOperationID)
	if a.Replayed {
		w.tally.replays.Add(1)
	}
	if a.Status != ledger.AnswerInProgress && a.Operation.Fingerprint != r.Digest.Fingerprint {
		w.fail("a call with other critical arguments got %q, want a conflict", a.Status)
	}
	if w.model.isBroken(i) {
		return // what the provider has promised it didn't keep
	}
	id := a.Operation.ProviderOperationID
	w.mu.Lock()
	told := w.told[i]
	if a.Status == ledger.AnswerSucceeded {
		w.told[i] = id
	}
	w.mu.Unlock()
	switch a.Status {
	case ledger.AnswerSucceeded:
		if len(effects) != 1 || effects[0].id != id || effects[0].at.After(w.now()) {
			w.fail("a call is told that it succeeded as %q, and there are the effects %+v", id, effects)
		}
		if told != "" && told != id {
			w.fail("a call is told of %q, an earlier one was of %q", id, told)
		}
	case ledger.AnswerFailedFinal, ledger.AnswerFailedRetryable:
		if h := w.happened(live(effects)); len(h) != 0 {
			w.fail("a call is told that it failed (%s), and there are the effects %+v", a.Operation.ErrorCode, h)
		}
	default: // it is told of no outcome
	}
}

func (w *world) hearRefusal(i int, r ledger.Request, err error) {
	refusal, ok := errors.AsType[*ledger.Refusal](err)
	switch {
	case !ok && !isOwn(err):
		w.fail("a call got the error %v", err)
	case !ok:
	case refusal.Code == ledger.OperationConflict:
		if op := w.find(i); op == nil || op.Fingerprint == r.Digest.Fingerprint && op.Attempts > 0 {
			w.fail("a conflict with the same critical arguments")
		}
	case refusal.Code == ledger.LimitExceeded:
		w.tally.limited.Add(1)
		if len(w.plot.Rules.Limits) == 0 {
			w.fail("a limit that there isn't was exceeded: %v", err)
		}
	case refusal.Code == ledger.LedgerUnavailable:
		if !isOwn(err) && !w.plot.Clocked {
			w.fail("the ledger was unavailable: %v", err)
		}
	case refusal.Code == ledger.Busy, refusal.Code == ledger.ShuttingDown:
	default:
		w.fail("a call was refused: %v", err)
	}
}

// all are the operations as the database has them, by their place in the plot.
func (w *world) all() map[int]*ledger.Operation {
	found, err := w.store.Find(w.t.Context(), ledger.Filter{WorkflowID: "case-" + w.key})
	if err != nil {
		w.fail("Find: %v", err)
	}
	ops := map[int]*ledger.Operation{}
	for i := range found {
		ops[w.opOf(found[i].Key)] = &found[i]
	}
	return ops
}

// moved reports whether anything was written or done since it was last asked.
func (w *world) moved() bool {
	n := 0
	w.mu.Lock()
	for _, op := range w.states {
		n += op.Moves
	}
	w.mu.Unlock()
	w.model.mu.Lock()
	n += 1_000_000 * len(w.model.effects)
	w.model.mu.Unlock()
	was := w.judged
	w.judged = n
	return n != was
}

// judge holds after every step.
func (w *world) judge() {
	if !w.moved() {
		return
	}
	before := map[int][]effect{} // somebody may be at work, where the clock is only simulated
	for i := range w.plot.Ops {
		before[i] = w.model.done(i)
	}
	ops := w.all()
	for i := range w.plot.Ops {
		effects, op := w.model.done(i), ops[i]
		if op == nil {
			if len(before[i]) > 0 {
				w.fail("operation %d has an effect and no record", i)
			}
			continue
		}
		if !w.model.isBroken(i) {
			if len(effects) > 1 {
				w.fail("operation %d has %d effects: %+v", i, len(effects), effects)
			}
			w.judgeStatus(i, op, before[i], effects)
		}
		w.judgeHistory(op)
	}
	if w.exact() {
		w.judgeLimits(ops)
	}
}

// exact reports whether nobody is at work while it is judged.
func (w *world) exact() bool {
	_, ok := w.time.(*bubble)
	return ok
}

func (w *world) judgeStatus(i int, op *ledger.Operation, before, effects []effect) {
	if len(before) > 0 && sum("content", before[0].order.Amount, before[0].order.Note) != op.Content {
		w.fail("operation %d: what happened isn't what was claimed", i)
	}
	switch op.Status {
	case ledger.Succeeded:
		if len(effects) != 1 || effects[0].id != op.ProviderOperationID || len(op.Last.Evidence) == 0 && op.Last.Reason != "" {
			w.fail("operation %d is succeeded as %q with evidence %s, and there are the effects %+v", i, op.ProviderOperationID, op.Last.Evidence, effects)
		}
	case ledger.FailedFinal, ledger.FailedRetryable:
		if l := live(before); len(l) > 0 {
			w.fail("operation %d is %s (%s) although it happened, or is about to: %+v", i, op.Status, op.ErrorCode, l)
		}
	case ledger.Unknown:
		if !op.Review.Open() && op.NextCheckAt.IsZero() {
			w.fail("operation %d is unknown, and nobody looks", i)
		}
	case ledger.Executing:
		if op.LeaseUntil.IsZero() || op.LeaseOwner == "" {
			w.fail("operation %d is executing without a lease", i)
		}
	case ledger.Planned:
		if len(before) > 0 || op.Attempts > 0 {
			w.fail("operation %d waits for a person, and was attempted: %+v", i, effects)
		}
	}
}

// end lets the world be well again. Then everything is settled, or a person is asked; and when
// the person has looked, everything is settled.
func (w *world) end() {
	w.model.behave()
	for n, s := range w.servers {
		s.frozen.Store(0)
		s.cut.Store(0)
		s.hesitate.Store(0)
		s.mu.Lock()
		s.breaks = nil
		s.mu.Unlock()
		w.offsets[n] = 0
		s.off.Store(0)
	}
	w.time.pass(26 * time.Hour) // whoever stood still moves on
	srv := w.launch(0, nil)
	w.servers[0] = srv
	w.lookAtClock(srv)
	w.settle(srv, false)
	for i, op := range w.all() {
		if op.Status == ledger.Executing || op.Status == ledger.Unknown && !op.Review.Open() {
			w.fail("in the end operation %d is %q, and no person is asked: %+v", i, op.Status, *op)
		}
	}
	w.settle(srv, true)
	w.judge()
	for i := range w.plot.Ops {
		w.judgeEnd(srv, i)
	}
	w.judge()
	w.judgeLimits(w.all())
	w.judgeAudit(srv)
}

// settle gives automation an hour, and a person too if wanted.
func (w *world) settle(srv *server, person bool) {
	for range 12 {
		w.time.pass(5 * time.Minute)
		w.wait(func() { w.sweep(srv) })
		open := false
		for i := range w.plot.Ops {
			op := w.state(i)
			if person && op.Review.Open() {
				w.look(srv, i, ledger.Drop)
			}
			open = open || op.Status == ledger.Executing || op.Status == ledger.Unknown && (person || !op.Review.Open())
		}
		if !open {
			return
		}
	}
}

func (w *world) judgeEnd(srv *server, i int) {
	op := w.find(i)
	if op == nil || w.model.isBroken(i) {
		return
	}
	if op.Status == ledger.Executing || op.Status == ledger.Unknown {
		w.fail("when a person has looked, operation %d is still %q: %+v", i, op.Status, *op)
	}
	if l := live(w.model.done(i)); len(l) == 1 && op.Status != ledger.Succeeded {
		w.fail("operation %d happened, and when all have looked it is %q", i, op.Status)
	}
	changed := op.Fingerprint != w.request(i, false, false).Digest.Fingerprint
	w.wait(func() { w.hear(srv, i, changed, false) })
}
