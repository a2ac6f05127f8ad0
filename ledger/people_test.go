package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

var anna = ledger.Person{By: "anna", Reason: "seen in the provider's list"}

// inReview brings an operation to where only a person knows what became of it.
func (w *world) inReview(s *server, first act) ledger.Operation {
	w.Helper()
	w.provider.is(false, false)
	s.Actors = map[string]ledger.Actor{"refund": w.provider.actor()}
	w.provider.will(first)
	op := s.call(strictly("a", theArgs)).Operation
	if !op.Review.Open() {
		w.Fatalf("it is %q, and no person is asked", op.Status)
	}
	return op
}

// wantUndecided demands that a decision was refused and changed nothing.
func (w *world) wantUndecided(before ledger.Operation, err error) {
	w.Helper()
	if _, ok := errors.AsType[*ledger.DecisionError](err); !ok {
		w.Errorf("the decision got %v, want a DecisionError", err)
	}
	if diff := cmp.Diff(before, w.now(before.ID)); diff != "" {
		w.Errorf("a refused decision changed the operation (-before +after):\n%s", diff)
	}
}

func TestAPersonSettlesWhatAutomationCannot(t *testing.T) {
	inWorldNamed(t, "it happened", func(t *world) {
		s := t.start()
		op := t.inReview(s, losesReply)
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Happened, "re_1", 1, anna); err != nil {
			t.Fatal(err)
		}
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerSucceeded, 1)
		if !a.Replayed || a.Operation.ProviderOperationID != "re_1" || a.Operation.Review.Open() {
			t.Errorf("the next call got %+v", a)
		}
		if got := t.now(op.ID).Last; got.Actor != "person:anna" || !strings.Contains(string(got.Evidence), anna.Reason) {
			t.Errorf("the history says %+v, want who decided and why", got)
		}
	})
	inWorldNamed(t, "it didn't, and shall not", func(t *world) {
		s := t.start()
		op := t.inReview(s, losesRequest)
		pass(lease + settle + lag)
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Drop, "", 1, anna); err != nil {
			t.Fatal(err)
		}
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerFailedFinal, 0)
		if a.Operation.ErrorCode != ledger.CodeDropped {
			t.Errorf("the code is %q, want dropped", a.Operation.ErrorCode)
		}
	})
	inWorldNamed(t, "it didn't, and one more attempt may be made", func(t *world) {
		s := t.start()
		op := t.inReview(s, losesRequest)
		pass(lease + settle + lag)
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Retry, "", 1, anna); err != nil {
			t.Fatal(err)
		}
		t.provider.will(losesRequest) // only one: it is in doubt again
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 0)
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewUnverifiable, 0)
		if requests, _ := t.provider.tally(); requests != 2 {
			t.Errorf("%d requests, want 2", requests)
		}
	})
	inWorldNamed(t, "by the sweep too", func(t *world) {
		s := t.start()
		op := t.inReview(s, losesRequest)
		pass(lease + settle + lag)
		if _, err := s.Resolve(t.Context(), op.Key.String(), ledger.Retry, "", 1, anna); err != nil {
			t.Fatal(err)
		}
		s.sweep()
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
	})
	inWorldNamed(t, "an open contradiction", func(t *world) {
		s := t.start()
		t.provider.traits.Idempotent = false
		t.provider.will(losesReply)
		s.Actors = map[string]ledger.Actor{"refund": t.provider.actor()}
		op := s.call(strictly("a", theArgs)).Operation
		t.provider.do(ledger.Attempt{ProviderKey: op.ProviderKey}, time.Now()) // somebody else's mistake
		pass(lag)
		s.sweep()
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewContradiction, 2)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 2)
	})
}

