package sandbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

func TestAnotherPayloadUnderAKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options func(*Options)
		want    string
		effects int
	}{
		{"keys are known", func(*Options) {}, "key_reused:key_reused", 1},
		{"keys are not known", func(o *Options) { o.Idempotent = false }, settled, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := DefaultOptions()
			tt.options(&o)
			s := open(t, fresh(t), o)
			if _, err := refundOnce(t, s, "k1"); err != nil {
				t.Fatal(err)
			}
			changed := repayment
			changed.Note = "reworded"
			r, err := s.Apply(t.Context(), providers.RefundCreate, attempt("k1", prepare(t, s, changed)))
			wantSaid(t, "other payload", said(r, err), tt.want)
			wantEffects(t, s, tt.effects)
		})
	}
}

func TestRepeatsAtOnce(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	same := []*Sandbox{open(t, path, DefaultOptions()), open(t, path, DefaultOptions())}
	request := prepare(t, same[0], repayment)
	ids := make(chan string)
	const repeats = 16
	for i := range repeats {
		go func() {
			r, err := same[i%2].Apply(t.Context(), providers.RefundCreate, attempt("k1", request))
			if err != nil {
				t.Error(err)
			}
			ids <- r.ProviderOperationID
		}()
	}
	seen := map[string]bool{}
	for range repeats {
		seen[<-ids] = true
	}
	if len(seen) != 1 {
		t.Errorf("%d objects for one key", len(seen))
	}
	wantEffects(t, same[0], 1)
}

func TestSameKeyOfAnotherAction(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), DefaultOptions())
	for action, arguments := range samples {
		r, err := s.Apply(t.Context(), action, attempt("k1", prepare(t, s, arguments)))
		wantSaid(t, action, said(r, err), settled)
	}
	wantEffects(t, s, 3)
	r, err := ask(t, s, "k1")
	wantSaid(t, "look-up", said(r, err), settled)
}

func TestKeysAreForgottenAfterTheWindow(t *testing.T) {
	t.Parallel()
	c := newClock()
	o := DefaultOptions()
	o.Now, o.Window = c.now, time.Hour
	s := open(t, fresh(t), o)
	first, err := refundOnce(t, s, "k1")
	if err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour - 1)
	again, err := refundOnce(t, s, "k1")
	if err != nil || again.ProviderOperationID != first.ProviderOperationID {
		t.Errorf("just inside the window: %q, %v; want %q", again.ProviderOperationID, err, first.ProviderOperationID)
	}
	wantEffects(t, s, 1)
	c.advance(1) // the repeat has not made the window longer
	r, err := refundOnce(t, s, "k1")
	wantSaid(t, "after the window", said(r, err), settled)
	wantEffects(t, s, 2)
	r, err = ask(t, s, "k1")
	wantSaid(t, "look-up", said(r, err), "contradiction:two_objects")
}

func TestLookupLags(t *testing.T) {
	t.Parallel()
	c := newClock()
	o := DefaultOptions()
	o.Now, o.Lag = c.now, time.Minute
	s := open(t, fresh(t), o)
	if _, err := refundOnce(t, s, "k1"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		advance time.Duration
		want    string
	}{{0, "absent"}, {time.Minute - 1, "absent"}, {1, settled}} {
		c.advance(step.advance)
		r, err := ask(t, s, "k1")
		wantSaid(t, "look-up", said(r, err), step.want)
		wantEffects(t, s, 1) // the lag is the look-up's alone
	}
}

func TestLookupOfEarlierKeys(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), DefaultOptions())
	first, err := refundOnce(t, s, "k0")
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(q ledger.Question) (ledger.Receipt, error) {
		return s.Lookup(t.Context(), providers.RefundCreate, q)
	}
	both := ledger.Question{ProviderKey: "k1", EarlierKeys: []string{"k0"}}
	r, err := lookup(both)
	if err != nil || r.ProviderOperationID != first.ProviderOperationID {
		t.Errorf("under an earlier key: %q, %v; want %q", r.ProviderOperationID, err, first.ProviderOperationID)
	}
	r, err = lookup(ledger.Question{ProviderKey: "k0", EarlierKeys: []string{"k0"}})
	wantSaid(t, "a key that stands twice", said(r, err), settled)
	r, err = lookup(ledger.Question{ProviderKey: "k1"})
	wantSaid(t, "without the earlier key", said(r, err), "absent")
	if _, err := refundOnce(t, s, "k1"); err != nil {
		t.Fatal(err)
	}
	r, err = lookup(both)
	wantSaid(t, "an object under each key", said(r, err), "contradiction:two_objects")
}

