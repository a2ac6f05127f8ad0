package providertest

import (
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// An end is what an operation comes to.
type end struct {
	status  ledger.Status
	review  bool
	effects int
}

var (
	happened = end{status: ledger.Succeeded, effects: 1}
	refused  = end{status: ledger.FailedFinal}
)

// open is what nobody can tell but a person.
func open(effects int) end { return end{ledger.Unknown, true, effects} }

func (w *world) want(op ledger.Operation, want end) {
	w.Helper()
	effects := w.trial.fake.Effects()
	got := end{op.Status, op.Review.Open(), len(effects)}
	if got != want {
		w.Fatalf("it ended as %+v (code %q, review %q, %d attempts), want %+v", got, op.ErrorCode, op.Review.Reason, op.Attempts, want)
	}
	if got.status == ledger.Succeeded && op.ProviderOperationID != effects[0] {
		w.Errorf("the ledger names %q, the provider has %q", op.ProviderOperationID, effects[0])
	}
}

// end is what a loss must come to at a provider with these traits, when only the first
// attempt is lost.
func (loss Loss) expected(traits providers.Traits) end {
	effects := 0
	if loss.Acts {
		effects = 1
	}
	asked, idempotent := traits.Lookup != providers.NoLookup, traits.Key != providers.NoKey
	switch {
	case loss.Want == ledger.Refused:
		return refused
	case loss.Want == ledger.Contradiction:
		return open(effects)
	case loss.Want == ledger.NotSent && !loss.kept, loss.Want == ledger.Done:
		return happened
	case asked && loss.Acts:
		return happened
	case loss.kept:
		return open(effects)
	case idempotent, asked && traits.ProvesAbsence:
		return happened
	default:
		return open(effects)
	}
}

func (h Harness) testWorlds(t *testing.T, store ledger.Store, log *journal) {
	traits := h.traits(t)
	t.Run("no loss", func(t *testing.T) {
		t.Parallel()
		w := h.newWorld(t, store, log, "")
		w.execute()
		w.want(w.settle(), happened)
		w.wantReplay(ledger.AnswerSucceeded)
	})
	for name, endpoint := range unreachable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := h.newWorld(t, store, log, endpoint)
			w.execute()
			w.want(w.now(), end{status: ledger.FailedRetryable})
			w.want(w.settle(), happened)
			w.wantReplay(ledger.AnswerSucceeded)
		})
	}
	for _, loss := range h.losses() {
		t.Run(loss.Name, func(t *testing.T) {
			t.Parallel()
			w := h.newWorld(t, store, log, "")
			w.trial.peer.Lose(loss)
			w.execute()
			if retryable := w.now().Status == ledger.FailedRetryable; retryable != (loss.Want == ledger.NotSent) {
				t.Errorf("it is %q after the loss; retryable is what was provably not sent", w.now().Status)
			}
			w.want(w.settle(), loss.expected(traits))
			w.wantReplay("")
		})
	}
	t.Run("window", func(t *testing.T) { h.testWindow(t, store, log) })
	t.Run("lag", func(t *testing.T) { h.testLag(t, store, log) })
	t.Run("found", func(t *testing.T) { h.testFound(t, store, log) })
}

// wantReplay repeats the call after the end: nothing is sent by it.
func (w *world) wantReplay(status ledger.AnswerStatus) {
	w.Helper()
	before := len(w.trial.peer.Created())
	a := w.execute()
	if status != "" && a.Status != status {
		w.Errorf("a repeated call got %q, want %q", a.Status, status)
	}
	if after := len(w.trial.peer.Created()); after != before {
		w.Errorf("a repeated call sent %d more requests", after-before)
	}
}

// lost is an answer that doesn't come: the effect is there.
var lost = Loss{Name: "FIN after the effect", Acts: true, Want: ledger.Unclear, end: func(line) {}}

// notReached is a request that doesn't come.
var notReached = Loss{Name: "FIN before the effect", Want: ledger.Unclear, end: func(line) {}}

