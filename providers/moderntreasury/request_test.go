package moderntreasury_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/moderntreasury"
)

var accounts = map[string]string{"operating": internalAccount}

// TestRequest has what goes over the wire, in the words of the API reference.
func TestRequest(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_MODERNTREASURY_KEY", planted)
	var body string
	var key string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body, key = string(b), r.Header.Get("Idempotency-Key")
	}))
	defer server.Close()
	for _, tt := range []struct {
		config moderntreasury.Config
		change func(*providers.PaymentOrder)
		want   string
	}{
		{moderntreasury.Config{}, func(*providers.PaymentOrder) {},
			`{"external_id":"k1","type":"ach","direction":"credit","amount":125000,"currency":"USD","originating_account_id":"` + internalAccount + `","receiving_account_id":"` + externalAccount + `","remittance_information":"planted purpose <1>","metadata":{"business_reference":"invoice-731"}}`},
		{moderntreasury.Config{Type: "wire", Subtype: "CCD", Priority: "high", Currencies: []string{"JPY"}},
			func(o *providers.PaymentOrder) {
				o.Purpose, o.Amount = "", providers.Money{Minor: 5000, Currency: "JPY"}
			},
			`{"external_id":"k1","type":"wire","subtype":"CCD","priority":"high","direction":"credit","amount":5000,"currency":"JPY","originating_account_id":"` + internalAccount + `","receiving_account_id":"` + externalAccount + `","metadata":{"business_reference":"invoice-731"}}`},
	} {
		tt.config.Endpoint, tt.config.Accounts = server.URL, accounts
		order := paid
		tt.change(&order)
		p := configured(t, tt.config)
		request, err := p.Prepare(providers.Order{ProviderKey: "k0", Arguments: order})
		if err != nil {
			t.Fatal(err)
		}
		p.Apply(context.Background(), providers.PaymentOrderCreate, ledger.Attempt{ProviderKey: "k1", Payload: ledger.Payload{Request: request}, MaySend: func() error { return nil }})
		if diff := cmp.Diff([]string{tt.want, "k1"}, []string{body, key}); diff != "" {
			t.Errorf("request and key (-want +got):\n%s", diff)
		}
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_MODERNTREASURY_KEY", planted)
	for name, tt := range map[string]struct {
		change func(*providers.PaymentOrder)
		field  string
	}{
		"a currency that isn't allowed": {func(o *providers.PaymentOrder) { o.Amount.Currency = "EUR" }, "currency"},
		"an IBAN pays":                  {func(o *providers.PaymentOrder) { o.DebitAccount = "DE02120300000000202051" }, "debit_account"},
		"an IBAN is paid":               {func(o *providers.PaymentOrder) { o.PayeeAccount = "DE02120300000000202051" }, "payee_account"},
		"a name nobody gave":            {func(o *providers.PaymentOrder) { o.PayeeAccount = "VENDOR" }, "payee_account"},
		"a digit too many":              {func(o *providers.PaymentOrder) { o.PayeeAccount += "0" }, "payee_account"},
		"a letter in the UUID":          {func(o *providers.PaymentOrder) { o.PayeeAccount = "G" + o.PayeeAccount[1:] }, "payee_account"},
		"no reference":                  {func(o *providers.PaymentOrder) { o.BusinessReference = "" }, "business_reference"},
	} {
		t.Run(name, func(t *testing.T) {
			order := paid
			tt.change(&order)
			_, err := configured(t, moderntreasury.Config{Accounts: accounts}).Prepare(providers.Order{Arguments: order})
			problem, ok := errors.AsType[*providers.ArgumentError](err)
			if !ok || problem.Field != tt.field {
				t.Errorf("error %v, want an *ArgumentError for %s", err, tt.field)
			}
			if err != nil && strings.Contains(err.Error(), "02120300") {
				t.Errorf("the error shows the account: %v", err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_MODERNTREASURY_KEY", planted)
	with := func(change func(*moderntreasury.Config)) moderntreasury.Config {
		c := moderntreasury.Config{APIKeyEnv: "ONCEWARD_TEST_MODERNTREASURY_KEY", OrganizationID: organization}
		change(&c)
		return c
	}
	for name, tt := range map[string]struct {
		config moderntreasury.Config
		says   string
	}{
		"no key":              {moderntreasury.Config{OrganizationID: organization}, "api_key is missing"},
		"no organization":     {with(func(c *moderntreasury.Config) { c.OrganizationID = "" }), "organization_id is missing"},
		"http off loopback":   {with(func(c *moderntreasury.Config) { c.Endpoint = "http://app.moderntreasury.com" }), "endpoint"},
		"an unknown mode":     {with(func(c *moderntreasury.Config) { c.Mode = "sandbox" }), "live or test"},
		"a type in capitals":  {with(func(c *moderntreasury.Config) { c.Type = "ACH" }), "type is"},
		"an unknown priority": {with(func(c *moderntreasury.Config) { c.Priority = "urgent" }), "normal or high"},
		"an unknown currency": {with(func(c *moderntreasury.Config) { c.Currencies = []string{"USD", "ZZZ"} }), `"ZZZ"`},
		"a name for nothing":  {with(func(c *moderntreasury.Config) { c.Accounts = map[string]string{"rent": "12345"} }), `"rent" names no account`},
		"a name twice": {with(func(c *moderntreasury.Config) {
			c.Accounts = map[string]string{"A B": internalAccount, "a-b": externalAccount}
		}), "twice"},
		"a margin above the window": {with(func(c *moderntreasury.Config) { c.Window = 1 }), "margin"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := moderntreasury.New(tt.config)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v, want one that says %q", err, tt.says)
			}
			if strings.Contains(err.Error(), planted) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

// A key that was used before is answered with the first object, of whatever kind: only an
// answer that shows our order is a success.
func TestAnswersThatAreNotOurs(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_MODERNTREASURY_KEY", planted)
	const ours = `{"id":"po-1","object":"payment_order","live_mode":true,"status":"sent","external_id":"k1","amount":100,"currency":"USD","direction":"credit","originating_account_id":"a","receiving_account_id":"b","metadata":{"business_reference":"r"}}`
	const request = `{"type":"ach","direction":"credit","amount":100,"currency":"USD","originating_account_id":"a","receiving_account_id":"b","metadata":{"business_reference":"r"}}`
	for name, tt := range map[string]struct {
		old, fresh string
		code       string
		mark       providers.Mark
	}{
		"ours":                     {"", "", "", ""},
		"from a portal":            {"", "text/html", "answer_unreadable", ""},
		"unknown status":           {`"sent"`, `"teleported"`, "unknown_status", ""},
		"a counterparty":           {`"payment_order"`, `"counterparty"`, "other_object", providers.Contradiction},
		"another external_id":      {`"k1"`, `"k2"`, "other_object", providers.Contradiction},
		"no external_id":           {`"k1"`, `null`, "other_object", providers.Contradiction},
		"the test environment":     {`true`, `false`, "other_object", providers.Contradiction},
		"another amount":           {`100`, `101`, "other_object", providers.Contradiction},
		"another currency":         {`"USD"`, `"CAD"`, "other_object", providers.Contradiction},
		"another account pays":     {`"originating_account_id":"a"`, `"originating_account_id":"c"`, "other_object", providers.Contradiction},
		"another account is paid":  {`"receiving_account_id":"b"`, `"receiving_account_id":"c"`, "other_object", providers.Contradiction},
		"money is pulled":          {`"credit"`, `"debit"`, "other_object", providers.Contradiction},
		"no id":                    {`"po-1"`, `""`, "answer_unreadable", ""},
		"an amount with a decimal": {`100`, `100.5`, "answer_unreadable", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				kind, body := "application/json", ours
				if tt.old == "" && tt.fresh != "" {
					kind = tt.fresh
				} else {
					body = strings.Replace(ours, tt.old, tt.fresh, 1)
				}
				w.Header().Set("Content-Type", kind)
				w.Write([]byte(body))
			}))
			defer server.Close()
			_, err := configured(t, moderntreasury.Config{Endpoint: server.URL}).Apply(context.Background(), providers.PaymentOrderCreate, ledger.Attempt{
				ProviderKey: "k1", Payload: ledger.Payload{Request: []byte(request)}, MaySend: func() error { return nil },
			})
			got, _ := errors.AsType[*providers.Error](err)
			if got == nil {
				got = &providers.Error{}
			}
			if got.Code != tt.code || got.Mark != tt.mark {
				t.Errorf("code %q, mark %q; want %q, %q", got.Code, got.Mark, tt.code, tt.mark)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_MODERNTREASURY_KEY", planted)
	live := configured(t, moderntreasury.Config{}).Identity()
	if diff := cmp.Diff([]string{"moderntreasury", "https://app.moderntreasury.com", "live", organization, planted}, live); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	if cmp.Equal(live, configured(t, moderntreasury.Config{Mode: "test"}).Identity()) {
		t.Error("the test environment has the live one's identity")
	}
}

// A conflict that somebody between us says isn't the API's "in flight".
func TestConflictOfAGateway(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_MODERNTREASURY_KEY", planted)
	for kind, want := range map[string]providers.Mark{"application/json": providers.InFlight, "text/html": ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusConflict)
		}))
		_, err := configured(t, moderntreasury.Config{Endpoint: server.URL}).Apply(context.Background(), providers.PaymentOrderCreate, ledger.Attempt{
			ProviderKey: "k1", Payload: ledger.Payload{Request: []byte(`{}`)}, MaySend: func() error { return nil },
		})
		server.Close()
		if got := providers.MarkOf(err); err == nil || got != want {
			t.Errorf("%s: mark %q (%v), want %q", kind, got, err, want)
		}
	}
}