func TestLookupOfSomethingElse(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), DefaultOptions())
	if _, err := refundOnce(t, s, "k1"); err != nil {
		t.Fatal(err)
	}
	more := repayment
	more.Amount.Minor++
	r, err := s.Lookup(t.Context(), providers.RefundCreate, ledger.Question{
		ProviderKey: "k1", Payload: ledger.Payload{Request: prepare(t, s, more)},
	})
	wantSaid(t, "another amount", said(r, err), "contradiction:other_object")
}

func TestMaySendIsAskedBeforeAnythingHappens(t *testing.T) {
	t.Parallel()
	for _, kind := range append(FaultKinds(), "") {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			o := DefaultOptions()
			o.Kill = func() { t.Error("killed") }
			if kind != "" {
				o.Faults = []Fault{{providers.RefundCreate, kind, 1}}
			}
			s := open(t, fresh(t), o)
			a := attempt("k1", prepare(t, s, repayment))
			asked := 0
			a.MaySend = func() error {
				asked++
				return ledger.ErrTooLate
			}
			_, err := s.Apply(t.Context(), providers.RefundCreate, a)
			if !errors.Is(err, ledger.ErrTooLate) || asked != 1 {
				t.Errorf("error %v after %d questions; want ErrTooLate after one", err, asked)
			}
			wantEffects(t, s, 0)
			if used := spent(t, s); used != 0 {
				t.Errorf("%d faults spent", used)
			}
		})
	}
}

func spent(t *testing.T, s *Sandbox) (used int) {
	t.Helper()
	err := s.journal.reader.QueryRowContext(t.Context(), "SELECT coalesce(sum(used), 0) FROM faults").Scan(&used)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// asleep is the context of a process that was stopped past its deadline and whose
// timers haven't fired yet.
type asleep struct{ context.Context }

func (asleep) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

func TestALateWorkerDoesNotAct(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), with(t, "refund:lose-reply"))
	a := attempt("k1", prepare(t, s, repayment))
	r, err := s.Apply(asleep{t.Context()}, providers.RefundCreate, a)
	wantSaid(t, "stopped past the deadline", said(r, err), "not_sent:unavailable")

	ctx, cancel := context.WithCancel(t.Context())
	a.MaySend = func() error { cancel(); return nil }
	r, err = s.Apply(ctx, providers.RefundCreate, a)
	wantSaid(t, "given up", said(r, err), "not_sent:unavailable")

	wantEffects(t, s, 0)
	if used := spent(t, s); used != 0 {
		t.Errorf("%d faults spent", used)
	}
}

// A call that can't have its turn before its deadline gives up, whoever holds it up.
func TestWaitingEndsWithTheDeadline(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s, other := open(t, path, DefaultOptions()), open(t, path, DefaultOptions())
	tx, err := s.journal.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, waiting := range []*Sandbox{s, other} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		r, err := waiting.Apply(ctx, providers.RefundCreate, attempt("k1", prepare(t, s, repayment)))
		wantSaid(t, "waiting", said(r, err), "not_sent:unavailable")
	}
	tx.rollback()
	r, err := refundOnce(t, other, "k1")
	wantSaid(t, "afterwards", said(r, err), settled)
	wantEffects(t, s, 1)
}

func TestWaitingOutlastsSQLiteItself(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s, other := open(t, path, DefaultOptions()), open(t, path, DefaultOptions())
	tx, err := s.journal.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	time.AfterFunc(2*busyMillis*time.Millisecond, func() {
		tx.rollback()
		close(released)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := other.Apply(ctx, providers.RefundCreate, attempt("k1", prepare(t, s, repayment)))
	wantSaid(t, "after a long wait", said(r, err), settled)
	<-released
}

func TestBrokenRequestIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), DefaultOptions())
	for action := range samples {
		r, err := s.Apply(t.Context(), action, attempt("k1", []byte(`{"to":`)))
		wantSaid(t, action, said(r, err), "refused:invalid_request")
	}
	r, err := s.Apply(t.Context(), "invoice.send", attempt("k1", []byte(`{}`)))
	wantSaid(t, "unknown action", said(r, err), "refused:invalid_request")
	wantEffects(t, s, 0)
}

func TestEffectsInOrder(t *testing.T) {
	t.Parallel()
	c := newClock()
	o := DefaultOptions()
	o.Now = c.now
	s := open(t, fresh(t), o)
	var want []Effect
	for _, key := range []string{"k3", "k1", "k2"} {
		r, err := refundOnce(t, s, key)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, Effect{
			ActionType: "refund", ProviderKey: key, ProviderOperationID: r.ProviderOperationID,
			At: c.now().UTC(), Arguments: prepare(t, s, repayment),
		})
		c.advance(time.Second)
	}
	if diff := cmp.Diff(want, effects(t, s)); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	for range s.Effects(t.Context()) {
		break // leaves nothing open
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Effects(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want context.Canceled", err)
		}
	}
}
