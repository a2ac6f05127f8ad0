package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

func TestAConflictIsRefusedNotedAndAlarmed(t *testing.T) {
	inWorld(t, func(t *world) {
		const noted, calls = 16, 20
		s := t.start()
		first := s.call(strictly("a", theArgs))
		for i := range calls {
			refusal := s.refused(strictly("a", args{fmt.Sprint(i, ".00"), "other"}))
			want := ledger.Refusal{Code: ledger.OperationConflict, Fields: []string{"amount"}, OperationID: first.Operation.ID}
			if diff := cmp.Diff(want, *refusal); diff != "" {
				t.Fatalf("refusal (-want +got):\n%s", diff)
			}
		}
		op := t.now(first.Operation.ID)
		lines := 0
		for _, reason := range t.reasons(op.ID) {
			if reason == "conflict" {
				lines++
			}
		}
		if lines != noted || op.Conflicts != noted || t.alarmed("operation_conflict") != calls {
			t.Errorf("%d lines in the history, %d counted and %d alarms; want %d, %d and %d", lines, op.Conflicts, t.alarmed("operation_conflict"), noted, noted, calls)
		}
		t.wantStatus(op.ID, ledger.Succeeded, "", 1)
		if a := s.call(strictly("a", theArgs)); a.Operation.ProviderOperationID != "re_1" {
			t.Errorf("the right call then gets %q, want re_1", a.Operation.ProviderOperationID)
		}
	})
}

func TestAConflictInEveryStatus(t *testing.T) {
	other := args{"900.00", "sorry"}
	for name, reach := range map[string]func(t *world, s *server){
		"unknown":          func(t *world, s *server) { t.provider.will(losesReply); s.call(strictly("a", theArgs)) },
		"failed_final":     func(t *world, s *server) { t.provider.will(refuses); s.call(strictly("a", theArgs)) },
		"failed_retryable": func(t *world, s *server) { t.provider.will(isUnreachable); s.call(strictly("a", theArgs)) },
		"succeeded":        func(t *world, s *server) { s.call(strictly("a", theArgs)) },
	} {
		inWorldNamed(t, name, func(t *world) {
			s := t.start()
			reach(t, s)
			before := t.only()
			effects := t.provider.count()
			pass(time.Minute)
			if refusal := s.refused(strictly("a", other)); refusal.Code != ledger.OperationConflict {
				t.Errorf("refused with %q, want operation_conflict", refusal.Code)
			}
			after := t.only()
			if string(after.Status) != name || after.Status != before.Status || after.Attempts != before.Attempts || t.provider.count() != effects {
				t.Errorf("it went from %q with %d attempts to %q with %d, effects %d; want nothing to change", before.Status, before.Attempts, after.Status, after.Attempts, t.provider.count())
			}
		})
	}
}
