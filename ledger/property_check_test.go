package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward/ledger"
)

// legal are the moves that an operation may make, written anew from what the statuses mean.
var legal = map[[2]ledger.Status]bool{
	{"", "planned"}:                          true,
	{"", "executing"}:                        true,
	{"planned", "executing"}:                 true,
	{"planned", "failed_final"}:              true,
	{"executing", "succeeded"}:               true,
	{"executing", "failed_final"}:            true,
	{"executing", "failed_retryable"}:        true,
	{"executing", "unknown"}:                 true,
	{"failed_retryable", "executing"}:        true,
	{"failed_retryable", "failed_final"}:     true,
	{"failed_retryable", "succeeded"}:        true, // a late success
	{"unknown", "succeeded"}:                 true,
	{"unknown", "failed_final"}:              true,
	{"unknown", "executing"}:                 true,
	{"failed_final", "planned"}:              true, // if it was never attempted
	{"failed_final", "succeeded"}:            true, // a late success
	{"planned", "planned"}:                   true, // something was noted
	{"executing", "executing"}:               true,
	{"succeeded", "succeeded"}:               true,
	{"failed_retryable", "failed_retryable"}: true,
	{"failed_final", "failed_final"}:         true,
	{"unknown", "unknown"}:                   true,
}

func (s *stage) fail(format string, a ...any) {
	if s.wrong == "" {
		s.wrong = fmt.Sprintf(format, a...)
	}
}

