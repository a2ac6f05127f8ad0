package tbank_test

import (
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/providertest"
	"github.com/onceward/onceward/providers/tbank"
)

func configured(t *testing.T, c tbank.Config) *tbank.Provider {
	t.Helper()
	c.TokenEnv = "ONCEWARD_TEST_TBANK_TOKEN"
	p, err := tbank.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var paid = providers.PaymentOrder{
	DebitAccount: "40702810900000000001", PayeeAccount: "40702810900000000002:044525974:7700000000:770001001", PayeeName: "Ida Planted",
	Amount: providers.Money{Minor: 125000, Currency: "RUB"}, BusinessReference: "invoice-731", Purpose: "planted purpose <1>",
}

func TestRoubleTransfers(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	other := paid
	other.Amount.Minor = 125001
	providertest.TestProvider(t, providertest.Harness{
		Action: providers.PaymentOrderCreate,
		New: func(t *testing.T, endpoint string) providers.Provider {
			return configured(t, tbank.Config{Endpoint: endpoint, Statuses: tbank.Statuses{Accepted: []string{takenOn}}})
		},
		Fake:      func(*testing.T) providertest.Fake { return newBank().fake() },
		Arguments: paid, Other: other,
		Answers: []providertest.Answer{
			{Name: "bad request", Status: 400, Body: problemText("BAD_REQUEST"), Want: ledger.Refused},
			{Name: "invalid token", Status: 401, Body: problemText("UNAUTHORIZED"), Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "no access", Status: 403, Body: problemText("FORBIDDEN"), Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "not found", Status: 404, Body: problemText("NOT_FOUND"), Want: ledger.Refused, Lookup: ledger.Absent},
			{Name: "data refused", Status: 422, Body: problemText("VALIDATION_ERROR"), Want: ledger.Refused},
			{Name: "data refused, in words", Status: 422, Body: problemText("данные неверны"), Want: ledger.Refused},
			{Name: "data refused, without a code", Status: 422, Body: `{"errorMessage":"Ida Planted"}`, Want: ledger.Unclear},
			{Name: "too many requests", Status: 429, Body: problemText("TOO_MANY_REQUESTS"), Want: ledger.Unclear},
			{Name: "server error", Status: 500, Body: problemText("INTERNAL_ERROR"), Want: ledger.Unclear},
			{Name: "server error after the effect", Status: 500, Body: problemText("INTERNAL_ERROR"), Acts: true, Want: ledger.Unclear},
		},
		Secrets: []string{planted}, Private: []string{"Ida Planted", "planted purpose", "40702810900000000002", "7700000000"},
	})
}
