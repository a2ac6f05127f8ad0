package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A story is what two requests with the same key, the first or second of which
// meets a fault, see and do.
type story struct {
	fault  FaultKind
	first  string
	after  int    // effects after the first
	lookup string // then
	killed bool

	// The second request and the effects after it, where keys are known and where not.
	again, anew           string
	againAfter, anewAfter int
}

const (
	settled  = "settled/accepted"
	lost     = ":connection_lost"
	internal = ":server_error"
)

var stories = []story{
	{"", settled, 1, settled, false, settled, settled, 1, 2},
	{Unavailable, "not_sent:unavailable", 0, "absent", false, settled, settled, 1, 1},
	{LoseRequest, lost, 0, "absent", false, settled, settled, 1, 1},
	{LoseReply, lost, 1, settled, false, settled, settled, 1, 2},
	{Hang, "timeout", 1, settled, false, settled, settled, 1, 2},
	{ActLate, "timeout", 0, "absent", false, "in_flight:in_flight", settled, 0, 1},
	{ServerError, internal, 1, settled, false, settled, settled, 1, 2},
	{CachedError, internal, 0, "absent", false, internal, internal, 0, 0},
	{Refuse, "refused:sandbox_refused", 0, "absent", false, settled, settled, 1, 1},
	{InFlight, "in_flight:in_flight", 1, settled, false, settled, settled, 1, 2},
	{KeyIgnored, settled, 1, settled, false, settled, settled, 2, 2},
	{PruneKey, settled, 1, settled, false, settled, settled, 2, 2},
	{RejectLater, "accepted/accepted", 1, "rejected/rejected", false, "accepted/accepted", settled, 1, 2},
	{CrashBefore, lost, 0, "absent", true, settled, settled, 1, 1},
	{CrashAfter, lost, 1, settled, true, settled, settled, 1, 2},
}

func TestStoriesTellOfEveryFault(t *testing.T) {
	t.Parallel()
	told := map[FaultKind]bool{}
	for _, s := range stories {
		told[s.fault] = true
	}
	for _, kind := range FaultKinds() {
		if !told[kind] {
			t.Errorf("no story of %s", kind)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	blank := blankJournal(t)
	for _, story := range stories {
		for action := range samples {
			for _, lookup := range []bool{true, false} {
				for _, idempotent := range []bool{true, false} {
					name := fmt.Sprintf("%s/%s/lookup=%v/idempotent=%v", story.fault, action, lookup, idempotent)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						path := filepath.Join(t.TempDir(), "sandbox.db")
						if err := os.WriteFile(path, blank, 0o600); err != nil {
							t.Fatal(err)
						}
						// The bubble's time moves only when all wait: a deadline is then exact.
						synctest.Test(t, func(t *testing.T) { story.run(t, path, action, lookup, idempotent) })
					})
				}
			}
		}
	}
}

// blankJournal is a new journal's file: making each anew would take most of the time.
func blankJournal(t *testing.T) []byte {
	t.Helper()
	path := fresh(t)
	s, err := Open(t.Context(), path, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	blank, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return blank
}

func (st story) run(t *testing.T, path, action string, lookup, idempotent bool) {
	c := newClock()
	var kills int
	o := DefaultOptions()
	o.Lookup, o.Idempotent, o.Now, o.Kill = lookup, idempotent, c.now, func() { kills++ }
	if st.fault != "" {
		o.Faults = []Fault{{action, st.fault, 1}}
	}
	s := open(t, path, o)
	request := prepare(t, s, samples[action])

	apply := func() (ledger.Receipt, string) {
		ctx, cancel := context.WithTimeout(t.Context(), o.Deadline)
		defer cancel()
		r, err := s.Apply(ctx, action, attempt("k1", request))
		nothingPrivate(t, r, err)
		if err == nil && string(r.Result) != results[action] {
			t.Errorf("result = %s, want %s", r.Result, results[action])
		}
		return r, said(r, err)
	}
	find := func() string {
		r, err := s.Lookup(t.Context(), action, ledger.Question{ProviderKey: "k1"})
		nothingPrivate(t, r, err)
		return said(r, err)
	}
	found := func(want string) string {
		if !lookup {
			return ":no_lookup"
		}
		return want
	}

	first, answer := apply()
	wantSaid(t, "first", answer, st.first)
	wantEffects(t, s, st.after)
	wantSaid(t, "look-up", find(), found(st.lookup))
	wantEffects(t, s, st.after)
	if killed := kills == 1; killed != st.killed {
		t.Errorf("killed %d times, want it: %v", kills, st.killed)
	}

	again, after := st.again, st.againAfter
	if !idempotent {
		again, after = st.anew, st.anewAfter
	}
	second, answer := apply()
	wantSaid(t, "second", answer, again)
	wantEffects(t, s, after)
	acted := after > st.after
	if id := first.ProviderOperationID; id != "" && (second.ProviderOperationID == id) == acted {
		t.Errorf("ids %q and %q, though a second effect is %v", id, second.ProviderOperationID, acted)
	}

	// When no lease is left, nothing more can appear.
	c.advance(o.Lease)
	if st.fault == ActLate {
		after++
	}
	wantEffects(t, s, after)
	last := map[int]string{0: "absent", 1: settled, 2: "contradiction:two_objects"}[after]
	if st.fault == RejectLater && after == 1 {
		last = "rejected/rejected"
	}
	wantSaid(t, "last look-up", find(), found(last))
	for _, e := range effects(t, s) {
		if e.ActionType != action || e.ProviderKey != "k1" || string(e.Arguments) != string(request) {
			t.Errorf("effect %+v", e)
		}
	}
}

func TestKeyFaultsWaitForAKnownKey(t *testing.T) {
	t.Parallel()
	for _, kind := range []FaultKind{KeyIgnored, PruneKey} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := open(t, fresh(t), with(t, "refund:"+string(kind)+",refund:lose-reply"))
			// Nothing is known of the key: the second fault of the list is the first to apply.
			_, err := refundOnce(t, s, "k1")
			wantSaid(t, "first", said(ledger.Receipt{}, err), lost)
			second, err := refundOnce(t, s, "k1")
			wantSaid(t, "second", said(second, err), settled)
			wantEffects(t, s, 2)
			third, err := refundOnce(t, s, "k1")
			wantSaid(t, "third", said(third, err), settled)
			wantEffects(t, s, 2)
			// A key that was ignored once still stands for its first object; a pruned one
			// was taken for a new key.
			if same := third.ProviderOperationID == second.ProviderOperationID; same != (kind == PruneKey) {
				t.Errorf("the third answer is the second's: %v", same)
			}
		})
	}
}

