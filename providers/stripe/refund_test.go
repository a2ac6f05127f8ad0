package stripe_test

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
	"github.com/onceward/onceward/providers/stripe"
)

// answering is a provider whose other side gives one answer to everything.
func answering(t *testing.T, answer string) *stripe.Provider {
	t.Helper()
	server := providertest.NewPeer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", "Mon, 30 Nov 2026 10:00:00 GMT")
		w.Header().Set("Request-Id", "req_123")
		fmt.Fprint(w, answer)
	}), isPost)
	p, err := stripe.New(stripe.Config{APIKeyFile: keyFile(t, plantedKey), Endpoint: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const object = `{"id":"re_1","object":"refund","amount":10000,"currency":"usd","charge":"ch_9","payment_intent":"pi_1",` +
	`"metadata":{"onceward_operation":"op_1"},"status":"succeeded","created":1796000000}`

// Each status of "The Refund object", and what isn't one.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]ledger.State{
		`"pending"`: ledger.Accepted, `"requires_action"`: ledger.Accepted, `"succeeded"`: ledger.Settled,
		`"failed"`: ledger.Rejected, `"canceled"`: ledger.Rejected, `"reversed"`: "", `null`: "", `""`: "",
	} {
		p := answering(t, strings.Replace(object, `"succeeded"`, status, 1))
		receipt, err := refundOne(t, p, "pi_1", 1)
		if receipt.State != want || (err == nil) != (want != "") {
			t.Errorf("status %s: state %q, %v; want %q", status, receipt.State, err, want)
		}
		if err != nil && providers.MarkOf(err) != "" {
			t.Errorf("status %s: %v, want no mark", status, err)
		}
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	receipt, err := refundOne(t, answering(t, object), "pi_1", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Receipt{
		ProviderOperationID: "re_1", ProviderStatus: "succeeded", State: ledger.Settled,
		Reference: json.RawMessage(`{"operation":"op_1","payment":"pi_1","units":10000,"amount":"100.00","currency":"USD"}`),
		Result:    json.RawMessage(`{"payment_id":"pi_1","amount":"100.00","currency":"USD"}`),
		Evidence: json.RawMessage(`{"provider":"stripe","answer":"created","provider_operation_id":"re_1","http_status":200,` +
			`"provider_time":"2026-11-30T10:00:00Z","request_id":"req_123"}`),
	}
	if diff := cmp.Diff(want, receipt); diff != "" {
		t.Errorf("receipt (-want +got):\n%s", diff)
	}
}

// An answer about something else is no proof of ours: a person looks.
func TestAnswerAboutSomethingElse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"amount":       {"10000", "10001"},
		"currency":     {`"usd"`, `"jpy"`},
		"payment":      {`"pi_1"`, `"pi_2"`},
		"no payment":   {`"pi_1"`, `null`},
		"operation":    {`"op_1"`, `"op_2"`},
		"no operation": {`{"onceward_operation":"op_1"}`, `{}`},
	} {
		_, err := refundOne(t, answering(t, strings.Replace(object, change[0], change[1], 1)), "pi_1", 1)
		if providers.MarkOf(err) != providers.Contradiction {
			t.Errorf("another %s: %v, want a contradiction", name, err)
		}
	}
	for name, answer := range map[string]string{
		"a list":            `{"object":"list","data":[],"has_more":false}`,
		"a charge":          strings.Replace(object, `"refund"`, `"charge"`, 1),
		"no id":             strings.Replace(object, `"re_1"`, `""`, 1),
		"an amount as text": strings.Replace(object, `10000`, `"10000"`, 1),
		"an array":          `[` + object + `]`,
	} {
		_, err := refundOne(t, answering(t, answer), "pi_1", 1)
		if e, ok := errors.AsType[*providers.Error](err); !ok || e.Mark != "" || e.Code != "answer_not_understood" {
			t.Errorf("%s: %v, want that it isn't understood", name, err)
		}
	}
}

