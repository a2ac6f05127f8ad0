package increase_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/increase"
)

var paid = providers.PaymentOrder{
	DebitAccount: "ACCOUNT_IN71C4AMPH0VGO2QLLKY", PayeeAccount: "VENDORA", PayeeName: "Ida & Sons",
	Amount: providers.Money{Minor: 9_007_199_254_740_993, Currency: "USD"}, BusinessReference: "invoice-731", Purpose: "March <rent>",
}

// TestRequests has what is sent, in the words of the API reference.
func TestRequests(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_INCREASE_KEY", planted)
	accounts := map[string]string{"Vendor A": "external_account_ukk55lr923a3ac0pp7iv", "vendor-b": "101050001:987654321"}
	order := func(change func(*providers.PaymentOrder)) providers.PaymentOrder {
		o := paid
		change(&o)
		return o
	}
	for _, tt := range []struct {
		name   string
		config increase.Config
		order  providers.PaymentOrder
		want   string
	}{
		{"external account, amount above 2^53", increase.Config{}, paid,
			`{"account_id":"account_in71c4amph0vgo2qllky","amount":9007199254740993,"statement_descriptor":"invoice-731","external_account_id":"external_account_ukk55lr923a3ac0pp7iv","individual_name":"Ida & Sons","addenda":{"category":"freeform","freeform":{"entries":[{"payment_related_information":"March <rent>"}]}}}`},
		{"numbers by name, no purpose, approval", increase.Config{RequireApproval: true, Funding: "savings"},
			order(func(o *providers.PaymentOrder) { o.PayeeAccount, o.Purpose, o.Amount.Minor = "VENDORB", "", 1 }),
			`{"account_id":"account_in71c4amph0vgo2qllky","amount":1,"statement_descriptor":"invoice-731","account_number":"987654321","routing_number":"101050001","funding":"savings","individual_name":"Ida & Sons","require_approval":true}`},
		{"numbers as they stand", increase.Config{},
			order(func(o *providers.PaymentOrder) { o.PayeeAccount, o.Purpose, o.Amount.Minor = "101050001:12A", "", 100 }),
			`{"account_id":"account_in71c4amph0vgo2qllky","amount":100,"statement_descriptor":"invoice-731","account_number":"12A","routing_number":"101050001","funding":"checking","individual_name":"Ida & Sons"}`},
		{"account transfer", increase.Config{Transfer: "account"},
			order(func(o *providers.PaymentOrder) { o.PayeeAccount, o.Amount.Minor = "ACCOUNT_UF16SUT2CT5BEVMQ3EH", 100 }),
			`{"account_id":"account_in71c4amph0vgo2qllky","amount":100,"description":"invoice-731","destination_account_id":"account_uf16sut2ct5bevmq3eh"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Accounts = accounts
			got, err := configured(t, tt.config).Prepare(providers.Order{Arguments: tt.order})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_INCREASE_KEY", planted)
	for name, tt := range map[string]struct {
		change func(*providers.PaymentOrder)
		field  string
	}{
		"euro":                      {func(o *providers.PaymentOrder) { o.Amount.Currency = "EUR" }, "currency"},
		"a foreign debit account":   {func(o *providers.PaymentOrder) { o.DebitAccount = "DE02120300000000202051" }, "debit_account"},
		"payee pays":                {func(o *providers.PaymentOrder) { o.DebitAccount = "VENDORA" }, "debit_account"},
		"an IBAN":                   {func(o *providers.PaymentOrder) { o.PayeeAccount = "DE02120300000000202051" }, "payee_account"},
		"a name nobody gave":        {func(o *providers.PaymentOrder) { o.PayeeAccount = "VENDORC" }, "payee_account"},
		"a mistyped routing number": {func(o *providers.PaymentOrder) { o.PayeeAccount = "101050010:987654321" }, "payee_account"},
		"a routing number of zeros": {func(o *providers.PaymentOrder) { o.PayeeAccount = "000000000:987654321" }, "payee_account"},
		"no account number":         {func(o *providers.PaymentOrder) { o.PayeeAccount = "101050001:" }, "payee_account"},
		"an account by ACH":         {func(o *providers.PaymentOrder) { o.PayeeAccount = "ACCOUNT_UF16SUT2CT5BEVMQ3EH" }, "payee_account"},
		"no reference":              {func(o *providers.PaymentOrder) { o.BusinessReference = "" }, "business_reference"},
		"a long purpose":            {func(o *providers.PaymentOrder) { o.Purpose = strings.Repeat("é", 81) }, "purpose"},
	} {
		t.Run(name, func(t *testing.T) {
			order := paid
			tt.change(&order)
			p := configured(t, increase.Config{Accounts: map[string]string{"vendor a": "external_account_ukk55lr923a3ac0pp7iv"}})
			_, err := p.Prepare(providers.Order{Arguments: order})
			problem, ok := errors.AsType[*providers.ArgumentError](err)
			if !ok || problem.Field != tt.field {
				t.Errorf("error %v, want an *ArgumentError for %s", err, tt.field)
			}
			if err != nil && (strings.Contains(err.Error(), "0201051") || strings.Contains(err.Error(), "98765")) {
				t.Errorf("the error shows the account: %v", err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_INCREASE_KEY", planted)
	t.Setenv("ONCEWARD_TEST_EMPTY", "")
	key := "ONCEWARD_TEST_INCREASE_KEY"
	for name, tt := range map[string]struct {
		config increase.Config
		says   string
	}{
		"no key":              {increase.Config{}, "api_key is missing"},
		"an empty key":        {increase.Config{APIKeyEnv: "ONCEWARD_TEST_EMPTY"}, "ONCEWARD_TEST_EMPTY"},
		"two keys":            {increase.Config{APIKeyEnv: key, APIKeyFile: "key"}, "twice"},
		"http off loopback":   {increase.Config{APIKeyEnv: key, Endpoint: "http://api.increase.com"}, "endpoint"},
		"an unknown transfer": {increase.Config{APIKeyEnv: key, Transfer: "wire"}, "ach or account"},
		"an unknown funding":  {increase.Config{APIKeyEnv: key, Funding: "gold"}, "checking or savings"},
		"a name for nothing":  {increase.Config{APIKeyEnv: key, Accounts: map[string]string{"rent": "12345"}}, `"rent" names no account`},
		"a name twice":        {increase.Config{APIKeyEnv: key, Accounts: map[string]string{"A B": "account_a", "a-b": "account_b"}}, "twice"},
		"an empty name":       {increase.Config{APIKeyEnv: key, Accounts: map[string]string{"-": "account_a"}}, "empty name"},
		"a short lease":       {increase.Config{APIKeyEnv: key, Timing: providers.Timing{Lease: 1}}, "lease"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := increase.New(tt.config)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v, want one that says %q", err, tt.says)
			}
			if strings.Contains(err.Error(), planted) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

// A status that nobody documented proves nothing, and neither does an object that is
// answered for another key or account.
func TestAnswersThatAreNotOurs(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_INCREASE_KEY", planted)
	const ours = `{"id":"ach_transfer_1","type":"ach_transfer","status":"submitted","idempotency_key":"k1","account_id":"account_a","amount":100,"currency":"USD","external_account_id":"external_account_e","account_number":"1","routing_number":"2"}`
	const request = `{"account_id":"account_a","amount":100,"statement_descriptor":"r","external_account_id":"external_account_e"}`
	for name, tt := range map[string]struct {
		old, fresh string
		code       string
		mark       providers.Mark
	}{
		"ours":              {"", "", "", ""},
		"from a portal":     {"", "text/html", "answer_unreadable", ""},
		"small currency":    {`"USD"`, `"usd"`, "", ""},
		"unknown status":    {`"submitted"`, `"teleported"`, "unknown_status", ""},
		"no status":         {`"submitted"`, `""`, "unknown_status", ""},
		"another key":       {`"k1"`, `"k2"`, "other_object", providers.Contradiction},
		"another account":   {`"account_a"`, `"account_b"`, "other_object", providers.Contradiction},
		"another payee":     {`"external_account_e"`, `"external_account_f"`, "other_object", providers.Contradiction},
		"another amount":    {`100`, `101`, "other_object", providers.Contradiction},
		"another currency":  {`"USD"`, `"CAD"`, "other_object", providers.Contradiction},
		"another type":      {`"ach_transfer"`, `"wire_transfer"`, "other_object", providers.Contradiction},
		"an amount in text": {`100`, `"100"`, "answer_unreadable", ""},
		"no id":             {`"ach_transfer_1"`, `""`, "answer_unreadable", ""},
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
			p := configured(t, increase.Config{Endpoint: server.URL})
			_, err := p.Apply(context.Background(), providers.PaymentOrderCreate, ledger.Attempt{
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
	t.Setenv("ONCEWARD_TEST_INCREASE_KEY", planted)
	ach := configured(t, increase.Config{}).Identity()
	if diff := cmp.Diff([]string{"increase", "https://api.increase.com", "ach_transfers", planted}, ach); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	if cmp.Equal(ach, configured(t, increase.Config{Transfer: "account"}).Identity()) {
		t.Error("another kind of transfer has the same identity: its lists are others")
	}
}