// find is an operation as the database has it, or nil.
func (s *stage) find(i int) *ledger.Operation {
	found, err := s.store.Find(s.Context(), ledger.Filter{Key: strictly(opName(i), theArgs).Key})
	if err != nil {
		s.fail("Find: %v", err)
	}
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

func (s *stage) effectsOf(i int) (effects []effect) {
	s.provider.mu.Lock()
	defer s.provider.mu.Unlock()
	for _, e := range s.provider.effects {
		if e.key == s.keys[i] {
			effects = append(effects, e)
		}
	}
	return effects
}

// hear makes a call, and checks that what it says is so.
func (s *stage) hear(i int, srv *server, r ledger.Request) ledger.Answer {
	a, err := srv.Execute(s.Context(), r)
	effects := s.effectsOf(i)
	if err != nil {
		if refusal, ok := errors.AsType[*ledger.Refusal](err); !ok && !errors.Is(err, errDisk) && !errors.Is(err, errDead) && !errors.Is(err, ledger.ErrCommitLost) {
			s.fail("the call got the error %v", err)
		} else if ok && refusal.Code == ledger.OperationConflict {
			if op := s.find(i); op == nil || op.Fingerprint == r.Digest.Fingerprint {
				s.fail("a conflict with the same critical arguments")
			}
		}
		return a
	}
	if op := s.find(i); op != nil && a.Status != ledger.AnswerInProgress && op.Fingerprint != r.Digest.Fingerprint {
		s.fail("the changed call got %q, want a conflict", a.Status)
	}
	id := a.Operation.ProviderOperationID
	switch a.Status {
	case ledger.AnswerSucceeded:
		if len(effects) != 1 || effects[0].id != id || effects[0].at.After(time.Now()) {
			s.fail("the call is told that it succeeded as %q, and there are the effects %v", id, effects)
		}
		if s.told[i] != "" && s.told[i] != id {
			s.fail("the call is told of %q, an earlier one was of %q", id, s.told[i])
		}
		s.told[i] = id
	case ledger.AnswerFailedFinal, ledger.AnswerFailedRetryable:
		if len(effects) != 0 {
			s.fail("the call is told that it failed (%s), and there are the effects %v", a.Operation.ErrorCode, effects)
		}
	default: // it is told of no outcome
	}
	if s.told[i] != "" && a.Status != ledger.AnswerSucceeded {
		s.fail("the call got %q after an earlier one was told of success", a.Status)
	}
	return a
}

// check holds after every step.
func (s *stage) check() {
	for i := range s.keys {
		effects, op := s.effectsOf(i), s.find(i)
		if len(effects) > 1 {
			s.fail("operation %d has %d effects", i, len(effects))
		}
		if op == nil {
			if len(effects) > 0 {
				s.fail("operation %d has an effect and no record", i)
			}
			continue
		}
		s.checkStatus(op, effects)
		s.checkHistory(op)
	}
}

func (s *stage) checkStatus(op *ledger.Operation, effects []effect) {
	if len(effects) > 0 && effects[0].args().digest().Content != op.Content {
		s.fail("what happened isn't what was claimed")
	}
	switch op.Status {
	case ledger.Succeeded:
		if len(effects) != 1 || effects[0].id != op.ProviderOperationID || len(op.Last.Evidence) == 0 {
			s.fail("it is succeeded as %q with evidence %s, and there are the effects %v", op.ProviderOperationID, op.Last.Evidence, effects)
		}
	case ledger.FailedFinal, ledger.FailedRetryable:
		if len(effects) > 0 {
			s.fail("it is %s (%s) although it happened, or is about to", op.Status, op.ErrorCode)
		}
	case ledger.Unknown:
		if !op.Review.Open() && op.NextCheckAt.IsZero() {
			s.fail("it is unknown, and nobody looks")
		}
	case ledger.Executing:
		if op.LeaseUntil.IsZero() || op.LeaseOwner == "" {
			s.fail("it is executing without a lease")
		}
	case ledger.Planned:
		s.fail("it is planned, though its orchestrator named it")
	}
}

func (s *stage) checkHistory(op *ledger.Operation) {
	history, err := s.store.History(s.Context(), op.ID)
	if err != nil {
		s.fail("History: %v", err)
	}
	if len(history) != op.Moves {
		s.fail("it has moved %d times, and its history has %d lines", op.Moves, len(history))
		return
	}
	status, attempt := ledger.Status(""), 0
	var at time.Time
	for n, line := range history {
		claims := line.To == ledger.Executing && line.From != ledger.Executing
		if claims {
			attempt++
		}
		if line.Seq != n+1 || line.From != status || line.Attempt != attempt || line.At.Before(at) || line.Actor == "" || line.Reason == "" {
			s.fail("line %d of the history doesn't follow: %+v after status %q, attempt %d", n+1, line, status, attempt)
		}
		if !legal[[2]ledger.Status{line.From, line.To}] {
			s.fail("line %d of the history is no legal move: %q to %q", n+1, line.From, line.To)
		}
		if line.To == ledger.Succeeded && len(line.Evidence) == 0 {
			s.fail("line %d of the history has no evidence for success", n+1)
		}
		status, at = line.To, line.At
	}
	if status != op.Status || attempt != op.Attempts {
		s.fail("the history ends at %q, attempt %d; it is %q, attempt %d", status, attempt, op.Status, op.Attempts)
	}
}

// finish lets the world be well again: then everything is settled, or a person is asked.
func (s *stage) finish() {
	s.mu.Lock()
	s.plot.Acts = [2][]string{}
	s.mu.Unlock()
	s.vain.Store(false)
	srv := s.launch()
	for range 20 {
		pass(time.Minute)
		if err := srv.Sweep(s.Context()); err != nil {
			s.fail("Sweep: %v", err)
		}
	}
	synctest.Wait()
	s.check()
	for i := range s.keys {
		op := s.find(i)
		if op == nil {
			continue
		}
		if op.Status == ledger.Executing || op.Status == ledger.Unknown && !op.Review.Open() {
			s.fail("in the end it is %q, and no person is asked: %+v", op.Status, *op)
		}
		effects := len(s.effectsOf(i))
		r := strictly(opName(i), theArgs)
		if op.Fingerprint != r.Digest.Fingerprint {
			r = strictly(opName(i), args{"900.00", theArgs.note})
		}
		a := s.hear(i, srv, r)
		if effects == 1 && s.plot.Asked && a.Status != ledger.AnswerSucceeded {
			s.fail("it happened and the provider can be asked, and in the end the call gets %q", a.Status)
		}
		s.check()
	}
}

// args are what the effect was made with; see args.prepare.
func (e effect) args() (a args) {
	a.amount, a.note, _ = strings.Cut(e.request, "|")
	return a
}
