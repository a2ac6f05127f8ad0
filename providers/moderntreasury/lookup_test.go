package moderntreasury_test

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
	"github.com/onceward/onceward/providers/moderntreasury"
)

// TestLists has answers to a look-up, and what may be concluded from them.
func TestLists(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_MODERNTREASURY_KEY", planted)
	const hit = `{"id":"po-1","object":"payment_order","live_mode":true,"status":"sent","external_id":"k1","amount":100,"currency":"USD","direction":"credit","originating_account_id":"a","receiving_account_id":"b","metadata":{"business_reference":"r"}}`
	const request = `{"type":"ach","direction":"credit","amount":100,"currency":"USD","originating_account_id":"a","receiving_account_id":"b","metadata":{"business_reference":"r"}}`
	list := func(items string) string { return `[` + items + `]` }
	for name, tt := range map[string]struct {
		status      int
		kind, reply string
		code        string // absent: ErrAbsent
		mark        providers.Mark
		onlyID      bool // nothing is known any more but the key and the object's id
	}{
		"hit":                            {200, "application/json", list(hit), "", "", false},
		"hit, of which the id is known":  {200, "application/json", list(hit), "", "", true},
		"none":                           {200, "application/json", list(""), "absent", "", false},
		"none, of which the id is known": {200, "application/json", list(""), "absent", "", true},
		"others":                         {200, "application/json", list(strings.Replace(hit, "k1", "k2", 1)), "absent", "", false},
		"an empty list with an error":    {503, "application/json", list(""), "server_error", "", false},
		"an empty list that moved":       {203, "application/json", list(""), "http_203", "", false},
		"an empty list from a portal":    {200, "text/html", list(""), "answer_unreadable", "", false},
		"no list":                        {200, "application/json", `null`, "answer_unreadable", "", false},
		"an item without an id":          {200, "application/json", list(strings.Replace(hit, "po-1", "", 1)), "answer_unreadable", "", false},
		"another payee":                  {200, "application/json", list(strings.Replace(hit, `"b"`, `"c"`, 1)), "other_object", providers.Contradiction, false},
		"the test environment's":         {200, "application/json", list(strings.Replace(hit, "true", "false", 1)), "other_object", providers.Contradiction, true},
		"another object than before":     {200, "application/json", list(strings.Replace(hit, "po-1", "po-2", 1)), "other_object", providers.Contradiction, true},
		"not found":                      {404, "application/json", problemText("resource_not_found", "id"), "resource_not_found", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.reply)
			}))
			defer server.Close()
			q := ledger.Question{ProviderKey: "k1", Payload: ledger.Payload{Request: []byte(request)}}
			if tt.onlyID {
				q = ledger.Question{ProviderKey: "k1", ProviderOperationID: "po-1"}
			}
			r, err := configured(t, moderntreasury.Config{Endpoint: server.URL}).Lookup(context.Background(), providers.PaymentOrderCreate, q)
			if tt.code == "absent" {
				if !errors.Is(err, providers.ErrAbsent) {
					t.Errorf("error %v, want ErrAbsent", err)
				}
				return
			}
			got, _ := errors.AsType[*providers.Error](err)
			if got == nil {
				got = &providers.Error{}
			}
			if errors.Is(err, providers.ErrAbsent) || got.Code != tt.code || got.Mark != tt.mark || (err == nil) != (r.ProviderOperationID != "") {
				t.Errorf("error %v, want code %q, mark %q", err, tt.code, tt.mark)
			}
		})
	}
}
