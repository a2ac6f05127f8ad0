package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
)

// The model names the action by its own arguments here, so people help.

var (
	firstText   = args{"100.00", "first text"}
	otherText   = args{"100.00", "other text"}
	thirdText   = args{"100.00", "third text"}
	otherAmount = args{"900.00", "first text"}
)

func TestARepeatIsRecognised(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		first := s.call(loosely("mail", firstText))
		t.want(first, ledger.AnswerSucceeded, 1)
		soon := s.call(loosely("mail", otherText))
		t.want(soon, ledger.AnswerSucceeded, 1)
		if diff := cmp.Diff([]string{"note"}, soon.Ignored); !soon.Replayed || diff != "" {
			t.Errorf("replayed %v, ignored (-want +got):\n%s", soon.Replayed, diff)
		}
		if refusal := s.refused(loosely("mail", otherAmount)); refusal.Code != ledger.OperationConflict {
			t.Errorf("another amount was refused with %q, want operation_conflict", refusal.Code)
		}
		pass(30 * 24 * time.Hour)
		t.want(s.call(loosely("mail", firstText)), ledger.AnswerSucceeded, 1)
	})
}

func TestALateRepeatWithOtherContentWaits(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		first := s.call(loosely("mail", firstText)).Operation
		pass(time.Hour)
		t.want(s.call(loosely("mail", otherText)), ledger.AnswerSucceeded, 1)
		pass(time.Microsecond)
		late := s.call(loosely("mail", otherText))
		t.want(late, ledger.AnswerAwaitingApproval, 1)
		if late.Operation.ID == first.ID || late.Operation.Intent.Revision != 2 {
			t.Fatalf("what waits is revision %d, want 2", late.Operation.Intent.Revision)
		}
		// The same again waits for the same decision, and the first text is still a repeat.
		if again := s.call(loosely("mail", otherText)); again.Operation.ID != late.Operation.ID {
			t.Errorf("it is asked for twice")
		}
		t.want(s.call(loosely("mail", firstText)), ledger.AnswerSucceeded, 1)
		if _, err := s.Approve(t.Context(), late.Operation.ID, anna); err != nil {
			t.Fatal(err)
		}
		done := s.call(loosely("mail", otherText))
		t.want(done, ledger.AnswerSucceeded, 2)
		if done.Replayed || done.Operation.ID != late.Operation.ID {
			t.Errorf("replayed %v, operation %s; want the approved one", done.Replayed, done.Operation.ID)
		}
		old := s.call(loosely("mail", firstText))
		t.want(old, ledger.AnswerSucceeded, 2)
		if old.Operation.ID != first.ID || old.Operation.ProviderOperationID != "re_1" {
			t.Errorf("the repeat of the first got %s, want the first's result", old.Operation.ProviderOperationID)
		}
	})
}

func TestANewNameForTheSameWaits(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		s.call(loosely("mail", firstText))
		pass(24*time.Hour - time.Second)
		second := s.call(loosely("letter", firstText))
		t.want(second, ledger.AnswerAwaitingApproval, 1)
		if got := second.Operation.Approval; got != (ledger.Approval{State: ledger.Waiting, Reason: "alike"}) {
			t.Errorf("it waits as %+v", got)
		}
		t.want(s.call(loosely("order", otherAmount)), ledger.AnswerSucceeded, 2) // not alike
	})
	inWorldNamed(t, "for a day", func(t *world) {
		s := t.start()
		s.call(loosely("mail", firstText))
		pass(24 * time.Hour)
		t.want(s.call(loosely("letter", firstText)), ledger.AnswerSucceeded, 2)
	})
}

// waiting brings an operation to where it waits for a person.
func (w *world) waiting(s *server) ledger.Operation {
	w.Helper()
	s.call(loosely("mail", firstText))
	return s.call(loosely("letter", firstText)).Operation
}

