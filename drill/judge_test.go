package drill

import (
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
)

// TestPromises: each broken promise is seen, and a kept one isn't taken for broken. A drill that
// can't fail would prove nothing.
func TestPromises(t *testing.T) {
	t.Parallel()
	clock := newClock(nil)
	later, earlier := clock.Now().Add(time.Minute), clock.Now().Add(-time.Minute)
	open := ledger.Review{OpenedAt: earlier, Reason: ledger.ReviewUnverifiable}
	for _, test := range []struct {
		name    string
		op      ledger.Operation
		effects int
		problem string
	}{
		{"succeeded, once", ledger.Operation{Status: ledger.Succeeded, Attempts: 2}, 1, ""},
		{"succeeded, twice", ledger.Operation{Status: ledger.Succeeded, Attempts: 2}, 2, "one action happened 2 times"},
		{"succeeded, never", ledger.Operation{Status: ledger.Succeeded, Attempts: 1}, 0, "nothing happened"},
		{"failed, never", ledger.Operation{Status: ledger.FailedFinal, Attempts: 1}, 0, ""},
		{"failed, once", ledger.Operation{Status: ledger.FailedFinal, Attempts: 1}, 1, "failed_final, and it happened"},
		{"not sent, once", ledger.Operation{Status: ledger.FailedRetryable, Attempts: 1}, 1, "failed_retryable, and it happened"},
		{"unknown, a person asked", ledger.Operation{Status: ledger.Unknown, Attempts: 1, Review: open}, 1, ""},
		{"unknown, a look-up due", ledger.Operation{Status: ledger.Unknown, Attempts: 1, NextCheckAt: later}, 0, ""},
		{"unknown, nobody cares", ledger.Operation{Status: ledger.Unknown, Attempts: 1}, 0, "neither automation nor a person"},
		{"executing", ledger.Operation{Status: ledger.Executing, Attempts: 1, LeaseUntil: later}, 1, ""},
		{"executing for ever", ledger.Operation{Status: ledger.Executing, Attempts: 1, LeaseUntil: earlier}, 1, "after its lease"},
		{"waiting", ledger.Operation{Status: ledger.Planned, Approval: ledger.Approval{State: ledger.Waiting}}, 0, ""},
		{"waiting, and done", ledger.Operation{Status: ledger.Planned, Approval: ledger.Approval{State: ledger.Waiting}}, 1, "waits for a person, and it happened"},
		{"approved, and done", ledger.Operation{Status: ledger.Succeeded, Attempts: 1, Approval: ledger.Approval{State: ledger.Spent}}, 1, ""},
		{"denied, and done", ledger.Operation{Status: ledger.Succeeded, Attempts: 1, Approval: ledger.Approval{State: ledger.Denied}}, 1, "its approval is denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			st := &stage{run: &run{clock: clock}}
			st.promises(test.op, map[string]int{ledger.ProviderKey(test.op.Key, 0): test.effects})
			got := strings.Join(st.problems, "; ")
			if (test.problem == "") != (got == "") || !strings.Contains(got, test.problem) {
				t.Errorf("the problem is %q, want %q", got, test.problem)
			}
		})
	}
}

// TestPromisesCountEveryKey: an effect under an earlier generation's key counts too.
func TestPromisesCountEveryKey(t *testing.T) {
	t.Parallel()
	st := &stage{run: &run{clock: newClock(nil)}}
	op := ledger.Operation{Status: ledger.Succeeded, Attempts: 2, Generation: 1}
	st.promises(op, map[string]int{ledger.ProviderKey(op.Key, 0): 1, ledger.ProviderKey(op.Key, 1): 1})
	if len(st.problems) != 1 {
		t.Errorf("the problems are %q, want one", st.problems)
	}
}
