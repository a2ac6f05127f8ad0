package providertest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

func (h Harness) testSuccess(t *testing.T) {
	t.Parallel()
	tr := h.newTrial(t)
	asked := 0
	maySend := func() error { asked++; return nil }
	f, receipt := tr.apply(t, key(0), tr.request, maySend)
	tr.want(t, f, noLoss, 1, 1)
	if asked == 0 {
		t.Error("Apply never asked MaySend")
	}
	if effects := tr.fake.Effects(); len(effects) != 1 || receipt.ProviderOperationID != effects[0] {
		t.Errorf("the receipt names %q, the effects are %q", receipt.ProviderOperationID, effects)
	}
	if receipt.ProviderStatus == "" || receipt.State == ledger.Rejected || receipt.State == "" {
		t.Errorf("status %q, state %q", receipt.ProviderStatus, receipt.State)
	}
	h.wantResult(t, receipt)
	tr.wantEvidence(t, receipt)
	tr.wantKeySent(t)
	if t.Failed() {
		return
	}

	again, _ := tr.apply(t, key(0), tr.request, always)
	requests := tr.peer.Created()
	if diff := cmp.Diff(requests[0], requests[1]); diff != "" {
		t.Errorf("the second attempt's request is another one (-first +second):\n%s", diff)
	}
	if h.traits(t).Key == providers.NoKey {
		return
	}
	tr.want(t, again, noLoss, 1, 2)
	next, _ := tr.apply(t, key(1), tr.request, always)
	tr.want(t, next, noLoss, 2, 3) // another generation's key is another request
}

// wantResult compares what the tool's caller gets: the same members from every provider.
func (h Harness) wantResult(t *testing.T, r ledger.Receipt) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(r.Result, &got); err != nil {
		t.Errorf("the result is no JSON object: %v", err)
	}
	var want map[string]any
	switch a := h.Arguments.(type) {
	case providers.Email:
		all := slices.Concat(a.To, a.Cc, a.Bcc)
		slices.Sort(all)
		want = map[string]any{"recipients": float64(len(slices.Compact(all)))}
	case providers.PaymentOrder:
		want = map[string]any{"business_reference": a.BusinessReference, "amount": a.Amount.Decimal(), "currency": a.Amount.Currency}
	case providers.Refund:
		want = map[string]any{"payment_id": a.PaymentID, "amount": a.Amount.Decimal(), "currency": a.Amount.Currency}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func (tr *trial) wantEvidence(t *testing.T, r ledger.Receipt) {
	t.Helper()
	var evidence map[string]any
	if err := json.Unmarshal(r.Evidence, &evidence); err != nil {
		t.Errorf("the evidence is no JSON object: %v", err)
	}
	if evidence["provider"] == nil || evidence["provider_operation_id"] != r.ProviderOperationID {
		t.Errorf("the evidence doesn't name the provider or the object: %s", r.Evidence)
	}
}

// wantKeySent looks for the key where the traits say that it travels. Some providers
// want it as a UUID.
func (tr *trial) wantKeySent(t *testing.T) {
	t.Helper()
	created := tr.peer.Created()
	if len(created) != 1 {
		t.Fatalf("%d requests that act, want 1", len(created))
	}
	r := created[0]
	var headers []string
	for _, values := range r.Header {
		headers = append(headers, values...)
	}
	holds := func(text string) bool { return strings.Contains(strings.ReplaceAll(text, "-", ""), key(0)) }
	inHeader, inBody := slices.ContainsFunc(headers, holds), holds(string(r.Body)) || holds(r.URI)
	switch carrier := tr.h.traits(t).Key; {
	case carrier == providers.KeyInHeader && !inHeader:
		t.Error("no header carries the key")
	case (carrier == providers.KeyInBody || carrier == providers.KeyIsID) && !inBody:
		t.Error("neither body nor path carries the key")
	}
}
