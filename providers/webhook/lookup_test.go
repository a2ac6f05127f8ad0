package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// answering is a provider at a gateway that always answers the same.
func answering(t *testing.T, text string, status int, kind, body string) providers.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return configured(t, server.URL, text)
}

// wantError wants ErrAbsent for the code "absent", and no error for none.
func wantError(t *testing.T, err error, code string, mark providers.Mark) {
	t.Helper()
	got, _ := errors.AsType[*providers.Error](err)
	if got == nil {
		got = &providers.Error{}
	}
	absent := errors.Is(err, providers.ErrAbsent)
	if absent != (code == "absent") || !absent && (got.Code != code || got.Mark != mark || (err == nil) != (code == "")) {
		t.Errorf("error %v, want code %q, mark %q", err, code, mark)
	}
}

const asJSON, asHTML = "application/json", "text/html"

// TestOneObject has answers to a look-up of one object. A 404 that isn't the gateway's own
// word for an unknown key must never be taken for it.
func TestOneObject(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	withKey := strings.Replace(documented(t), "      id: id\n", "      id: id\n      key: key\n", 1)
	if withKey == documented(t) {
		t.Fatal("the configuration isn't changed")
	}
	const hit = `{"id":"1","key":"` + key + `","status":"pending","amount_minor":125000,"currency":"EUR"}`
	for name, tt := range map[string]struct {
		status     int
		kind, body string
		id         string // that is known from before
		code       string
		mark       providers.Mark
	}{
		"hit":                        {200, asJSON, hit, "", "", ""},
		"hit of a vendor's type":     {200, "application/vnd.example+json", hit, "", "", ""},
		"hit, known before":          {200, asJSON, hit, "1", "", ""},
		"another than before":        {200, asJSON, hit, "2", "other_object", providers.Contradiction},
		"another key's":              {200, asJSON, strings.Replace(hit, "0011", "1100", 1), "", "other_object", providers.Contradiction},
		"nobody's":                   {200, asJSON, strings.Replace(hit, `"key"`, `"k"`, 1), "", "answer_incomplete", ""},
		"hit from a portal":          {200, asHTML, hit, "", "answer_unreadable", ""},
		"half a hit":                 {200, asJSON, hit[:40], "", "answer_unreadable", ""},
		"an unknown key":             {404, asJSON, failText("payment_order_not_found"), "", "absent", ""},
		"another 404":                {404, asJSON, failText("no_such_route"), "", "no_such_route", ""},
		"a 404 without a code":       {404, asJSON, `{}`, "", "http_404", ""},
		"a 404 from a portal":        {404, asHTML, failText("payment_order_not_found"), "", "http_404", ""},
		"the word under another one": {410, asJSON, failText("payment_order_not_found"), "", "payment_order_not_found", ""},
		"a broken gateway":           {500, asJSON, failText("payment_order_not_found"), "", "server_error", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := answering(t, withKey, tt.status, tt.kind, tt.body)
			_, err := p.Lookup(context.Background(), providers.PaymentOrderCreate, ledger.Question{ProviderKey: key, ProviderOperationID: tt.id})
			wantError(t, err, tt.code, tt.mark)
		})
	}
}

// Any 404 of the gateway's own is absence where the configuration names no code for it,
// but a portal's isn't.
func TestNotFoundWithoutACode(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	anyCode := strings.Replace(documented(t), "not_found_code: payment_order_not_found", "", 1)
	for _, tt := range []struct{ kind, body, code string }{
		{asJSON, failText("whatever"), "absent"},
		{asJSON, `{"error":{}}`, "http_404"},
		{asHTML, failText("whatever"), "http_404"},
		{asHTML, `<html>`, "http_404"},
	} {
		p := answering(t, anyCode, 404, tt.kind, tt.body)
		_, err := p.Lookup(context.Background(), providers.PaymentOrderCreate, ledger.Question{ProviderKey: key})
		wantError(t, err, tt.code, "")
	}
}

// TestRules has refusals, and what somebody else says with the same status.
func TestRules(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	rules := strings.Replace(documented(t), "    errors:\n", "    errors:\n      - {status: 403, means: refused}\n      - {status: 404, means: nothing}\n      - {status: 429, means: not_sent}\n", 1)
	if rules == documented(t) {
		t.Fatal("the configuration isn't changed")
	}
	noCodes := strings.NewReplacer("      error: error.code\n", "", "{status: 409, code: request_in_progress,", "{status: 409,", "{status: 422, code: idempotency_key_reused,", "{status: 422,", "not_found_code: payment_order_not_found", "").Replace(rules)
	for name, tt := range map[string]struct {
		text       string
		status     int
		kind, body string
		code       string
		mark       providers.Mark
	}{
		"refused":                     {rules, 403, asJSON, failText("limit"), "limit", providers.Refused},
		"refused by a portal":         {rules, 403, asHTML, failText("limit"), "http_403", ""},
		"refused without a code":      {rules, 403, asJSON, `{}`, "http_403", ""},
		"nothing":                     {rules, 404, asJSON, failText("x"), "x", ""},
		"not sent":                    {rules, 429, asJSON, failText("x"), "x", providers.NotSent},
		"not sent, says a portal":     {rules, 429, asHTML, "", "http_429", ""},
		"in flight":                   {rules, 409, asJSON, failText("request_in_progress"), "request_in_progress", providers.InFlight},
		"another conflict":            {rules, 409, asJSON, failText("x"), "x", ""},
		"key reused":                  {rules, 422, asJSON, failText("idempotency_key_reused"), "idempotency_key_reused", providers.KeyReused},
		"another refusal":             {rules, 422, asJSON, failText("x"), "x", providers.Refused},
		"no codes: refused":           {noCodes, 403, asJSON, `{}`, "http_403", providers.Refused},
		"no codes: no JSON":           {noCodes, 403, asJSON, `{`, "http_403", ""},
		"no codes, no rule":           {noCodes, 400, asJSON, `{}`, "http_400", ""},
		"a created object, as a page": {rules, 201, asHTML, `{"id":"1","status":"pending","amount_minor":125000,"currency":"EUR"}`, "answer_unreadable", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := answering(t, tt.text, tt.status, tt.kind, tt.body)
			request, err := p.Prepare(providers.Order{Arguments: order})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Apply(context.Background(), providers.PaymentOrderCreate, ledger.Attempt{
				ProviderKey: key, Payload: ledger.Payload{Request: request}, MaySend: func() error { return nil },
			})
			wantError(t, err, tt.code, tt.mark)
		})
	}
}

// An index is written in one way only.
func TestIndexes(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	for where, code := range map[string]string{"/data/0/the.id": "", "/data/00/the.id": "answer_incomplete", "/data/+0/the.id": "answer_incomplete", "/data/1/the.id": "answer_incomplete", "/data/-1/the.id": "answer_incomplete", "data.0.the": "answer_incomplete"} {
		text := strings.Replace(plain(providers.PaymentOrderCreate), "/data/0/the.id", where, 1)
		_, _, err := apply(t, text, `{"data":[{"the.id":"1"}]}`, order)
		wantError(t, err, code, "")
	}
}
