package moderntreasury_test

import (
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/moderntreasury"
	"github.com/onceward/onceward/providers/providertest"
)

const (
	internalAccount = "0f6ab6b5-7d2e-4f7e-9b2c-2f1f9a3c1d10"
	externalAccount = "9d0f7a3e-1c52-4a0b-8f7d-6f5e4d3c2b1a"
)

func configured(t *testing.T, c moderntreasury.Config) *moderntreasury.Provider {
	t.Helper()
	c.APIKeyEnv, c.OrganizationID = "ONCEWARD_TEST_MODERNTREASURY_KEY", organization
	p, err := moderntreasury.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var paid = providers.PaymentOrder{
	DebitAccount: "OPERATING", PayeeAccount: "9D0F7A3E1C524A0B8F7D6F5E4D3C2B1A", PayeeName: "Ida Planted",
	Amount: providers.Money{Minor: 125000, Currency: "USD"}, BusinessReference: "invoice-731", Purpose: "planted purpose <1>",
}

func TestPaymentOrders(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_MODERNTREASURY_KEY", planted)
	other := paid
	other.Amount.Minor = 125001
	providertest.TestProvider(t, providertest.Harness{
		Action: providers.PaymentOrderCreate,
		New: func(t *testing.T, endpoint string) providers.Provider {
			return configured(t, moderntreasury.Config{Endpoint: endpoint, Mode: "test", Accounts: map[string]string{"Oper-ating": internalAccount}})
		},
		Fake:      func(*testing.T) providertest.Fake { return newTreasury().fake() },
		Arguments: paid, Other: other,
		Answers: []providertest.Answer{
			{Name: "bad request", Status: 400, Body: problemText("parameter_invalid", "amount"), Want: ledger.Refused},
			{Name: "invalid key", Status: 401, Body: problemText("unauthorized", ""), Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "no access", Status: 403, Body: problemText("forbidden", ""), Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "no such account", Status: 404, Body: problemText("resource_not_found", "receiving_account_id"), Want: ledger.Refused},
			{Name: "in flight", Status: 409, Body: problemText("conflict", ""), Acts: true, Want: ledger.Unclear},
			{Name: "in flight, without a word", Status: 409, Body: `{}`, Want: ledger.Unclear},
			{Name: "invalid parameter", Status: 422, Body: problemText("parameter_invalid", "amount"), Want: ledger.Refused},
			{Name: "missing parameter", Status: 422, Body: problemText("parameter_missing", "type"), Want: ledger.Refused},
			{Name: "external_id taken", Status: 422, Body: problemText("parameter_invalid", "external_id"), Acts: true, Want: ledger.Unclear},
			{Name: "too many requests", Status: 429, Body: problemText("too_many_requests", ""), Want: ledger.Unclear},
			{Name: "internal error", Status: 500, Body: problemText("internal_error", ""), Want: ledger.Unclear},
			{Name: "internal error after the effect", Status: 500, Body: problemText("internal_error", ""), Acts: true, Want: ledger.Unclear},
		},
		Secrets: []string{planted}, Private: []string{"Ida Planted", "planted purpose"},
	})
}
