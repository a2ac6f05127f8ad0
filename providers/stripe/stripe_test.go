package stripe_test

import (
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/providertest"
	"github.com/onceward/onceward/providers/stripe"
)

const (
	plantedKey  = "sk_test_planted4242"
	plantedNote = "Erika Mustermann's blender broke"
)

func TestProvider(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_PLANTED_KEY", plantedKey)
	providertest.TestProvider(t, harness("pi_3Abc"))
}

func harness(payment string) providertest.Harness {
	refund := providers.Refund{
		PaymentID: payment, Amount: providers.Money{Minor: 10000, Currency: "USD"},
		Reason: "requested_by_customer", Note: plantedNote,
	}
	other := refund
	other.Amount.Minor = 2500
	return providertest.Harness{
		Action: providers.RefundCreate,
		New: func(t *testing.T, endpoint string) providers.Provider {
			t.Helper()
			p, err := stripe.New(stripe.Config{APIKeyEnv: "ONCEWARD_TEST_PLANTED_KEY", Endpoint: endpoint})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Fake:      func(t *testing.T) providertest.Fake { return newFake(plantedKey, payment).as(t) },
		Arguments: refund,
		Other:     other,
		Answers: []providertest.Answer{
			{Name: "400 charge_already_refunded", Status: 400, Body: problem("invalid_request_error", "charge_already_refunded"), Want: ledger.Refused},
			{Name: "400 idempotency_error", Status: 400, Body: problem("idempotency_error", ""), Want: ledger.Contradiction, Alarm: "key_reused"},
			{Name: "401", Status: 401, Body: problem("invalid_request_error", ""), Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "402 card_error", Status: 402, Body: problem("card_error", "card_declined"), Want: ledger.Refused},
			{Name: "403", Status: 403, Body: problem("invalid_request_error", ""), Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "404 resource_missing", Status: 404, Body: problem("invalid_request_error", "resource_missing"), Want: ledger.Refused},
			{Name: "404 in JSON of a gateway", Status: 404, Body: `{"error":{"code":"not_found","message":"no route"}}`, Want: ledger.Unclear},
			{Name: "409 idempotency_key_in_use, not acted", Status: 409, Body: problem("idempotency_error", "idempotency_key_in_use"), Want: ledger.Unclear, Code: "in_flight"},
			{Name: "409 idempotency_key_in_use, acted", Status: 409, Body: problem("idempotency_error", "idempotency_key_in_use"), Acts: true, Want: ledger.Unclear},
			{Name: "429 rate_limit", Status: 429, Body: problem("invalid_request_error", "rate_limit"), Want: ledger.NotSent},
			{Name: "429 lock_timeout", Status: 429, Body: problem("invalid_request_error", "lock_timeout"), Want: ledger.Unclear},
			{Name: "500, not acted", Status: 500, Body: problem("api_error", ""), Want: ledger.Unclear},
			{Name: "500, acted", Status: 500, Body: problem("api_error", ""), Acts: true, Want: ledger.Unclear},
			{Name: "500 kept, not acted", Status: 500, Body: problem("api_error", ""), Kept: true, Want: ledger.Unclear},
			{Name: "500 kept, acted", Status: 500, Body: problem("api_error", ""), Acts: true, Kept: true, Want: ledger.Unclear},
		},
		Secrets: []string{plantedKey},
		Private: []string{plantedNote, "Mustermann"},
	}
}
