package providertest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// ask looks up, and what comes back is read for planted data.
func (tr *trial) ask(t *testing.T, q ledger.Question) ledger.Finding {
	t.Helper()
	ctx, cancel := tr.peer.patience(t.Context())
	defer cancel()
	spy := spy{Provider: tr.provider, done: func(r ledger.Receipt, err error) { tr.h.wantNoLeakIn(t, r, err) }}
	actor, _ := providers.Actor("tried", scope, tr.h.Action, spy)
	f := actor.Lookup(ctx, q)
	tr.h.wantNoLeak(t, "the finding", fmt.Sprintf("%+v", f))
	return f
}

// question asks after an attempt whose answer was lost: nothing is known but what was
// sent.
func (tr *trial) question() ledger.Question {
	return ledger.Question{
		OperationID: operationID, ProviderKey: key(0), FirstSentAt: time.Now().UTC(),
		Payload: ledger.Payload{Arguments: json.RawMessage(`{}`), Request: tr.request},
	}
}

// acted is a trial with one effect, and the receipt for it.
func (h Harness) acted(t *testing.T) (*trial, ledger.Receipt) {
	t.Helper()
	tr := h.newTrial(t)
	f, receipt := tr.apply(t, key(0), tr.request, always)
	if f.Verdict != ledger.Done {
		t.Fatalf("an attempt without a loss: verdict %q, code %q", f.Verdict, f.Code)
	}
	return tr, receipt
}

func (h Harness) testLookups(t *testing.T) {
	t.Parallel()
	if h.traits(t).Lookup == providers.NoLookup {
		t.Skip("the provider can't be asked")
	}
	t.Run("present", h.testPresent)
	t.Run("absent", h.testAbsent)
	t.Run("changed", h.testChanged)
	for _, loss := range h.losses() {
		if loss.unread {
			continue // a look-up's connection can't be told from another one yet
		}
		t.Run(loss.Name, func(t *testing.T) {
			t.Parallel()
			tr, _ := h.acted(t)
			tr.peer.LoseLookups(loss)
			tr.wantLearnt(t, tr.ask(t, tr.question()), loss)
			if tr.fake.Crowd == nil {
				return
			}
			tr.fake.Crowd()
			tr.peer.LoseLookups(noLoss, loss) // the second page gets lost
			tr.wantLearnt(t, tr.ask(t, tr.question()), loss)
		})
	}
}

// wantLearnt wants nothing to be concluded from a lost answer: neither that there is an
// object nor that there is none.
func (tr *trial) wantLearnt(t *testing.T, f ledger.Finding, loss Loss) {
	t.Helper()
	nothing := f.Verdict == ledger.Unclear || f.Verdict == ledger.NotSent
	if loss.Lookup == "" && !nothing || loss.Lookup != "" && f.Verdict != loss.Lookup {
		t.Errorf("verdict %q (code %q), want %q", f.Verdict, f.Code, loss.Lookup)
	}
}

func (h Harness) testPresent(t *testing.T) {
	t.Parallel()
	tr, receipt := h.acted(t)
	later := ledger.Question{
		OperationID: operationID, ProviderKey: key(0), FirstSentAt: time.Now().UTC(),
		ProviderOperationID: receipt.ProviderOperationID, Reference: receipt.Reference,
	}
	raised := tr.question()
	raised.ProviderKey, raised.EarlierKeys = key(1), []string{key(0)}
	check := func(t *testing.T) {
		for name, q := range map[string]ledger.Question{
			"by what was sent":              tr.question(),
			"by what the receipt refers to": later, // nothing that was sealed is left
			"under an earlier key":          raised,
		} {
			f := tr.ask(t, q)
			if f.Verdict != ledger.Done {
				t.Errorf("%s: verdict %q, code %q, want %q", name, f.Verdict, f.Code, ledger.Done)
				continue
			}
			if diff := cmp.Diff(receipt, f.Receipt, cmpopts.IgnoreFields(ledger.Receipt{}, "Evidence"), jsonByMembers); diff != "" {
				t.Errorf("%s: another receipt than the attempt's (-attempt +look-up):\n%s", name, diff)
			}
			tr.wantEvidence(t, f.Receipt)
		}
	}
	check(t)
	if tr.fake.Crowd != nil {
		tr.fake.Crowd()
		before := len(tr.peer.Requests())
		check(t)
		if got := len(tr.peer.Requests()) - before; tr.h.traits(t).Lookup == providers.LookupByParent && got < 2*2 {
			t.Errorf("%d requests for look-ups among a crowd: the hit was on no second page", got)
		}
	}
	if got := len(tr.peer.Created()); got != 1 {
		t.Errorf("%d requests that act, want 1: a look-up changes nothing", got)
	}
}

// Members may come in another order.
var jsonByMembers = cmp.Transformer("JSON", func(raw json.RawMessage) any {
	var v any
	if len(raw) > 0 && json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return v
})

func (h Harness) testAbsent(t *testing.T) {
	t.Parallel()
	tr := h.newTrial(t)
	wantAbsent := func(when string, q ledger.Question) {
		t.Helper()
		if f := tr.ask(t, q); f.Verdict != ledger.Absent {
			t.Errorf("%s: verdict %q, code %q, want %q", when, f.Verdict, f.Code, ledger.Absent)
		}
	}
	wantAbsent("before anything", tr.question())
	tr.apply(t, key(0), tr.request, always)
	another := tr.question()
	another.ProviderKey, another.OperationID = key(7), "op_01990000-0000-7000-8000-000000000007"
	request, err := tr.provider.Prepare(providers.Order{
		OperationID: another.OperationID, ProviderKey: another.ProviderKey, At: orderedAt, Arguments: h.Arguments,
	})
	if err != nil {
		t.Fatal(err)
	}
	another.Payload.Request = request
	wantAbsent("of another operation with the same arguments", another)
	tr.fake.Hide(true)
	wantAbsent("while the index lags", tr.question())
	if tr.fake.Crowd != nil {
		tr.fake.Crowd()
		wantAbsent("among others", tr.question())
	}
	tr.fake.Hide(false)
	if f := tr.ask(t, tr.question()); f.Verdict != ledger.Done {
		t.Errorf("when the index has it: verdict %q, want %q", f.Verdict, ledger.Done)
	}
}

// testChanged has objects that aren't what was asked for.
func (h Harness) testChanged(t *testing.T) {
	t.Parallel()
	for _, change := range []struct {
		name string
		do   func(Fake) func()
		want ledger.Verdict
	}{
		{"two objects", func(f Fake) func() { return f.Double }, ledger.Contradiction},
		{"another amount", func(f Fake) func() { return f.Alter }, ledger.Contradiction},
		{"rejected", func(f Fake) func() { return f.Reject }, ledger.Refused},
	} {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			tr, _ := h.acted(t)
			do := change.do(tr.fake)
			if do == nil {
				t.Skip("the provider has no such thing")
			}
			do()
			f := tr.ask(t, tr.question())
			if f.Verdict != change.want {
				t.Errorf("verdict %q, code %q, want %q", f.Verdict, f.Code, change.want)
			}
			if change.want == ledger.Refused && f.Receipt.State != ledger.Rejected {
				t.Errorf("state %q, want %q: the ledger watches for it", f.Receipt.State, ledger.Rejected)
			}
		})
	}
}