func TestCachedErrorStays(t *testing.T) {
	t.Parallel()
	for _, idempotent := range []bool{true, false} {
		path, c := fresh(t), newClock()
		o := with(t, "refund:cached-error")
		o.Now, o.Idempotent = c.now, idempotent
		s := open(t, path, o)
		for range 3 {
			r, err := refundOnce(t, s, "k1")
			wantSaid(t, "k1", said(r, err), internal)
			c.advance(3 * o.Window)
		}
		changed := repayment
		changed.Note = "reworded"
		r, err := s.Apply(t.Context(), providers.RefundCreate, attempt("k1", prepare(t, s, changed)))
		want := map[bool]string{true: "key_reused:key_reused", false: internal}[idempotent]
		wantSaid(t, "another payload", said(r, err), want)
		r, err = refundOnce(t, s, "k2")
		wantSaid(t, "another key", said(r, err), settled)
		o.Faults = nil
		r, err = refundOnce(t, open(t, path, o), "k1")
		wantSaid(t, "k1 after a restart without faults", said(r, err), internal)
		wantEffects(t, s, 1)
	}
}

func TestCachedErrorLeavesASuccessAlone(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	first, err := refundOnce(t, open(t, path, DefaultOptions()), "k1")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, path, with(t, "refund:cached-error"))
	r, err := refundOnce(t, s, "k1")
	wantSaid(t, "with the fault", said(r, err), internal)
	r, err = refundOnce(t, s, "k1")
	if err != nil || r.ProviderOperationID != first.ProviderOperationID {
		t.Errorf("afterwards %q, %v; want %q", r.ProviderOperationID, err, first.ProviderOperationID)
	}
}

func TestFaultsOfOneActionSpareTheOthers(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), with(t, "refund:refuse:always"))
	for action, arguments := range samples {
		want := settled
		if action == providers.RefundCreate {
			want = "refused:sandbox_refused"
		}
		r, err := s.Apply(t.Context(), action, attempt("k", prepare(t, s, arguments)))
		wantSaid(t, action, said(r, err), want)
	}
}

// An answer is refused although the effect is there: what the ledger must not fall for.
func TestRefusedAfterALostReply(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), with(t, "refund:lose-reply,refund:refuse,refund:unavailable"))
	for _, want := range []string{lost, "refused:sandbox_refused", "not_sent:unavailable", settled} {
		r, err := refundOnce(t, s, "k1")
		wantSaid(t, "answer", said(r, err), want)
		wantEffects(t, s, 1)
	}
}

func TestActLateHappensBetweenDeadlineAndLease(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		o := with(t, "refund:act-late")
		o.Now = c.now
		s := open(t, path, o)
		r, err := refundOnce(t, s, "k1")
		wantSaid(t, "answer", said(r, err), "timeout")

		c.advance(o.Deadline)
		wantEffects(t, s, 0)
		r, err = ask(t, s, "k1")
		wantSaid(t, "look-up at the deadline", said(r, err), "absent")
		r, err = refundOnce(t, s, "k1")
		wantSaid(t, "repeat at the deadline", said(r, err), "in_flight:in_flight")

		// The worker may have used up to a half of what the lease leaves.
		c.advance((o.Lease - o.Deadline) / 2)
		wantEffects(t, s, 1)
		found, err := ask(t, s, "k1")
		wantSaid(t, "look-up", said(found, err), settled)
		again, err := refundOnce(t, s, "k1")
		wantSaid(t, "repeat", said(again, err), settled)
		if again.ProviderOperationID != found.ProviderOperationID {
			t.Errorf("repeat got %q, the object is %q", again.ProviderOperationID, found.ProviderOperationID)
		}
		wantEffects(t, s, 1)
	})
}

// A context without an end mustn't hang a call for ever.
func TestSilenceEndsWithTheSandboxDeadline(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	synctest.Test(t, func(t *testing.T) {
		o := with(t, "refund:hang")
		s := open(t, path, o)
		begun := time.Now()
		r, err := refundOnce(t, s, "k1")
		wantSaid(t, "answer", said(r, err), "timeout")
		if waited := time.Since(begun); waited != o.Deadline {
			t.Errorf("waited %v, want %v", waited, o.Deadline)
		}
	})
}
