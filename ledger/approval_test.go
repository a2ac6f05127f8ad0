package ledger_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// needing is a call that a policy lets go only with a person's approval.
func needing(name string, a args) ledger.Request {
	r := strictly(name, a)
	r.Approval = "always"
	return r
}

func (w *world) approve(s *server, id string) {
	w.Helper()
	if _, err := s.Approve(w.Context(), id, anna); err != nil {
		w.Fatalf("Approve: %v", err)
	}
}

func TestApproval(t *testing.T) {
	inWorldNamed(t, "of one, while another waits: only that one runs", func(t *world) {
		s := t.start()
		a, b := s.call(needing("a", theArgs)), s.call(needing("b", theArgs))
		t.want(a, ledger.AnswerAwaitingApproval, 0)
		t.want(b, ledger.AnswerAwaitingApproval, 0)
		t.approve(s, a.Operation.ID)
		t.want(s.call(needing("b", theArgs)), ledger.AnswerAwaitingApproval, 0)
		t.want(s.call(needing("a", theArgs)), ledger.AnswerSucceeded, 1)
		t.want(s.call(needing("b", theArgs)), ledger.AnswerAwaitingApproval, 1)
		if got := t.provider.effects[0].request; got != "100.00|sorry" {
			t.Errorf("what ran is %q", got)
		}
	})
	inWorldNamed(t, "asked for once, however often the call comes", func(t *world) {
		s := t.start()
		first := s.call(needing("a", theArgs))
		for range 20 {
			if again := s.call(needing("a", args{theArgs.amount, "reworded"})); again.Operation.ID != first.Operation.ID || !again.Replayed {
				t.Errorf("another call got %+v", again)
			}
		}
		t.want(first, ledger.AnswerAwaitingApproval, 0)
		if got := t.reasons(first.Operation.ID); !slices.Equal(got, []string{"always"}) {
			t.Errorf("history %v, want the plan alone", got)
		}
	})
	inWorldNamed(t, "the amount changed after it: a conflict, and nothing runs", func(t *world) {
		s := t.start()
		op := s.call(needing("a", theArgs)).Operation
		t.approve(s, op.ID)
		if r := s.refused(needing("a", args{"900.00", "sorry"})); r.Code != ledger.OperationConflict {
			t.Errorf("refused with %q", r.Code)
		}
		t.wantStatus(op.ID, ledger.Planned, "", 0)
		t.want(s.call(needing("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
	inWorldNamed(t, "what was reworded after it isn't what runs", func(t *world) {
		s := t.start()
		op := s.call(needing("a", theArgs)).Operation
		t.approve(s, op.ID)
		a := s.call(needing("a", args{theArgs.amount, "reworded"}))
		t.want(a, ledger.AnswerSucceeded, 1)
		if got := t.provider.effects[0].request; got != "100.00|sorry" || !slices.Equal(a.Ignored, []string{"note"}) {
			t.Errorf("what ran is %q, ignored %v; want what was approved", got, a.Ignored)
		}
	})
	inWorldNamed(t, "twice is once", func(t *world) {
		s := t.start()
		op := s.call(needing("a", theArgs)).Operation
		t.approve(s, op.ID)
		before := t.now(op.ID)
		_, err := s.Approve(t.Context(), op.ID, anna)
		t.wantUndecided(before, err)
		t.want(s.call(needing("a", theArgs)), ledger.AnswerSucceeded, 1)
		before = t.now(op.ID)
		_, err = s.Approve(t.Context(), op.ID, anna)
		t.wantUndecided(before, err)
		t.want(s.call(needing("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
	inWorldNamed(t, "is spent by one attempt's claim", func(t *world) {
		s := t.start()
		op := s.call(needing("a", theArgs)).Operation
		t.approve(s, op.ID)
		s.call(needing("a", theArgs))
		if got := t.now(op.ID).Approval.State; got != ledger.Spent {
			t.Errorf("approval %q after the claim", got)
		}
	})
	inWorldNamed(t, "of what the person didn't see is refused", func(t *world) {
		s := t.start()
		op := s.call(needing("a", theArgs)).Operation
		seen := anna
		seen.Saw = op.Moves
		s.refused(needing("a", args{"900.00", "sorry"})) // a line in the history
		before := t.now(op.ID)
		_, err := s.Approve(t.Context(), op.ID, seen)
		t.wantUndecided(before, err)
		seen.Saw = before.Moves
		if _, err := s.Approve(t.Context(), op.ID, seen); err != nil {
			t.Errorf("Approve: %v", err)
		}
	})
}

func TestNoApproval(t *testing.T) {
	inWorldNamed(t, "in time: it ends, and an approval comes too late", func(t *world) {
		t.rules.ApprovalFor = time.Hour
		s := t.start()
		op := s.call(needing("a", theArgs)).Operation
		pass(time.Hour)
		_, err := s.Approve(t.Context(), op.ID, anna)
		if err == nil {
			t.Error("approved after it expired")
		}
		s.sweep()
		t.wantStatus(op.ID, ledger.FailedFinal, "", 0)
		before := t.now(op.ID)
		_, err = s.Approve(t.Context(), op.ID, anna)
		t.wantUndecided(before, err)
		a := s.call(needing("a", theArgs))
		t.want(a, ledger.AnswerFailedFinal, 0)
		if a.Operation.ErrorCode != ledger.CodeApprovalExpired {
			t.Errorf("code %q", a.Operation.ErrorCode)
		}
	})
	inWorldNamed(t, "nor after a denial", func(t *world) {
		s := t.start()
		op := s.call(needing("a", theArgs)).Operation
		if _, err := s.Deny(t.Context(), op.ID, anna); err != nil {
			t.Fatal(err)
		}
		before := t.now(op.ID)
		_, err := s.Approve(t.Context(), op.ID, anna)
		t.wantUndecided(before, err)
		_, err = s.Deny(t.Context(), op.ID, anna)
		t.wantUndecided(before, err)
		pass(48 * time.Hour)
		s.sweep()
		t.want(s.call(needing("a", theArgs)), ledger.AnswerFailedFinal, 0)
		// Other arguments are a new question, and need a new answer; also if the policy has been
		// loosened meanwhile.
		a := s.call(strictly("a", args{"50.00", "less"}))
		t.want(a, ledger.AnswerAwaitingApproval, 0)
	})
	inWorldNamed(t, "a loosened policy lets nothing go that waits", func(t *world) {
		s := t.start()
		s.call(needing("a", theArgs))
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerAwaitingApproval, 0)
	})
}

func TestRunOnApproval(t *testing.T) {
	inWorldNamed(t, "runs without another call, what was sealed", func(t *world) {
		t.rules.RunOnApproval = true
		s := t.start()
		op := s.call(needing("a", theArgs)).Operation
		s.sweep()
		t.wantStatus(op.ID, ledger.Planned, "", 0)
		t.approve(s, op.ID)
		s.sweep()
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
		s.sweep()
		t.want(s.call(needing("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
	inWorldNamed(t, "once, with a call and two servers at it", func(t *world) {
		t.rules.RunOnApproval = true
		one, two := t.start(), t.start()
		op := one.call(needing("a", theArgs)).Operation
		t.approve(one, op.ID)
		var all sync.WaitGroup
		all.Go(one.sweep)
		all.Go(two.sweep)
		all.Go(func() { two.call(needing("a", theArgs)) })
		all.Wait()
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
	})
	inWorldNamed(t, "after a crash between the approval and the attempt", func(t *world) {
		t.rules.RunOnApproval = true
		one := t.start()
		op := one.call(needing("a", theArgs)).Operation
		t.approve(one, op.ID)
		one.dead.Store(true)
		two := t.start()
		two.sweep()
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
		two.sweep()
		t.want(two.call(needing("a", theArgs)), ledger.AnswerSucceeded, 1)
	})
	inWorldNamed(t, "waits for a limit that is used up", func(t *world) {
		t.rules = ledger.Rules{RunOnApproval: true, ApprovalFor: 48 * time.Hour, Limits: []ledger.Limit{{Scope: ledger.PerDay, Max: 1}}}
		s := t.start()
		s.call(strictly("b", theArgs))
		op := s.call(needing("a", theArgs)).Operation
		t.approve(s, op.ID)
		for range 10 {
			s.sweep()
			pass(time.Minute)
		}
		t.wantStatus(op.ID, ledger.Planned, "", 1)
		pass(24 * time.Hour)
		s.sweep()
		if got := t.now(op.ID); got.Status != ledger.Succeeded {
			t.Errorf("on the next day it is %q: %v", got.Status, t.reasons(op.ID))
		}
	})
}

func TestSecondIntent(t *testing.T) {
	alike := func(name string) ledger.Request {
		r := strictly(name, theArgs)
		r.Digest.Alike = ledger.FieldHash{1, 2, 3}
		return r
	}
	for _, tc := range []struct {
		rule   ledger.SecondIntent
		want   ledger.AnswerStatus
		alarms int
	}{
		{ledger.SecondIntentOff, ledger.AnswerSucceeded, 0},
		{ledger.SecondIntentWarn, ledger.AnswerSucceeded, 1},
		{ledger.SecondIntentApprove, ledger.AnswerAwaitingApproval, 1},
	} {
		inWorldNamed(t, "rule "+string(tc.rule), func(t *world) {
			t.rules = ledger.Rules{SecondIntent: tc.rule, AlikeWithin: time.Hour}
			s := t.start()
			first := s.call(alike("a"))
			t.want(first, ledger.AnswerSucceeded, 1)
			second := s.call(alike("b"))
			if second.Status != tc.want || t.alarmed("second_intent") != tc.alarms {
				t.Fatalf("the second one is %q with %d alarms; want %q and %d", second.Status, t.alarmed("second_intent"), tc.want, tc.alarms)
			}
			recorded := string(t.now(second.Operation.ID).Last.Evidence)
			history, err := t.store.History(t.Context(), second.Operation.ID)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if tc.alarms > 0 {
				want = `{"operation_id":"` + first.Operation.ID + `"}`
			}
			if diff := cmp.Diff(want, string(history[0].Evidence)); diff != "" {
				t.Errorf("what is recorded (-want +got):\n%s\nlast: %s", diff, recorded)
			}
			if s.call(alike("b")); t.alarmed("second_intent") != tc.alarms {
				t.Error("a repeat raised the alarm again")
			}
			pass(2 * time.Hour)
			if third := s.call(alike("c")); third.Status != ledger.AnswerSucceeded {
				t.Errorf("after the window: %q", third.Status)
			}
		})
	}
}