// Only a whole list of Stripe's own says that there is no refund.
func TestListsThatProveNothing(t *testing.T) {
	t.Parallel()
	absent := func(answer string) error {
		p := answering(t, answer)
		order := orderOf("pi_1", 1)
		request, err := p.Prepare(order)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Lookup(t.Context(), providers.RefundCreate, ledger.Question{
			OperationID: order.OperationID, FirstSentAt: time.Unix(1_796_000_000, 0), Payload: ledger.Payload{Request: request},
		})
		return err
	}
	for _, answer := range []string{
		`{"object":"list","data":[],"has_more":false}`,
		`{"object":"list","data":[` + strings.Replace(object, "op_1", "op_2", 1) + `],"has_more":false}`,
		// Without an operation's name, but of another amount or long ago.
		`{"object":"list","data":[` + bare("10001", 1_796_000_000) + `],"has_more":false}`,
		`{"object":"list","data":[` + bare("10000", 1_795_990_000) + `],"has_more":false}`,
	} {
		if err := absent(answer); !errors.Is(err, providers.ErrAbsent) {
			t.Errorf("%s: %v, want ErrAbsent", answer, err)
		}
	}
	for answer, code := range map[string]string{
		`{"object":"list","data":[]}`:                                                                "answer_not_understood",
		`{"object":"list","has_more":false}`:                                                         "answer_not_understood",
		`{"object":"list","data":null,"has_more":false}`:                                             "answer_not_understood",
		`{"object":"list","data":[],"has_more":true}`:                                                "answer_not_understood",
		`{"object":"search_result","data":[],"has_more":false}`:                                      "answer_not_understood",
		`{"object":"list","data":[{"object":"charge","id":"ch_1"}],"has_more":false}`:                "answer_not_understood",
		`{"object":"list","data":[` + strings.Replace(object, "op_1", "x", 1) + `],"has_more":true}`: "answer_not_understood", // the same page for ever
		// Metadata can be edited: this may be ours.
		`{"object":"list","data":[` + bare("10000", 1_796_000_000) + `],"has_more":false}`: "look_alike",
	} {
		err := absent(answer)
		if e, ok := errors.AsType[*providers.Error](err); !ok || e.Mark != "" || e.Code != code {
			t.Errorf("%s: %v, want %q", answer, err, code)
		}
	}
}

// bare is a refund without an operation's name.
func bare(amount string, created int64) string {
	r := strings.Replace(object, `{"onceward_operation":"op_1"}`, `{}`, 1)
	r = strings.Replace(r, "10000", amount, 1)
	return strings.Replace(r, "1796000000", fmt.Sprint(created), 1)
}

// A refund that is known by its id is found although its metadata was edited.
func TestKnownByItsID(t *testing.T) {
	t.Parallel()
	p := answering(t, `{"object":"list","data":[`+bare("10000", 1_796_000_000)+`],"has_more":false}`)
	reference := json.RawMessage(`{"operation":"op_1","payment":"pi_1","units":10000,"amount":"100.00","currency":"USD"}`)
	found, err := p.Lookup(t.Context(), providers.RefundCreate, ledger.Question{OperationID: "op_1", ProviderOperationID: "re_1", Reference: reference})
	if err != nil || found.ProviderOperationID != "re_1" {
		t.Errorf("%q, %v; want re_1", found.ProviderOperationID, err)
	}
	for _, reference := range []string{"", "{}", "null", `{"operation":"op_1"}`, `{"payment":"pi_1"}`} {
		if _, err := p.Lookup(t.Context(), providers.RefundCreate, ledger.Question{OperationID: "op_1", Reference: json.RawMessage(reference)}); err == nil || errors.Is(err, providers.ErrAbsent) || providers.MarkOf(err) != "" {
			t.Errorf("reference %q: %v, want that nothing was learnt", reference, err)
		}
	}
}

// Two partial refunds of the same amount are two, if they are two operations; and each is
// found as its own, by payment intent and by charge.
func TestPartialRefunds(t *testing.T) {
	t.Parallel()
	for _, payment := range []string{"pi_1", "ch_1"} {
		fake := newFake(plantedKey, payment).as(t)
		p, err := stripe.New(stripe.Config{APIKeyFile: keyFile(t, plantedKey), Endpoint: providertest.NewPeer(t, fake.Handler, isPost).URL()})
		if err != nil {
			t.Fatal(err)
		}
		var made []string
		for _, number := range []int{1, 1, 2, 1, 2} {
			receipt, err := refundOne(t, p, payment, number)
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, receipt.ProviderOperationID)
		}
		for number := range 4 {
			request, err := p.Prepare(orderOf(payment, number))
			if err != nil {
				t.Fatal(err)
			}
			found, err := p.Lookup(t.Context(), providers.RefundCreate, ledger.Question{FirstSentAt: time.Now(), Payload: ledger.Payload{Request: request}})
			if err != nil && !errors.Is(err, providers.ErrAbsent) {
				t.Errorf("look-up of operation %d: %v", number, err)
			}
			made = append(made, found.ProviderOperationID)
		}
		want := []string{"re_fake0001", "re_fake0001", "re_fake0002", "re_fake0001", "re_fake0002", "", "re_fake0001", "re_fake0002", ""}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("%s: refunds made and found (-want +got):\n%s", payment, diff)
		}
		if n := len(fake.Effects()); n != 2 {
			t.Errorf("%s: %d effects, want 2", payment, n)
		}
	}
}