func TestAnApproval(t *testing.T) {
	inWorldNamed(t, "lets what was sealed go, not what the model says then", func(t *world) {
		s := t.start()
		op := t.waiting(s)
		if _, err := s.Approve(t.Context(), op.ID, anna); err != nil {
			t.Fatal(err)
		}
		t.want(s.call(loosely("letter", otherText)), ledger.AnswerSucceeded, 2)
		if got := t.provider.effects[1].request; got != "100.00|first text" {
			t.Errorf("it sent %q, want what was approved", got)
		}
		if got := t.now(op.ID).Approval.State; got != ledger.Spent {
			t.Errorf("the approval is %q, want spent", got)
		}
	})
	inWorldNamed(t, "is refused for another amount", func(t *world) {
		s := t.start()
		op := t.waiting(s)
		if _, err := s.Approve(t.Context(), op.ID, anna); err != nil {
			t.Fatal(err)
		}
		if refusal := s.refused(loosely("letter", otherAmount)); refusal.Code != ledger.OperationConflict {
			t.Errorf("refused with %q, want operation_conflict", refusal.Code)
		}
		if got := t.provider.count(); got != 1 {
			t.Errorf("%d effects, want 1", got)
		}
	})
	inWorldNamed(t, "is given once", func(t *world) {
		s := t.start()
		op := t.waiting(s)
		if _, err := s.Approve(t.Context(), op.ID, anna); err != nil {
			t.Fatal(err)
		}
		op = t.now(op.ID)
		_, err := s.Approve(t.Context(), op.ID, anna)
		t.wantUndecided(op, err)
	})
	inWorldNamed(t, "that never comes lapses", func(t *world) {
		s := t.start()
		op := t.waiting(s)
		pass(24 * time.Hour)
		_, err := s.Approve(t.Context(), op.ID, anna)
		t.wantUndecided(op, err)
		a := s.call(loosely("letter", firstText))
		t.want(a, ledger.AnswerFailedFinal, 1)
		if a.Operation.ErrorCode != ledger.CodeApprovalExpired || a.Operation.Approval.State != ledger.Expired {
			t.Errorf("code %q, approval %q", a.Operation.ErrorCode, a.Operation.Approval.State)
		}
	})
	inWorldNamed(t, "that isn't used lapses too", func(t *world) {
		s := t.start()
		op := t.waiting(s)
		if _, err := s.Approve(t.Context(), op.ID, anna); err != nil {
			t.Fatal(err)
		}
		pass(24 * time.Hour)
		s.sweep()
		t.wantStatus(op.ID, ledger.FailedFinal, "", 1)
		t.want(s.call(loosely("letter", firstText)), ledger.AnswerFailedFinal, 1)
	})
}

func TestADenial(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		op := t.waiting(s)
		if _, err := s.Deny(t.Context(), op.ID, anna); err != nil {
			t.Fatal(err)
		}
		a := s.call(loosely("letter", firstText))
		t.want(a, ledger.AnswerFailedFinal, 1)
		if a.Operation.ErrorCode != ledger.CodeApprovalDenied || !a.Replayed {
			t.Errorf("the same call got %q, replayed %v; want the saved denial", a.Operation.ErrorCode, a.Replayed)
		}
		// New arguments are a new question.
		again := s.call(loosely("letter", otherAmount))
		t.want(again, ledger.AnswerAwaitingApproval, 1)
		if again.Operation.ID != op.ID || again.Operation.Approval.State != ledger.Waiting {
			t.Errorf("operation %s waits as %+v", again.Operation.ID, again.Operation.Approval)
		}
		if _, err := s.Approve(t.Context(), op.ID, anna); err != nil {
			t.Fatal(err)
		}
		t.want(s.call(loosely("letter", otherAmount)), ledger.AnswerSucceeded, 2)
		if got := t.provider.effects[1].request; got != "900.00|first text" {
			t.Errorf("it sent %q, want the new arguments", got)
		}
	})
}