// testWindow lets the answer and all look-ups get lost until the provider has forgotten
// the key. From then on nothing may be sent: it would act again.
func (h Harness) testWindow(t *testing.T, store ledger.Store, log *journal) {
	t.Parallel()
	traits := h.traits(t)
	if traits.Window == 0 {
		t.Skip("the key is known for ever, or there is none")
	}
	w := h.newWorld(t, store, log, "")
	down := Loss{Name: "503", end: gateway(503)}
	w.trial.peer.LoseEveryLookup(&down)
	w.trial.peer.Lose(lost)
	w.execute()
	sent := w.now().FirstSentAt
	w.trial.fake.Forget()
	w.clock.to(sent.Add(traits.Window - traits.Margin))
	w.want(w.settle(), open(1))
	if n := len(w.trial.peer.Created()); n != 1 {
		t.Errorf("%d requests that act, want 1: the key was too old", n)
	}
	w.trial.peer.LoseEveryLookup(nil)
	if traits.Lookup != providers.NoLookup {
		w.clock.to(w.clock.Now().Add(time.Hour))
		if _, err := w.ledger.Reconcile(t.Context(), w.id); err != nil {
			t.Fatalf("Reconcile: %v", err)
		}
		w.want(w.now(), happened)
	}
}

// testLag has a look-up that doesn't know of the effect yet.
func (h Harness) testLag(t *testing.T, store ledger.Store, log *journal) {
	t.Parallel()
	traits := h.traits(t)
	if traits.Lookup == providers.NoLookup {
		t.Skip("the provider can't be asked")
	}
	w := h.newWorld(t, store, log, "")
	w.trial.peer.Lose(lost)
	w.trial.fake.Hide(true)
	w.execute()
	for until := w.now().LeaseUntil.Add(traits.Settle + traits.LookupLag); w.now().Status == ledger.Unknown; {
		op := w.now()
		if op.Review.Open() || !op.NextCheckAt.Before(until) {
			break
		}
		w.step(op)
	}
	w.trial.fake.Hide(false)
	op := w.settle()
	if op.Review.Open() && !traits.ProvesAbsence && traits.Key == providers.NoKey {
		// Absence is never believed there, and a person decides; but a later look helps.
		if _, err := w.ledger.Reconcile(t.Context(), w.id); err != nil {
			t.Fatalf("Reconcile: %v", err)
		}
		op = w.now()
	}
	w.want(op, happened)
}

// testFound has look-ups that find the effect of a lost answer, or what became of it.
func (h Harness) testFound(t *testing.T, store ledger.Store, log *journal) {
	if h.traits(t).Lookup == providers.NoLookup {
		t.Skip("the provider can't be asked")
	}
	for _, found := range []struct {
		name string
		do   func(Fake) func()
		want end
	}{
		{"on another page", func(f Fake) func() { return f.Crowd }, happened},
		{"two objects", func(f Fake) func() { return f.Double }, open(1)},
		{"another amount", func(f Fake) func() { return f.Alter }, open(1)},
		{"rejected", func(f Fake) func() { return f.Reject }, end{status: ledger.FailedFinal, effects: 1}},
	} {
		t.Run(found.name, func(t *testing.T) {
			t.Parallel()
			w := h.newWorld(t, store, log, "")
			do := found.do(w.trial.fake)
			if do == nil {
				t.Skip("the provider has no such thing")
			}
			w.trial.peer.Lose(lost)
			w.execute()
			do()
			w.want(w.settle(), found.want)
			if n := len(w.trial.peer.Created()); n != 1 {
				t.Errorf("%d requests that act, want 1", n)
			}
		})
	}
	t.Run("absent, among others", func(t *testing.T) {
		t.Parallel()
		w := h.newWorld(t, store, log, "")
		w.trial.peer.Lose(notReached)
		if w.trial.fake.Crowd != nil {
			w.trial.fake.Crowd()
		}
		w.execute()
		w.want(w.settle(), notReached.expected(h.traits(t)))
	})
}
