package webhook_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/providertest"
	"github.com/onceward/onceward/providers/webhook"
)

// read reads a provider's configuration, strictly, as the server does.
func read(t *testing.T, text string) webhook.Config {
	t.Helper()
	var c webhook.Config
	if err := yaml.NewDecoder(strings.NewReader(text), yaml.Strict()).Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func configured(t *testing.T, endpoint, text string) *webhook.Provider {
	t.Helper()
	c := read(t, text)
	c.Endpoint = endpoint
	p, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// documented is the example of the package's documentation: it is tried as it stands there.
func documented(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("webhook.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "//	  webhook:\n")
	var text strings.Builder
	for line := range strings.Lines(rest) {
		inside, ok := strings.CutPrefix(line, "//	    ")
		if !ok {
			break
		}
		text.WriteString(inside)
	}
	return text.String()
}

var order = providers.PaymentOrder{
	DebitAccount: "DE02120300000000202051", PayeeAccount: "DE02500105170137075030", PayeeName: "Ida Planted",
	Amount: providers.Money{Minor: 125000, Currency: "EUR"}, BusinessReference: "invoice-731", Purpose: "planted purpose <1>",
}

// answers are what every interface of the gateway can say.
func answers(more ...providertest.Answer) []providertest.Answer {
	return append([]providertest.Answer{
		{Name: "malformed", Status: 400, Body: failText("malformed"), Want: ledger.Refused},
		{Name: "malformed, without a code", Status: 400, Body: `{"message":"Ida Planted"}`, Want: ledger.Unclear},
		{Name: "no access", Status: 401, Body: failText("unauthorized"), Want: ledger.NotSent, Alarm: "credentials_refused"},
		{Name: "no such account", Status: 404, Body: failText("account_not_found"), Want: ledger.Refused},
		{Name: "conflict", Status: 409, Body: failText("conflict"), Want: ledger.Unclear},
		{Name: "too many requests", Status: 429, Body: failText("slow_down"), Want: ledger.Unclear},
		{Name: "internal error", Status: 500, Body: failText("internal"), Want: ledger.Unclear},
		{Name: "internal error after the effect", Status: 500, Body: failText("internal"), Acts: true, Want: ledger.Unclear},
	}, more...)
}

var secrets, private = []string{planted}, []string{"Ida Planted", "planted purpose", "DE02500105170137075030"}

// TestDocumentedExample has a payment-order API with an Idempotency-Key.
func TestDocumentedExample(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	other := order
	other.Amount.Minor = 125001
	providertest.TestProvider(t, providertest.Harness{
		Action:    providers.PaymentOrderCreate,
		New:       func(t *testing.T, endpoint string) providers.Provider { return configured(t, endpoint, documented(t)) },
		Fake:      func(*testing.T) providertest.Fake { return newGateway().forgets() },
		Arguments: order, Other: other,
		Answers: answers(
			providertest.Answer{Name: "in progress", Status: 409, Body: failText("request_in_progress"), Acts: true, Want: ledger.Unclear},
			providertest.Answer{Name: "key reused", Status: 422, Body: failText("idempotency_key_reused"), Want: ledger.Contradiction, Alarm: "key_reused"},
			providertest.Answer{Name: "amount refused", Status: 422, Body: failText("amount_minor_invalid"), Want: ledger.Refused},
			providertest.Answer{Name: "not found", Status: 404, Body: failText("payment_order_not_found"), Want: ledger.Refused, Lookup: ledger.Absent},
			providertest.Answer{Name: "kept error", Status: 500, Body: failText("internal"), Kept: true, Want: ledger.Unclear},
		),
		Secrets: secrets, Private: private,
	})
}

// A gateway that stores the key and acts again: its list proves what is and what isn't.
const listed = `
headers:
  Authorization: {env: PAYMENTS_TOKEN, prefix: "Bearer "}
actions:
  payment_order.create:
    settle: 1m
    create: {path: /v2/transfers}
    key: {member: reference, format: uuid, only_reference: true}
    body: {debtor.iban: debit_account, creditor.iban: payee_account, creditor.name: payee_name, amount: amount, currency: currency, /meta/our.reference: business_reference, purpose: purpose}
    constants: {scheme: sepa}
    currencies: [EUR]
    answer: {id: id, status: status, key: reference, error: error.code, same: {amount: amount, currency: currency, creditor.iban: payee_account}}
    statuses: {settled: [booked], rejected: [failed]}
    errors:
      - {status: 429, means: not_sent}
    lookup:
      method: POST
      path: /v2/transfers/search
      body: {reference: "{key}"}
      items: data.items
      next: data.next
      cursor: page
      proves_absence: true
      lag: 30s
`

func TestListedReferences(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	other := order
	other.Amount.Minor = 125001
	all := answers()
	for i, a := range all {
		if a.Status == 429 {
			all[i].Want = ledger.NotSent
		}
	}
	providertest.TestProvider(t, providertest.Harness{
		Action:    providers.PaymentOrderCreate,
		New:       func(t *testing.T, endpoint string) providers.Provider { return configured(t, endpoint, listed) },
		Fake:      func(*testing.T) providertest.Fake { return newGateway().lists() },
		Arguments: order, Other: other, Answers: all, Secrets: secrets, Private: private,
		Creates: func(r *http.Request) bool { return r.URL.Path == "/v2/transfers" },
	})
}

// A gateway whose objects are put where the key says, for ever, and can't be asked.
const put = `
headers:
  Authorization: {env: PAYMENTS_TOKEN, prefix: "Bearer "}
actions:
  refund:
    create: {method: PUT, path: "/v3/refunds/{key}"}
    key: {for_ever: true, reuse: replayed, retries_errors: true}
    body: {payment: payment_id, amount: amount, currency: currency, reason: reason, note: note}
    answer: {id: id, error: error.code, same: {payment: payment_id, amount: amount, currency: currency}}
    lookup: {none: true}
`

func TestRefundsThatArePut(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	refund := providers.Refund{PaymentID: "pay_8812", Amount: providers.Money{Minor: 10000, Currency: "JPY"}, Reason: "duplicate", Note: "planted purpose"}
	other := refund
	other.Amount.Minor = 10001
	providertest.TestProvider(t, providertest.Harness{
		Action:    providers.RefundCreate,
		New:       func(t *testing.T, endpoint string) providers.Provider { return configured(t, endpoint, put) },
		Fake:      func(*testing.T) providertest.Fake { return newGateway().fake() },
		Arguments: refund, Other: other, Answers: answers(), Secrets: secrets, Private: private,
	})
}

// A gateway for mail that knows no key and can't be asked.
const mail = `
headers:
  Authorization: {env: PAYMENTS_TOKEN, prefix: "Bearer "}
actions:
  email.send:
    create: {path: /mail}
    key: {none: true}
    answer: {id: id, status: status, error: error.code}
    statuses: {accepted: [queued]}
    lookup: {none: true}
`

func TestMailWithoutKeyAndLookup(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	email := providers.Email{To: []string{"ida@example.com", "max@example.com"}, Cc: []string{"ida@example.com"}, Subject: "planted purpose", Body: "Ida Planted"}
	other := email
	other.Body = "something else"
	providertest.TestProvider(t, providertest.Harness{
		Action:    providers.EmailSend,
		New:       func(t *testing.T, endpoint string) providers.Provider { return configured(t, endpoint, mail) },
		Fake:      func(*testing.T) providertest.Fake { return newGateway().fake() },
		Arguments: email, Other: other, Answers: answers(), Secrets: secrets, Private: append(private, "ida@example.com"),
	})
	p := configured(t, "http://127.0.0.1:1", mail)
	if traits, _ := p.Traits(providers.EmailSend); traits.Key != providers.NoKey || traits.Lookup != providers.NoLookup {
		t.Errorf("key %q, look-up %q: the traits must show that there is neither", traits.Key, traits.Lookup)
	}
}