func TestAPersonsDecisionThatCannotBe(t *testing.T) {
	type decision struct {
		after   time.Duration // since the request
		what    ledger.Resolution
		id      string
		attempt int
		who     ledger.Person
	}
	for name, d := range map[string]decision{
		"about another attempt":             {time.Minute, ledger.Happened, "re_1", 0, anna},
		"about an attempt that's to come":   {time.Minute, ledger.Happened, "re_1", 2, anna},
		"a drop while it may still happen":  {lease + settle + lag - 1000, ledger.Drop, "", 1, anna},
		"a retry while it may still happen": {lease + settle + lag - 1000, ledger.Retry, "", 1, anna},
		"success under no id":               {time.Minute, ledger.Happened, "", 1, anna},
		"something else":                    {time.Minute, "perhaps", "", 1, anna},
		"by nobody":                         {time.Minute, ledger.Happened, "re_1", 1, ledger.Person{By: " "}},
		"by a line break":                   {time.Minute, ledger.Happened, "re_1", 1, ledger.Person{By: "anna\nbert"}},
		"for endless reasons":               {time.Minute, ledger.Happened, "re_1", 1, ledger.Person{By: "anna", Reason: strings.Repeat("x", 513)}},
	} {
		inWorldNamed(t, name, func(t *world) {
			s := t.start()
			op := t.inReview(s, losesReply)
			pass(d.after)
			_, err := s.Resolve(t.Context(), op.ID, d.what, d.id, d.attempt, d.who)
			t.wantUndecided(op, err)
		})
	}
	inWorldNamed(t, "while an attempt is under way", func(t *world) {
		t.provider.will(takes(deadline, acts))
		s := t.start()
		go func() { _, _ = s.Execute(t.Context(), strictly("a", theArgs)) }()
		pass(time.Second)
		for _, what := range []ledger.Resolution{ledger.Happened, ledger.Drop, ledger.Retry} {
			op := t.only()
			_, err := s.Resolve(t.Context(), op.ID, what, "re_1", 1, anna)
			t.wantUndecided(op, err)
		}
		pass(deadline)
		t.wantStatus(t.only().ID, ledger.Succeeded, "", 1)
	})
	inWorldNamed(t, "about a success", func(t *world) {
		s := t.start()
		op := s.call(strictly("a", theArgs)).Operation
		pass(time.Minute)
		for _, what := range []ledger.Resolution{ledger.Happened, ledger.Drop, ledger.Retry} {
			_, err := s.Resolve(t.Context(), op.ID, what, "re_2", 1, anna)
			t.wantUndecided(op, err)
		}
		_, err := s.Approve(t.Context(), op.ID, anna)
		t.wantUndecided(op, err)
		_, err = s.Deny(t.Context(), op.ID, anna)
		t.wantUndecided(op, err)
		_, err = s.AllowRepeat(t.Context(), op.ID, true, anna) // its orchestrator named it
		t.wantUndecided(op, err)
	})
	inWorldNamed(t, "about nothing", func(t *world) {
		for _, name := range []string{"", "op_unknown", ledger.Key{1}.String()} {
			_, err := t.start().Resolve(t.Context(), name, ledger.Drop, "", 1, anna)
			if refusal, ok := errors.AsType[*ledger.Refusal](err); !ok || refusal.Code != ledger.NotFound {
				t.Errorf("%q got %v, want not_found", name, err)
			}
		}
	})
}

// Two people decide at once: one of them is told that it has moved.
func TestTwoPeopleDecideOnce(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		op := t.inReview(s, losesRequest)
		pass(lease + settle + lag)
		errs := make(chan error, 2)
		for _, what := range []ledger.Resolution{ledger.Drop, ledger.Happened} {
			go func() {
				_, err := s.Resolve(context.WithoutCancel(t.Context()), op.ID, what, "re_9", 1, anna)
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		status := t.now(op.ID).Status
		// Both may be carried out, in one order only: a success after a drop is never dropped.
		if status != ledger.Succeeded || first != nil && second != nil {
			t.Errorf("it is %q, errors %v and %v; want that what happened stays so", status, first, second)
		}
	})
}
