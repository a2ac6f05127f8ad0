package ledger_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

func TestDuplicatesOfACallUnderWay(t *testing.T) {
	inWorldNamed(t, "in one process get its result at once", func(t *world) {
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		wait := t.gather(100, []*server{t.start()}, arrived, t.Context(), func(int) ledger.Request { return strictly("a", theArgs) })
		begun := time.Now()
		close(goOn)
		firsts := 0
		for _, r := range wait() {
			if r.err != nil || r.answer.Status != ledger.AnswerSucceeded || r.answer.Operation.ProviderOperationID != "re_1" {
				t.Fatalf("a call got %q of %q, error %v", r.answer.Status, r.answer.Operation.ProviderOperationID, r.err)
			}
			if !r.answer.Replayed {
				firsts++
			}
		}
		if waited := time.Since(begun); firsts != 1 || t.provider.count() != 1 || waited != 0 {
			t.Errorf("%d calls weren't replayed, %d effects, told after %v; want 1, 1 and at once", firsts, t.provider.count(), waited)
		}
	})
	inWorldNamed(t, "in three processes get its result soon", func(t *world) {
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		servers := []*server{t.start(), t.start(), t.start()}
		wait := t.gather(60, servers, arrived, t.Context(), func(int) ledger.Request { return strictly("a", theArgs) })
		begun := time.Now()
		close(goOn)
		firsts := 0
		for _, r := range wait() {
			if r.err != nil || r.answer.Status != ledger.AnswerSucceeded {
				t.Fatalf("a call got %q, error %v", r.answer.Status, r.err)
			}
			if !r.answer.Replayed {
				firsts++
			}
		}
		if waited := time.Since(begun); firsts != 1 || t.provider.count() != 1 || waited > time.Second {
			t.Errorf("%d calls weren't replayed, %d effects, told after %v; want 1, 1 and soon", firsts, t.provider.count(), waited)
		}
	})
	inWorldNamed(t, "and one with reworded arguments is told what was ignored", func(t *world) {
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		reworded := args{theArgs.amount, "so very sorry"}
		wait := t.gather(2, []*server{t.start()}, arrived, t.Context(), func(i int) ledger.Request {
			return strictly("a", []args{theArgs, reworded}[i])
		})
		close(goOn)
		got := wait()[1]
		t.want(got.answer, ledger.AnswerSucceeded, 1)
		if diff := cmp.Diff([]string{"note"}, got.answer.Ignored); diff != "" {
			t.Errorf("ignored arguments (-want +got):\n%s", diff)
		}
	})
	inWorldNamed(t, "and one with another amount is a conflict", func(t *world) {
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		wait := t.gather(2, []*server{t.start()}, arrived, t.Context(), func(i int) ledger.Request {
			return strictly("a", []args{theArgs, {"900.00", "sorry"}}[i])
		})
		close(goOn)
		got := wait()
		t.want(got[0].answer, ledger.AnswerSucceeded, 1)
		refusal, ok := errors.AsType[*ledger.Refusal](got[1].err)
		if !ok || refusal.Code != ledger.OperationConflict {
			t.Fatalf("the other call got %v, want a conflict", got[1].err)
		}
		if diff := cmp.Diff([]string{"amount"}, refusal.Fields); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
	})
}

func TestMoreThanManyWaitersAreTurnedAway(t *testing.T) {
	inWorld(t, func(t *world) {
		const most = 256
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		wait := t.gather(1+most+10, []*server{t.start()}, arrived, t.Context(), func(int) ledger.Request { return strictly("a", theArgs) })
		close(goOn)
		busy := 0
		for _, r := range wait() {
			if refusal, ok := errors.AsType[*ledger.Refusal](r.err); ok && refusal.Code == ledger.Busy {
				busy++
			} else if r.err != nil || r.answer.Status != ledger.AnswerSucceeded {
				t.Fatalf("a call got %q, error %v", r.answer.Status, r.err)
			}
		}
		if busy != 10 || t.provider.count() != 1 {
			t.Errorf("%d calls were turned away and %d effects, want 10 and 1", busy, t.provider.count())
		}
	})
}

func TestACallThatTakesTooLongIsInProgress(t *testing.T) {
	inWorld(t, func(t *world) {
		t.policy.AnswerWithin = deadline / 4
		t.provider.will(takes(deadline-1, acts))
		s, begun := t.start(), time.Now()
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerInProgress, 0)
		if took := time.Since(begun); took != deadline/4 || a.RetryAfter <= 0 || a.Operation.ID == "" {
			t.Errorf("it answered after %v, with retry after %v and operation %q", took, a.RetryAfter, a.Operation.ID)
		}
		again := s.call(strictly("a", theArgs))
		t.want(again, ledger.AnswerInProgress, 0)
		pass(deadline)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
}

func TestDraining(t *testing.T) {
	inWorld(t, func(t *world) {
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		s := t.start()
		wait := t.gather(2, []*server{s}, arrived, t.Context(), func(int) ledger.Request { return strictly("a", theArgs) })
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(context.Background()) }()
		synctest.Wait()
		if refusal := s.refused(strictly("b", theArgs)); refusal.Code != ledger.ShuttingDown {
			t.Errorf("a new call got %v, want shutting_down", refusal)
		}
		select {
		case err := <-drained:
			t.Fatalf("Drain didn't wait for the call under way: %v", err)
		default:
		}
		close(goOn)
		for _, r := range wait() {
			t.want(r.answer, ledger.AnswerSucceeded, 1)
		}
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
		t.wantStatus(t.only().ID, ledger.Succeeded, "", 1)
	})
	inWorldNamed(t, "is bounded", func(t *world) {
		t.provider.will(takes(deadline, acts))
		s := t.start()
		go func() { _, _ = s.Execute(t.Context(), strictly("a", theArgs)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), deadline/2)
		defer cancel()
		if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain = %v, want that its time is over", err)
		}
		pass(deadline)
		t.wantStatus(t.only().ID, ledger.Succeeded, "", 1)
	})
	inWorldNamed(t, "ends before the next attempt", func(t *world) {
		t.provider.is(false, true)
		t.provider.will(losesRequest)
		s := t.start()
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 0)
		pass(lease + settle + lag)
		t.provider.onLookup = s.Close // the server ends while the provider is asked
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 0)
		if requests, _ := t.provider.tally(); requests != 1 {
			t.Errorf("the provider got %d requests, want 1", requests)
		}
		t.provider.onLookup = nil
		t.want(t.start().call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
}
