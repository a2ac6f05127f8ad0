package ledger_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
)

// aClock is a store that several servers share, and whose clock differs from this one's.
type aClock struct {
	ledger.Store
	off atomic.Int64 // nanoseconds
}

func (c *aClock) ClockSkew(context.Context) (time.Duration, error) {
	return time.Duration(c.off.Load()), nil
}

// TestClocksThatDiffer: a server whose clock may take another's running attempt for a lapsed one
// claims nothing, sweeps nothing and seals nothing, and says so.
func TestClocksThatDiffer(t *testing.T) {
	inWorld(t, func(t *world) {
		t.audit = auditor(t.T, "a secret for tests")
		s := t.start()
		s.NewID = idNow
		clock := &aClock{Store: s.Store}
		clock.off.Store(int64(-(lease-deadline)/2 - time.Microsecond))
		t.provider.will(losesReply, losesReply)
		op := s.call(strictly("a", theArgs)).Operation
		pass(2 * time.Hour)
		s.Store = clock
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx, time.Minute) }()
		pass(time.Second)
		if r := s.refused(strictly("b", theArgs)); r.Code != ledger.LedgerUnavailable {
			t.Errorf("a new call is refused with %q", r.Code)
		}
		t.wantStatus(op.ID, ledger.Unknown, "", 1)
		if sealed, err := t.store.Recall(t.Context(), "checkpoint:1"); err != nil || sealed != nil || t.alarmed("clock_skew") != 1 {
			t.Errorf("checkpoint %s, %v, %d alarms; want none and one alarm", sealed, err, t.alarmed("clock_skew"))
		}
		clock.off.Store(int64((lease - deadline) / 2))
		pass(2 * time.Minute)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
		t.want(s.call(strictly("b", theArgs)), ledger.AnswerUnknown, 2)
		if sealed, err := t.store.Recall(t.Context(), "checkpoint:1"); err != nil || sealed == nil {
			t.Errorf("no checkpoint after the clocks agreed, %v", err)
		}
		stop()
		<-done
	})
}

// TestSharedClocksAreToleratedTwice: where several machines share the ledger, one clock may be behind
// and the other ahead. What was proven absent a moment after the lease could still be on its way.
func TestSharedClocksAreToleratedTwice(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.is(false, true)
		t.provider.will(losesRequest)
		s := t.start()
		s.Store = &aClock{Store: s.Store}
		op := s.call(strictly("a", theArgs)).Operation
		before := anna
		pass(lease + settle + lag)
		s.sweep()
		if requests, _ := t.provider.tally(); requests != 1 {
			t.Fatalf("%d requests as soon as one clock says that absence counts; the other may be behind", requests)
		}
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Drop, "", 1, before); err == nil {
			t.Error("a person's no was taken that early")
		}
		pass(lease - deadline)
		s.sweep()
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
	})
}

// TestHistoriesNeverGoBack: two servers at one operation around the end of an hour, one clock a
// little behind. What is sealed of it then stays what is sealed of it.
func TestHistoriesNeverGoBack(t *testing.T) {
	inWorld(t, func(t *world) {
		t.audit = auditor(t.T, "a secret for tests")
		one, two := t.start(), t.start()
		pass(time.Hour - time.Second)
		one.NewID, two.Now = idNow, func() time.Time { return time.Now().Add(-2 * time.Second) }
		t.provider.will(isUnreachable)
		op := one.call(strictly("a", theArgs)).Operation
		pass(time.Second + time.Millisecond)
		one.refused(strictly("a", args{"900.00", "sorry"}))
		two.refused(strictly("a", args{"900.00", "sorry"})) // its clock is still in the hour before
		history, err := t.store.History(t.Context(), op.ID)
		if err != nil || len(history) < 4 || history[len(history)-1].At.Before(history[len(history)-2].At) {
			t.Fatalf("the history's times go back: %+v, %v", history, err)
		}
		t.seal(one, time.Hour)
		one.call(strictly("a", theArgs))
		if report, err := one.VerifyAudit(t.Context(), ""); err != nil || report.Checkpoints != 1 || len(report.Problems) != 0 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}
