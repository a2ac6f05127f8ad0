package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/webhook"
)

const key = "00112233445566778899aabbccddeeff"

// A wire is what goes over it.
type wire struct{ Method, URI, Key, Authorization, Body string }

// apply sends one order to a server that answers with reply, and returns what it got.
func apply(t *testing.T, text, reply string, arguments providers.Arguments) (wire, ledger.Receipt, error) {
	t.Helper()
	var got wire
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = wire{r.Method, r.RequestURI, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), string(b)}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, reply)
	}))
	defer server.Close()
	p := configured(t, server.URL+"/base", text)
	request, err := p.Prepare(providers.Order{Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Apply(context.Background(), arguments.Action(), ledger.Attempt{
		ProviderKey: key, Payload: ledger.Payload{Request: request}, MaySend: func() error { return nil },
	})
	return got, r, err
}

// plain is a configuration with the standard body of an action.
func plain(action string) string {
	return `
headers: {Authorization: {env: PAYMENTS_TOKEN, prefix: "Bearer "}}
actions:
  ` + action + `:
    create: {path: /do/}
    key: {header: idempotency-key, for_ever: true}
    answer: {id: /data/0/the.id}
    lookup: {none: true}
`
}

func TestRequests(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	bearer := "Bearer " + planted
	money := providers.Money{Minor: 9_007_199_254_740_993, Currency: "EUR"}
	big := order
	big.Amount = money
	email := providers.Email{To: []string{"a@example.com"}, Bcc: []string{"b@example.com", "c@example.com"}, Subject: "Grüße & <more>", Body: "x", HTML: "<p>", ReplyTo: "d@example.com", Template: "t", About: "never sent"}
	for _, tt := range []struct {
		name, text string
		arguments  providers.Arguments
		want       wire
	}{
		{"documented", documented(t), big,
			wire{"POST", "/base/v1/payment-orders", key, bearer, `{"account_id":"DE02120300000000202051","amount_minor":9007199254740993,"business_reference":"invoice-731","currency":"EUR"}`}},
		{"nested, constant, key in the body", listed, big,
			wire{"POST", "/base/v2/transfers", "", bearer, `{"reference":"00112233-4455-6677-8899-aabbccddeeff","amount":"90071992547409.93","creditor":{"iban":"DE02500105170137075030","name":"Ida Planted"},"currency":"EUR","debtor":{"iban":"DE02120300000000202051"},"meta":{"our.reference":"invoice-731"},"purpose":"planted purpose <1>","scheme":"sepa"}`}},
		{"key in the path", put, providers.Refund{PaymentID: "p1", Amount: money},
			wire{"PUT", "/base/v3/refunds/" + key, "", bearer, `{"amount":"90071992547409.93","currency":"EUR","payment":"p1"}`}},
		{"standard payment order", plain("payment_order.create"), big,
			wire{"POST", "/base/do/", key, bearer, `{"account_id":"DE02120300000000202051","amount_minor":9007199254740993,"business_reference":"invoice-731","currency":"EUR","payee_account":"DE02500105170137075030","payee_name":"Ida Planted","purpose":"planted purpose <1>"}`}},
		{"standard refund", plain("refund"), providers.Refund{PaymentID: "p1", Amount: money, Reason: "duplicate", Note: "n"},
			wire{"POST", "/base/do/", key, bearer, `{"amount_minor":9007199254740993,"currency":"EUR","note":"n","payment_id":"p1","reason":"duplicate"}`}},
		{"standard mail", plain("email.send"), email,
			wire{"POST", "/base/do/", key, bearer, `{"bcc":["b@example.com","c@example.com"],"body":"x","html":"<p>","reply_to":"d@example.com","subject":"Grüße & <more>","template":"t","to":["a@example.com"]}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, _ := apply(t, tt.text, `{}`, tt.arguments)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	dollars := order
	dollars.Amount.Currency = "USD"
	onlyTo := strings.Replace(mail, "    answer:", "    body: {rcpt: to, text: body}\n    answer:", 1)
	for name, tt := range map[string]struct {
		text      string
		arguments providers.Arguments
		field     string
	}{
		"a currency that the gateway hasn't": {listed, dollars, "currency"},
		"hidden recipients":                  {onlyTo, providers.Email{To: []string{"a@example.com"}, Bcc: []string{"b@example.com"}}, "bcc"},
		"copies":                             {onlyTo, providers.Email{To: []string{"a@example.com"}, Cc: []string{"b@example.com"}}, "cc"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := configured(t, "http://127.0.0.1:1", tt.text).Prepare(providers.Order{Arguments: tt.arguments})
			problem, ok := errors.AsType[*providers.ArgumentError](err)
			if !ok || problem.Field != tt.field {
				t.Errorf("error %v, want an *ArgumentError for %s", err, tt.field)
			}
		})
	}
}

// TestAnswers has answers to a create that are successes by their status.
func TestAnswers(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	withKey := strings.Replace(documented(t), "id: id\n", "id: id\n          key: key\n", 1)
	withKey = strings.Replace(withKey, "          key: key", "      key: key", 1)
	for name, tt := range map[string]struct {
		text, reply string
		state       ledger.State
		code        string
		mark        providers.Mark
	}{
		"pending":            {documented(t), `{"id":"1","status":"pending","amount_minor":125000,"currency":"EUR"}`, ledger.Accepted, "", ""},
		"settled, id number": {documented(t), `{"id":1,"status":"completed","amount_minor":"125000.0","currency":"eur"}`, ledger.Settled, "", ""},
		"rejected":           {documented(t), `{"id":"1","status":"failed","amount_minor":125000,"currency":"EUR"}`, ledger.Rejected, "", ""},
		"unknown status":     {documented(t), `{"id":"1","status":"odd","amount_minor":125000,"currency":"EUR"}`, "", "unknown_status", ""},
		"no status":          {documented(t), `{"id":"1","amount_minor":125000,"currency":"EUR"}`, "", "unknown_status", ""},
		"another amount":     {documented(t), `{"id":"1","status":"pending","amount_minor":125001,"currency":"EUR"}`, "", "other_object", providers.Contradiction},
		"negative amount":    {documented(t), `{"id":"1","status":"pending","amount_minor":-125000,"currency":"EUR"}`, "", "other_object", providers.Contradiction},
		"another currency":   {documented(t), `{"id":"1","status":"pending","amount_minor":125000,"currency":"USD"}`, "", "other_object", providers.Contradiction},
		"an exponent":        {documented(t), `{"id":"1","status":"pending","amount_minor":1.25e5,"currency":"EUR"}`, "", "other_object", providers.Contradiction},
		"no amount":          {documented(t), `{"id":"1","status":"pending","currency":"EUR"}`, "", "answer_incomplete", ""},
		"no id":              {documented(t), `{"status":"pending","amount_minor":125000,"currency":"EUR"}`, "", "answer_incomplete", ""},
		"an object as id":    {documented(t), `{"id":{},"status":"pending","amount_minor":125000,"currency":"EUR"}`, "", "answer_incomplete", ""},
		"a line as id":       {documented(t), `{"id":"1\n2","status":"pending","amount_minor":125000,"currency":"EUR"}`, "", "answer_incomplete", ""},
		"two objects":        {documented(t), `{"id":"1","status":"pending","amount_minor":125000,"currency":"EUR"}}`, "", "answer_unreadable", ""},
		"our key":            {withKey, `{"id":"1","key":"` + key + `","status":"pending","amount_minor":125000,"currency":"EUR"}`, ledger.Accepted, "", ""},
		"another key":        {withKey, `{"id":"1","key":"k","status":"pending","amount_minor":125000,"currency":"EUR"}`, "", "other_object", providers.Contradiction},
		"no key":             {withKey, `{"id":"1","status":"pending","amount_minor":125000,"currency":"EUR"}`, "", "answer_incomplete", ""},
		"no statuses, deep":  {plain("payment_order.create"), `{"data":[{"the.id":"1"}]}`, ledger.Accepted, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, r, err := apply(t, tt.text, tt.reply, order)
			got, _ := errors.AsType[*providers.Error](err)
			if got == nil {
				got = &providers.Error{}
			}
			if r.State != tt.state || got.Code != tt.code || got.Mark != tt.mark {
				t.Errorf("state %q, code %q, mark %q; want %q, %q, %q", r.State, got.Code, got.Mark, tt.state, tt.code, tt.mark)
			}
		})
	}
}

// TestLookupsThatCannotTell has lists in which ours can't be told from others': nothing
// may be concluded from them, least of all absence.
func TestLookupsThatCannotTell(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	for name, tt := range map[string]struct {
		reply string
		code  string
		mark  providers.Mark
	}{
		"an item without its key":   {`{"data":{"items":[{"id":"1"}],"next":null}}`, "answer_incomplete", ""},
		"no list":                   {`{"data":{"next":null}}`, "answer_unreadable", ""},
		"an object for a list":      {`{"data":{"items":{},"next":null}}`, "answer_unreadable", ""},
		"a page without an end":     {`{"data":{"items":[],"next":"again"}}`, "too_many_pages", ""},
		"one hit, more pages":       {`{"data":{"items":[{"id":"1","reference":"00112233-4455-6677-8899-aabbccddeeff","status":"booked"}],"next":"again"}}`, "too_many_pages", ""},
		"our key in the wrong form": {`{"data":{"items":[{"id":"1","reference":"` + key + `"}],"next":null}}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, tt.reply)
			}))
			defer server.Close()
			_, err := configured(t, server.URL, listed).Lookup(context.Background(), providers.PaymentOrderCreate, ledger.Question{ProviderKey: key})
			if tt.code == "" {
				if !errors.Is(err, providers.ErrAbsent) {
					t.Errorf("error %v, want ErrAbsent", err)
				}
				return
			}
			got, _ := errors.AsType[*providers.Error](err)
			if got == nil || got.Code != tt.code || got.Mark != tt.mark {
				t.Errorf("error %v, want %s", err, tt.code)
			}
		})
	}
}

