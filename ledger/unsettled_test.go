package ledger_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
)

// What follows from an attempt whose outcome nobody knows.

func TestNotSentProvesNothingAboutAnEarlierAttempt(t *testing.T) {
	for name, second := range map[string]act{"not sent": isUnreachable, "refused": refuses} {
		inWorldNamed(t, name, func(t *world) {
			t.provider.is(true, false)
			t.provider.will(losesReply, second, second)
			s := t.start()
			t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 1)
			for range 2 {
				a := s.call(strictly("a", theArgs))
				t.want(a, ledger.AnswerUnknown, 1)
				if a.Operation.UnsettledSince.IsZero() {
					t.Fatal("the first attempt counts as settled")
				}
				pass(a.RetryAfter)
			}
			pass(time.Minute)
			t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
		})
	}
}

func TestTwoReconcilersOnOneAbsenceMakeOneAttempt(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.is(false, true)
		long := takes(time.Second, acts)
		t.provider.will(losesRequest, long, long)
		a, b := t.start(), t.start()
		op := a.call(strictly("a", theArgs)).Operation
		pass(lease + settle + lag)
		// Both have the answer "absent" before either goes on.
		var looked sync.WaitGroup
		looked.Add(2)
		t.provider.onLookup = func() { looked.Done(); looked.Wait() }
		var wg sync.WaitGroup
		for _, s := range []*server{a, b} {
			wg.Go(func() {
				if _, err := s.Reconcile(t.Context(), op.ID); err != nil {
					t.Errorf("Reconcile: %v", err)
				}
			})
		}
		wg.Wait()
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
		if requests, lookUps := t.provider.tally(); requests != 2 || lookUps != 2 {
			t.Errorf("%d requests and %d look-ups, want 2 and 2", requests, lookUps)
		}
	})
}

func TestAbsenceCountsOnlyLate(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.is(false, true)
		t.provider.will(actsLate)
		s := t.start()
		op := s.call(strictly("a", theArgs)).Operation
		for end := time.Now().Add(lease + settle + lag + time.Minute); time.Now().Before(end); pass(time.Second) {
			s.sweep()
		}
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
		if requests, _ := t.provider.tally(); requests != 1 {
			t.Errorf("%d requests, want 1", requests)
		}
	})
}

func TestARetryWaitsForItsTimeAndEndsWithIt(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.will(slices.Repeat([]act{isUnreachable}, 50)...)
		t.policy.RetryFor = time.Hour
		s := t.start()
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerFailedRetryable, 0)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerFailedRetryable, 0)
		if requests, _ := t.provider.tally(); requests != 1 || a.RetryAfter != time.Second {
			t.Fatalf("%d requests and retry after %v, want 1 and 1s", requests, a.RetryAfter)
		}
		pass(a.RetryAfter)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerFailedRetryable, 0)
		if requests, _ := t.provider.tally(); requests != 2 {
			t.Fatalf("%d requests, want 2", requests)
		}
		pass(time.Hour)
		a = s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerFailedFinal, 0)
		if requests, _ := t.provider.tally(); requests != 2 || a.Operation.ErrorCode != ledger.CodeRetryExpired {
			t.Errorf("%d requests and the code %q, want 2 and retry_expired", requests, a.Operation.ErrorCode)
		}
	})
	inWorldNamed(t, "also when nobody calls", func(t *world) {
		t.provider.will(isUnreachable)
		t.policy.RetryFor = time.Hour
		s := t.start()
		op := s.call(strictly("a", theArgs)).Operation
		pass(time.Hour)
		s.sweep()
		t.wantStatus(op.ID, ledger.FailedFinal, "", 0)
	})
}