func TestAPermissionToRepeat(t *testing.T) {
	allow := func(t *world, s *server, id string, same bool) {
		t.Helper()
		if _, err := s.AllowRepeat(t.Context(), id, same, anna); err != nil {
			t.Fatal(err)
		}
	}
	inWorldNamed(t, "is for one more", func(t *world) {
		s := t.start()
		first := s.call(loosely("mail", firstText)).Operation
		allow(t, s, first.ID, false)
		t.want(s.call(loosely("mail", otherText)), ledger.AnswerSucceeded, 2)
		t.want(s.call(loosely("mail", thirdText)), ledger.AnswerSucceeded, 2)
	})
	inWorldNamed(t, "is for 15 minutes", func(t *world) {
		s := t.start()
		first := s.call(loosely("mail", firstText)).Operation
		allow(t, s, first.ID, true)
		pass(15 * time.Minute)
		t.want(s.call(loosely("mail", otherText)), ledger.AnswerSucceeded, 1)
	})
	inWorldNamed(t, "isn't for what was already done, to the letter", func(t *world) {
		s := t.start()
		first := s.call(loosely("mail", firstText)).Operation
		allow(t, s, first.ID, false)
		t.want(s.call(loosely("mail", firstText)), ledger.AnswerSucceeded, 1)
		t.want(s.call(loosely("mail", otherText)), ledger.AnswerSucceeded, 2)
	})
	inWorldNamed(t, "unless the person says so", func(t *world) {
		s := t.start()
		first := s.call(loosely("mail", firstText)).Operation
		allow(t, s, first.ID, true)
		second := s.call(loosely("mail", firstText))
		t.want(second, ledger.AnswerSucceeded, 2)
		if second.Replayed || second.Operation.Intent.Revision != 2 {
			t.Errorf("replayed %v, revision %d; want a second one", second.Replayed, second.Operation.Intent.Revision)
		}
		again := s.call(loosely("mail", firstText))
		t.want(again, ledger.AnswerSucceeded, 2)
		if again.Operation.ID != second.Operation.ID {
			t.Error("the repeat isn't the newest one's")
		}
	})
	inWorldNamed(t, "is given on the newest revision only", func(t *world) {
		s := t.start()
		first := s.call(loosely("mail", firstText)).Operation
		allow(t, s, first.ID, false)
		s.call(loosely("mail", otherText))
		first = t.now(first.ID)
		_, err := s.AllowRepeat(t.Context(), first.ID, false, anna)
		t.wantUndecided(first, err)
	})
	inWorldNamed(t, "isn't given on what is open", func(t *world) {
		t.provider.is(false, false)
		t.provider.will(losesReply)
		s := t.start()
		op := s.call(loosely("mail", firstText)).Operation
		_, err := s.AllowRepeat(t.Context(), op.ID, true, anna)
		t.wantUndecided(op, err)
	})
	inWorldNamed(t, "lets a planned one go", func(t *world) {
		s := t.start()
		op := t.waiting(s)
		allow(t, s, op.ID, false)
		t.want(s.call(loosely("letter", firstText)), ledger.AnswerSucceeded, 2)
	})
}

func TestAlikeCallsAtTheSameTime(t *testing.T) {
	inWorld(t, func(t *world) {
		arrived, goOn := make(chan struct{}), make(chan struct{})
		t.provider.will(until(arrived, goOn, acts))
		names := []string{"mail", "letter", "note"}
		wait := t.gather(3, []*server{t.start(), t.start(), t.start()}, arrived, t.Context(), func(i int) ledger.Request {
			return loosely(names[i], firstText)
		})
		close(goOn)
		got := map[ledger.AnswerStatus]int{}
		for _, r := range wait() {
			if r.err != nil {
				t.Fatal(r.err)
			}
			got[r.answer.Status]++
		}
		want := map[ledger.AnswerStatus]int{ledger.AnswerSucceeded: 1, ledger.AnswerAwaitingApproval: 2}
		if diff := cmp.Diff(want, got); diff != "" || t.provider.count() != 1 {
			t.Errorf("%d effects, answers (-want +got):\n%s", t.provider.count(), diff)
		}
	})
}

// A late repeat with other content waits for a person, also while a repeat to the letter is
// being answered: it must not be told that what it says was sent.
func TestALateChangeBesideARepeatUnderWay(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		s.call(loosely("mail", firstText))
		pass(2 * time.Hour)
		arrived, goOn := make(chan struct{}), make(chan struct{})
		held := false
		s.failing.Before = func(c ledgertest.Call) error {
			if c.Method == "Begin" && !held {
				held = true
				arrived <- struct{}{}
				select {
				case <-goOn:
				case <-t.provider.stopped:
				}
			}
			return nil
		}
		wait := t.gather(2, []*server{s}, arrived, t.Context(), func(i int) ledger.Request {
			return loosely("mail", []args{firstText, otherText}[i])
		})
		close(goOn)
		got := wait()
		t.want(got[0].answer, ledger.AnswerSucceeded, 1)
		t.want(got[1].answer, ledger.AnswerAwaitingApproval, 1)
	})
}