func TestTraits(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	payment := providers.PaymentOrderCreate
	for _, tt := range []struct {
		name, text, action string
		want               providers.Traits
	}{
		{"documented", documented(t), payment, providers.Traits{
			Deadline: 30 * time.Second, Lease: 45 * time.Second, Key: providers.KeyInHeader, Window: 24 * time.Hour, Margin: time.Hour,
			Reuse: providers.ReuseRefused, CachesErrors: true, Lookup: providers.LookupByKey,
		}},
		{"listed", listed, payment, providers.Traits{
			Deadline: 30 * time.Second, Lease: 45 * time.Second, Settle: time.Minute,
			Lookup: providers.LookupByKey, LookupLag: 30 * time.Second, ProvesAbsence: true, LimiterFirst: true, Currencies: []string{"EUR"},
		}},
		{"put", put, providers.RefundCreate, providers.Traits{
			Deadline: 30 * time.Second, Lease: 45 * time.Second, Key: providers.KeyIsID, Reuse: providers.ReuseReplayed,
		}},
		{"mail", mail, providers.EmailSend, providers.Traits{Deadline: 30 * time.Second, Lease: 45 * time.Second}},
		{"timing of the provider, and of the action", "deadline: 5s\nlease: 10s\nwindow: 2h\n" + strings.Replace(documented(t), "window: 24h", "settle: 7s", 1), payment, providers.Traits{
			Deadline: 5 * time.Second, Lease: 10 * time.Second, Settle: 7 * time.Second, Key: providers.KeyInHeader, Window: 2 * time.Hour, Margin: 30 * time.Minute,
			Reuse: providers.ReuseRefused, CachesErrors: true, Lookup: providers.LookupByKey,
		}},
		{"a key for ever, whatever the provider's window", "window: 2h\n" + put, providers.RefundCreate, providers.Traits{
			Deadline: 30 * time.Second, Lease: 45 * time.Second, Key: providers.KeyIsID, Reuse: providers.ReuseReplayed,
		}},
		{"no key, whatever the provider's window", "window: 2h\n" + listed, payment, providers.Traits{
			Deadline: 30 * time.Second, Lease: 45 * time.Second, Settle: time.Minute,
			Lookup: providers.LookupByKey, LookupLag: 30 * time.Second, ProvesAbsence: true, LimiterFirst: true, Currencies: []string{"EUR"},
		}},
		{"reuse isn't known", plain(payment), payment, providers.Traits{
			Deadline: 30 * time.Second, Lease: 45 * time.Second, Key: providers.KeyInHeader, Reuse: providers.ReuseActs, CachesErrors: true,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := configured(t, "http://127.0.0.1:1", tt.text).Traits(tt.action)
			if !ok {
				t.Fatal("not served")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("traits (-want +got):\n%s", diff)
			}
		})
	}
}

// What would make a repeat another request, or send it elsewhere, makes another identity.
func TestIdentity(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	identity := func(text string) []string {
		p, err := webhook.New(read(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return p.Identity()
	}
	first := identity(good)
	for name, change := range map[string][2]string{
		"endpoint":    {"payments.example.com", "pay.example.com"},
		"tenant":      {"acme", "other"},
		"path":        {"path: /v1/orders}", "path: /v2/orders}"},
		"key":         {"header: Idempotency-Key", "header: X-Request-Reference"},
		"key's form":  {"header: Idempotency-Key", "format: uuid, header: Idempotency-Key"},
		"method":      {"{path: /v1/orders}\n    key: {header: Idempotency-Key}", "{method: PUT, path: \"/v1/orders/{key}\"}\n    key: {}"},
		"credentials": {"prefix: \"Bearer \"", "prefix: \"Token \""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, change[0], change[1], 1)
			if text == good {
				t.Fatal("nothing is changed")
			}
			if cmp.Equal(first, identity(text)) {
				t.Error("the identity is the same")
			}
		})
	}
	if strings.Contains(strings.Join(first, " "), "pending") {
		t.Error("the identity changes with the statuses")
	}
}