func TestAttemptsUsedUpAskAPersonAndNeverFail(t *testing.T) {
	for name, can := range map[string]struct{ key, asked bool }{"with a key": {true, false}, "with a look-up": {false, true}} {
		inWorldNamed(t, name, func(t *world) {
			t.provider.is(can.key, can.asked)
			t.provider.will(slices.Repeat([]act{losesRequest}, 50)...)
			t.policy.MaxAttempts = 3
			s := t.start()
			op := s.call(strictly("a", theArgs)).Operation
			for range 40 {
				pass(lease)
				s.sweep()
			}
			t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewAttemptsUsed, 0)
			if requests, _ := t.provider.tally(); requests != 3 {
				t.Errorf("%d requests, want 3", requests)
			}
			a := s.call(strictly("a", theArgs))
			t.want(a, ledger.AnswerUnknown, 0)
			if a.RetryAfter != 0 {
				t.Errorf("a call is told to come back after %v although a person decides", a.RetryAfter)
			}
		})
	}
}

func TestAClosedWindowIsNeverSentInto(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.is(true, false)
		t.provider.will(losesReply)
		s := t.start()
		op := s.call(strictly("a", theArgs)).Operation
		pass(t.provider.traits.Window - t.provider.traits.Margin)
		s.sweep()
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewUnverifiable, 1)
		pass(24 * time.Hour)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 1)
		if requests, _ := t.provider.tally(); requests != 1 {
			t.Errorf("%d requests, want 1: the provider has forgotten the key", requests)
		}
	})
	inWorldNamed(t, "and an open one is counted from the first request", func(t *world) {
		t.provider.is(true, false)
		t.provider.will(losesReply, losesRequest, isUnreachable)
		s := t.start()
		op := s.call(strictly("a", theArgs)).Operation
		s.sweep()
		pass(10 * time.Second)
		s.sweep()
		if got := t.now(op.ID); got.Attempts != 3 || !got.FirstSentAt.Equal(op.FirstSentAt) {
			t.Fatalf("after %d attempts the window is counted from %v, want 3 and %v", got.Attempts, got.FirstSentAt, op.FirstSentAt)
		}
		pass(t.provider.traits.Window)
		s.sweep()
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewUnverifiable, 1)
	})
}

func TestAnotherScopeIsNeverSentTo(t *testing.T) {
	inWorldNamed(t, "what is unknown is not even asked about", func(t *world) {
		t.provider.will(losesReply)
		op := t.start().call(strictly("a", theArgs)).Operation
		t.provider.scope = "another account"
		s := t.start()
		s.sweep()
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewScopeChanged, 1)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 1)
		if requests, lookUps := t.provider.tally(); requests != 1 || lookUps != 0 {
			t.Errorf("%d requests and %d look-ups, want 1 and 0", requests, lookUps)
		}
	})
	inWorldNamed(t, "what was not sent waits for a person", func(t *world) {
		t.provider.will(isUnreachable)
		op := t.start().call(strictly("a", theArgs)).Operation
		t.provider.scope = "another account"
		s := t.start()
		pass(time.Minute)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerFailedRetryable, 0)
		t.wantStatus(op.ID, ledger.FailedRetryable, ledger.ReviewScopeChanged, 0)
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Retry, "", 1, anna); err != nil {
			t.Fatal(err)
		}
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
	inWorldNamed(t, "what has succeeded is still replayed", func(t *world) {
		t.start().call(strictly("a", theArgs))
		t.provider.scope = "another account"
		t.want(t.start().call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
}

func TestAnErrorKeptUnderTheKey(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.traits.CachesErrors = true
		t.provider.will(slices.Repeat([]act{keepsError}, 20)...)
		s := t.start()
		op := s.call(strictly("a", theArgs)).Operation
		for range 20 {
			pass(lease)
			s.sweep()
		}
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewErrorKept, 0)
		before := t.now(op.ID)
		t.provider.will() // the provider is well again, but the key isn't
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Retry, "", before.Attempts, anna); err != nil {
			t.Fatal(err)
		}
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
		after := t.now(op.ID)
		if before.Generation != 0 || after.Generation != 1 || after.ProviderKey == before.ProviderKey {
			t.Errorf("the key's generation went from %d to %d, want 0 to 1 and another key", before.Generation, after.Generation)
		}
	})
}
