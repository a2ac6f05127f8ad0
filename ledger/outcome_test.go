package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
)

func TestAnOutcomeThatCannotBeWrittenIsUnknownAndHeld(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.is(false, false) // nobody else could find out
		s, broken := t.start(), true
		s.failOutcomes(&broken)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 1)
		t.wantStatus(t.only().ID, ledger.Executing, "", 1)
		s.sweep() // still broken: the outcome is kept
		broken = false
		s.sweep()
		t.wantStatus(t.only().ID, ledger.Succeeded, "", 1)
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerSucceeded, 1)
		if !a.Replayed || a.Operation.ProviderOperationID != "re_1" {
			t.Errorf("the repeat got replayed %v of %q, want true of re_1", a.Replayed, a.Operation.ProviderOperationID)
		}
	})
}

func TestAnOutcomeHeldByADeadProcessIsFoundByLookingItUp(t *testing.T) {
	inWorld(t, func(t *world) {
		s, broken := t.start(), true
		s.failOutcomes(&broken)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 1)
		s.dead.Store(true)
		t.want(t.start().call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1) // waits for the lease
		if requests, _ := t.provider.tally(); requests != 1 {
			t.Errorf("the provider got %d requests, want 1", requests)
		}
	})
}

func TestACommitWhoseAnswerIsLost(t *testing.T) {
	for method, wants := range map[string]struct {
		effects  int // by the first call
		requests int // in the end
	}{
		"Begin":  {0, 1}, // it may not act on a claim that it isn't sure of
		"Record": {1, 1},
	} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, func(t *world) {
				s, lost := t.start(), false
				s.failing.After = func(c ledgertest.Call) error {
					if lost || c.Method != method {
						return nil
					}
					lost = true
					return fmt.Errorf("connection reset: %w", ledger.ErrCommitLost)
				}
				a, err := s.Execute(t.Context(), strictly("a", theArgs))
				if got := t.provider.count(); got != wants.effects {
					t.Fatalf("%d effects after the lost commit, want %d", got, wants.effects)
				}
				if refusal, ok := errors.AsType[*ledger.Refusal](err); method == "Begin" && (!ok || refusal.Code != ledger.LedgerUnavailable) {
					t.Errorf("the call got %q, %v; want ledger_unavailable", a.Status, err)
				}
				if method == "Record" && (err != nil || a.Status != ledger.AnswerUnknown) {
					t.Errorf("the call got %q, %v; want unknown: nobody may be told of a success that a restart might not know of", a.Status, err)
				}
				t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
				if requests, _ := t.provider.tally(); requests != wants.requests {
					t.Errorf("the provider got %d requests, want %d", requests, wants.requests)
				}
			})
		})
	}
}

func TestACancelledCall(t *testing.T) {
	t.Run("before it begins starts nothing", func(t *testing.T) {
		inWorld(t, func(t *world) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := t.start().Execute(ctx, strictly("a", theArgs))
			if refusal, ok := errors.AsType[*ledger.Refusal](err); !ok || refusal.Code != ledger.ShuttingDown {
				t.Errorf("error %v, want shutting_down", err)
			}
			if found, err := t.store.Find(t.Context(), ledger.Filter{}); len(found) != 0 || err != nil {
				t.Errorf("it left %d operations, error %v", len(found), err)
			}
		})
	})
	t.Run("in the middle of its effect lets that finish", func(t *testing.T) {
		inWorld(t, func(t *world) {
			ctx, cancel := context.WithCancel(t.Context())
			arrived, goOn := make(chan struct{}), make(chan struct{})
			t.provider.will(until(arrived, goOn, func(ctx context.Context, p *provider, a ledger.Attempt) ledger.Finding {
				if ctx.Err() != nil {
					return ledger.Finding{Verdict: ledger.Unclear, Code: "cancelled"}
				}
				return acts(ctx, p, a)
			}))
			s := t.start()
			answers := make(chan ledger.Answer, 1)
			go func() {
				a, err := s.Execute(ctx, strictly("a", theArgs))
				if err != nil {
					t.Error(err)
				}
				answers <- a
			}()
			<-arrived
			cancel()
			t.want(<-answers, ledger.AnswerInProgress, 0)
			close(goOn)
			a := s.call(strictly("a", theArgs))
			t.want(a, ledger.AnswerSucceeded, 1)
			if !a.Replayed {
				t.Error("the later call isn't replayed")
			}
			if diff := cmp.Diff([]string{"claimed", "provider_answered"}, t.reasons(a.Operation.ID)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	})
}

func TestAProviderThatPanicsIsUnknown(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.is(false, false)
		t.provider.will(actsAndPanics)
		s := t.start()
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerUnknown, 1)
		t.wantStatus(a.Operation.ID, ledger.Unknown, ledger.ReviewUnverifiable, 1)
		if a.Operation.ErrorCode != ledger.CodePanic || t.alarmed(ledger.CodePanic) != 1 {
			t.Errorf("code %q and %d alarms, want panic and 1", a.Operation.ErrorCode, t.alarmed(ledger.CodePanic))
		}
	})
	inWorldNamed(t, "and so is one whose look-up does", func(t *world) {
		t.provider.is(false, true)
		t.provider.will(losesReply)
		broken := true
		t.provider.onLookup = func() {
			if broken {
				panic("a bug")
			}
		}
		s := t.start()
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerUnknown, 1)
		pass(lease + settle + lag)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 1)
		broken = false
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
}

