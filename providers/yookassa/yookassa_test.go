package yookassa_test

import (
	"encoding/base64"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/providertest"
	"github.com/onceward/onceward/providers/yookassa"
)

const (
	shop        = "123456"
	plantedKey  = "test_planted4242"
	plantedNote = "Erika Mustermann's blender broke"
	payment     = "2419a771-000f-5000-9000-1edaf29243f2"
)

func TestProvider(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_PLANTED_KEY", plantedKey)
	providertest.TestProvider(t, harness())
}

func newProvider(t *testing.T, endpoint string) providers.Provider {
	t.Helper()
	p, err := yookassa.New(yookassa.Config{ShopID: shop, SecretKeyEnv: "ONCEWARD_TEST_PLANTED_KEY", Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func harness() providertest.Harness {
	refund := providers.Refund{
		PaymentID: payment, Amount: providers.Money{Minor: 10000, Currency: "RUB"},
		Reason: "requested_by_customer", Note: plantedNote,
	}
	other := refund
	other.Amount.Minor = 2500
	return providertest.Harness{
		Action: providers.RefundCreate,
		New:    newProvider,
		Fake: func(t *testing.T) providertest.Fake {
			f := &fake{shop: shop, key: plantedKey, payment: payment, keys: map[string][2][]byte{}}
			return f.as(t)
		},
		Arguments: refund,
		Other:     other,
		Answers: []providertest.Answer{
			{Name: "202 processing, not acted", Status: 202, Body: `{"type":"processing","description":"Request accepted, but not processed yet","retry_after":1800}`, Want: ledger.Unclear},
			{Name: "202 processing, acted", Status: 202, Body: `{"type":"processing","description":"Request accepted, but not processed yet","retry_after":1800}`, Acts: true, Want: ledger.Unclear},
			{Name: "400 invalid_request", Status: 400, Body: problem("invalid_request", "amount.value"), Want: ledger.Refused},
			{Name: "400 key reused", Status: 400, Body: problem("invalid_request", "Idempotence-Key"), Want: ledger.Contradiction, Alarm: "key_reused"},
			{Name: "401", Status: 401, Body: problem("invalid_credentials", ""), Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "403", Status: 403, Body: problem("forbidden", ""), Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "404", Status: 404, Body: problem("not_found", "payment_id"), Want: ledger.Refused},
			{Name: "404 in JSON of a gateway", Status: 404, Body: `{"code":"not_found","message":"no route"}`, Want: ledger.Unclear},
			{Name: "415 without a body", Status: 415, Want: ledger.Unclear},
			{Name: "429, not acted", Status: 429, Body: problem("too_many_requests", ""), Want: ledger.Unclear},
			{Name: "429, acted", Status: 429, Body: problem("too_many_requests", ""), Acts: true, Want: ledger.Unclear},
			{Name: "500, not acted", Status: 500, Body: problem("internal_server_error", ""), Want: ledger.Unclear},
			{Name: "500, acted", Status: 500, Body: problem("internal_server_error", ""), Acts: true, Want: ledger.Unclear},
		},
		Secrets: []string{plantedKey, shop + ":" + plantedKey, base64.StdEncoding.EncodeToString([]byte(shop + ":" + plantedKey))},
		Private: []string{plantedNote, "Mustermann"},
	}
}
