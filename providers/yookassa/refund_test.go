package yookassa_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/providertest"
	"github.com/onceward/onceward/providers/yookassa"
)

// answering is a provider whose other side gives one answer to everything.
func answering(t *testing.T, answer string) *yookassa.Provider {
	t.Helper()
	peer := providertest.NewPeer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", "Mon, 30 Nov 2026 10:00:00 GMT")
		fmt.Fprint(w, answer)
	}), func(r *http.Request) bool { return r.Method == http.MethodPost })
	p, err := yookassa.New(yookassa.Config{ShopID: shop, SecretKeyFile: keyFile(t, plantedKey), Endpoint: peer.URL()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const object = `{"id":"216749f7-0016-50be-b000-078d43a63ae4","status":"succeeded","amount":{"value":"100.00","currency":"RUB"},` +
	`"created_at":"2026-11-30T10:00:00.000Z","payment_id":"` + payment + `","metadata":{"onceward_operation":"op_1"}}`

func request(t *testing.T, p *yookassa.Provider) []byte {
	t.Helper()
	request, err := p.Prepare(providers.Order{OperationID: "op_1", ProviderKey: "k", Arguments: providers.Refund{
		PaymentID: payment, Amount: providers.Money{Minor: 10_000, Currency: "RUB"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func apply(t *testing.T, p *yookassa.Provider) (ledger.Receipt, error) {
	t.Helper()
	return p.Apply(t.Context(), providers.RefundCreate, ledger.Attempt{
		OperationID: "op_1", ProviderKey: "k", Payload: ledger.Payload{Request: request(t, p)}, MaySend: func() error { return nil },
	})
}

func lookup(t *testing.T, p *yookassa.Provider) (ledger.Receipt, error) {
	t.Helper()
	return p.Lookup(t.Context(), providers.RefundCreate, ledger.Question{
		OperationID: "op_1", ProviderKey: "k", FirstSentAt: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC), Payload: ledger.Payload{Request: request(t, p)},
	})
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	receipt, err := apply(t, answering(t, object))
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Receipt{
		ProviderOperationID: "216749f7-0016-50be-b000-078d43a63ae4", ProviderStatus: "succeeded", State: ledger.Settled,
		Reference: json.RawMessage(`{"operation":"op_1","payment":"` + payment + `","amount":{"value":"100.00","currency":"RUB"}}`),
		Result:    json.RawMessage(`{"payment_id":"` + payment + `","amount":"100.00","currency":"RUB"}`),
		Evidence: json.RawMessage(`{"provider":"yookassa","answer":"created","provider_operation_id":"216749f7-0016-50be-b000-078d43a63ae4",` +
			`"http_status":200,"provider_time":"2026-11-30T10:00:00Z"}`),
	}
	if diff := cmp.Diff(want, receipt); diff != "" {
		t.Errorf("receipt (-want +got):\n%s", diff)
	}
}

// What an answer proves, changed at one place.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, old, new string
		state          ledger.State   // with no error
		mark           providers.Mark // else
	}{
		{"pending", `"succeeded"`, `"pending"`, ledger.Accepted, ""},
		{"canceled", `"succeeded"`, `"canceled"`, ledger.Rejected, ""},
		{"an unknown status", `"succeeded"`, `"waiting_for_capture"`, "", ""},
		{"no status", `"succeeded"`, `""`, "", ""},
		{"no id", `"216749f7-0016-50be-b000-078d43a63ae4"`, `""`, "", ""},
		{"one digit less", `"100.00"`, `"100.0"`, ledger.Settled, ""},
		{"without a fraction", `"100.00"`, `"100"`, ledger.Settled, ""},
		{"another amount", `"100.00"`, `"10.00"`, "", providers.Contradiction},
		{"more digits", `"100.00"`, `"100.001"`, "", providers.Contradiction},
		{"another currency", `"RUB"`, `"USD"`, "", providers.Contradiction},
		{"another payment", payment, "another", "", providers.Contradiction},
		{"an error object", `"id"`, `"type":"error","no_id"`, "", ""},
	} {
		receipt, err := apply(t, answering(t, strings.Replace(object, tt.old, tt.new, 1)))
		if receipt.State != tt.state || (err == nil) != (tt.state != "") || providers.MarkOf(err) != tt.mark {
			t.Errorf("%s: state %q, %v; want %q, mark %q", tt.name, receipt.State, err, tt.state, tt.mark)
		}
	}
}

// Only a whole list of YooKassa's own says that there is no refund, and then that proves
// nothing: how soon a refund is listed isn't documented.
func TestLists(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"type":"list","items":[]}`: "absent",
		`{"type":"list","items":[` + strings.Replace(object, "op_1", "op_2", 1) + `]}`: "absent",
		`{"type":"list","items":[` + object + `]}`:                                     "found",
		`{"type":"list","items":[` + object + `,` + object + `]}`:                      "found", // pages may overlap
		`{"type":"list"}`:              "nothing",
		`{"type":"list","items":null}`: "nothing",
		`{"items":[]}`:                 "nothing",
		`{"type":"list","items":[{"status":"succeeded"}]}`:                                           "nothing",
		`{"type":"list","items":[],"next_cursor":"x"}`:                                               "nothing", // the same page for ever
		`{"type":"list","items":[` + object + `],"next_cursor":"37a5c87d-3984-51e8-a7f3-8de646d39"}`: "nothing",
	} {
		_, err := lookup(t, answering(t, answer))
		got := "found"
		if e, ok := errors.AsType[*providers.Error](err); ok && e.Mark == "" && e.Code == "answer_not_understood" {
			got = "nothing"
		} else if errors.Is(err, providers.ErrAbsent) {
			got = "absent"
		} else if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
	}
	p := answering(t, `{"type":"list","items":[]}`)
	if traits, _ := p.Traits(providers.RefundCreate); traits.ProvesAbsence {
		t.Error("a list without the refund is taken for a proof")
	}
}