func TestALateSuccessIsNeverDropped(t *testing.T) {
	inWorldNamed(t, "after a person dropped it", func(t *world) {
		t.provider.is(false, false)
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		slow, s := t.start(), t.start()
		answers := make(chan ledger.Answer, 1)
		go func() { answers <- slow.call(strictly("a", theArgs)) }()
		<-arrived
		op := t.only()
		pass(lease + settle + lag)
		s.sweep()
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewUnverifiable, 0)
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Drop, "", 1, anna); err != nil {
			t.Fatal(err)
		}
		t.wantStatus(op.ID, ledger.FailedFinal, "", 0)
		close(goOn)
		<-answers
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
		if t.alarmed("late_success") != 1 {
			t.Errorf("%d alarms of a late success, want 1", t.alarmed("late_success"))
		}
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
	inWorldNamed(t, "beside another success it asks a person", func(t *world) {
		t.provider.is(false, false)
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		slow, s := t.start(), t.start()
		answers := make(chan ledger.Answer, 1)
		go func() { answers <- slow.call(strictly("a", theArgs)) }()
		<-arrived
		op := t.only()
		pass(lease + settle + lag)
		s.sweep()
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Happened, "re_seen", 1, anna); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		<-answers
		t.wantStatus(op.ID, ledger.Succeeded, ledger.ReviewContradiction, 1)
		if got := t.now(op.ID).ProviderOperationID; got != "re_seen" {
			t.Errorf("the provider's id became %q, want the first one", got)
		}
		if !slices.Contains(t.reasons(op.ID), "late_success") {
			t.Errorf("the history doesn't tell of it: %v", t.reasons(op.ID))
		}
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
}

// A worker that slept between its claim and its request has lost its turn.
func TestAWorkerThatSleptSendsNothing(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.is(false, true)
		slow, s := t.start(), t.start()
		asleep, wake := make(chan struct{}), make(chan struct{})
		slow.sleeps = func() {
			close(asleep)
			select {
			case <-wake:
			case <-t.provider.stopped:
			}
		}
		answers := make(chan ledger.Answer, 1)
		go func() { answers <- slow.call(strictly("a", theArgs)) }()
		<-asleep
		pass(lease + settle + lag)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
		close(wake)
		t.want(<-answers, ledger.AnswerSucceeded, 1)
	})
}

// What a worker has to say counts for its own attempt only, though the operation may be
// executing again by then.
func TestAnOutcomeBelongsToItsAttempt(t *testing.T) {
	for name, says := range map[string]act{"not sent": isUnreachable, "refused": refuses, "no proof": losesRequest} {
		inWorldNamed(t, name, func(t *world) {
			t.provider.is(false, true)
			arrived, goOn := make(chan struct{}), make(chan struct{})
			t.provider.will(until(arrived, goOn, says), takes(3*time.Second, acts))
			slow, s := t.start(), t.start()
			first, second := make(chan ledger.Answer, 1), make(chan ledger.Answer, 1)
			go func() { first <- slow.call(strictly("a", theArgs)) }()
			<-arrived
			pass(lease + settle + lag)
			go func() { second <- s.call(strictly("a", theArgs)) }()
			pass(time.Second)
			before := t.only()
			if before.Status != ledger.Executing || before.Attempts != 2 {
				t.Fatalf("it is %q with %d attempts, want the second one under way", before.Status, before.Attempts)
			}
			close(goOn)
			if a := <-first; a.Status == ledger.AnswerFailedFinal || a.Status == ledger.AnswerFailedRetryable {
				t.Errorf("the slow call is told that it is %s", a.Status)
			}
			if diff := cmp.Diff(before, t.only()); diff != "" {
				t.Errorf("the first attempt's outcome changed the second's (-before +after):\n%s", diff)
			}
			t.want(<-second, ledger.AnswerSucceeded, 1)
		})
	}
}

// TestBrokenTextOfAProvider: what a provider names may hold what a database doesn't take. The
// outcome is recorded all the same.
func TestBrokenTextOfAProvider(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		s.Actors = map[string]ledger.Actor{"refund": {Provider: "scripted", Promise: bothTraits(), Apply: func(context.Context, ledger.Attempt) ledger.Finding {
			return ledger.Finding{Verdict: ledger.Done, Receipt: ledger.Receipt{
				State: ledger.Settled, ProviderOperationID: "re\x00_1\xff", ProviderStatus: "\x00", Result: []byte("{\"a\":\"\xc3\"}"), Evidence: []byte("{\"id\":\"\x00\"}")}}
		}}}
		op := s.call(strictly("a", theArgs)).Operation
		got := t.now(op.ID)
		if got.Status != ledger.Succeeded || got.ProviderOperationID != "re\uFFFD_1\uFFFD" || got.ProviderStatus != "\uFFFD" ||
			string(got.Result) != "{\"a\":\"\uFFFD\"}" || string(got.Last.Evidence) != "{\"id\":\"\uFFFD\"}" {
			t.Errorf("recorded: %q %q %q %s %s", got.Status, got.ProviderOperationID, got.ProviderStatus, got.Result, got.Last.Evidence)
		}
	})
}
