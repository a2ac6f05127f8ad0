package increase_test

import (
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/increase"
	"github.com/onceward/onceward/providers/providertest"
)

func configured(t *testing.T, c increase.Config) *increase.Provider {
	t.Helper()
	c.APIKeyEnv = "ONCEWARD_TEST_INCREASE_KEY"
	p, err := increase.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var answers = []providertest.Answer{
	{Name: "invalid parameters", Status: 400, Body: problemText(400, "invalid_parameters_error"), Want: ledger.Refused},
	{Name: "malformed request", Status: 400, Body: problemText(400, "malformed_request_error"), Want: ledger.Refused},
	{Name: "invalid key", Status: 401, Body: problemText(401, "invalid_api_key_error"), Want: ledger.NotSent, Alarm: "credentials_refused"},
	{Name: "permissions", Status: 403, Body: problemText(403, "insufficient_permissions_error"), Want: ledger.NotSent, Alarm: "credentials_refused"},
	{Name: "no such object", Status: 404, Body: problemText(404, "object_not_found_error"), Want: ledger.Refused},
	{Name: "insufficient balance", Status: 409, Body: problemText(409, "invalid_operation_error"), Want: ledger.Refused},
	{Name: "key already used", Status: 409, Body: problemText(409, "idempotency_key_already_used_error"), Want: ledger.Contradiction, Alarm: "key_reused"},
	{Name: "another conflict", Status: 409, Body: problemText(409, "something_new_error"), Want: ledger.Unclear},
	{Name: "rate limited", Status: 429, Body: problemText(429, "rate_limited_error"), Want: ledger.Unclear},
	{Name: "internal error", Status: 500, Body: problemText(500, "internal_server_error"), Want: ledger.Unclear},
	{Name: "internal error after the effect", Status: 500, Body: problemText(500, "internal_server_error"), Acts: true, Want: ledger.Unclear},
}

func TestACHTransfers(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_INCREASE_KEY", planted)
	order := providers.PaymentOrder{
		DebitAccount: "ACCOUNT_IN71C4AMPH0VGO2QLLKY", PayeeAccount: "101050001:987654321", PayeeName: "Ida Planted",
		Amount: providers.Money{Minor: 125000, Currency: "USD"}, BusinessReference: "invoice-731", Purpose: "planted purpose <1>",
	}
	other := order
	other.Amount.Minor = 125001
	providertest.TestProvider(t, providertest.Harness{
		Action: providers.PaymentOrderCreate,
		New: func(t *testing.T, endpoint string) providers.Provider {
			return configured(t, increase.Config{Endpoint: endpoint})
		},
		Fake: func(*testing.T) providertest.Fake {
			return newBank("ach_transfers", "ach_transfer", "pending_submission").fake()
		},
		Arguments: order, Other: other, Answers: answers,
		Secrets: []string{planted}, Private: []string{"Ida Planted", "987654321", "planted purpose"},
	})
}

func TestAccountTransfers(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_INCREASE_KEY", planted)
	order := providers.PaymentOrder{
		DebitAccount: "OPERATING", PayeeAccount: "SANDBOX_ACCOUNT_UF16SUT2CT5BEVMQ3EH", PayeeName: "Ida Planted",
		Amount: providers.Money{Minor: 100, Currency: "USD"}, BusinessReference: "sweep-1",
	}
	other := order
	other.Amount.Minor = 101
	providertest.TestProvider(t, providertest.Harness{
		Action: providers.PaymentOrderCreate,
		New: func(t *testing.T, endpoint string) providers.Provider {
			return configured(t, increase.Config{Endpoint: endpoint, Transfer: "account", Accounts: map[string]string{"Oper-ating": "account_in71c4amph0vgo2qllky"}})
		},
		Fake: func(*testing.T) providertest.Fake {
			return newBank("account_transfers", "account_transfer", "complete").fake()
		},
		Arguments: order, Other: other, Answers: answers,
		Secrets: []string{planted}, Private: []string{"Ida Planted", "987654321"},
	})
}
