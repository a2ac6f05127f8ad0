package increase_test

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
	"github.com/onceward/onceward/providers/increase"
)

// TestLists has answers to a look-up, and what may be concluded from them.
func TestLists(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_INCREASE_KEY", planted)
	const hit = `{"id":"ach_transfer_1","type":"ach_transfer","status":"submitted","idempotency_key":"k1","account_id":"account_a","amount":100,"currency":"USD","account_number":"1","routing_number":"101050001"}`
	const request = `{"account_id":"account_a","amount":100,"statement_descriptor":"r","account_number":"1","routing_number":"101050001","funding":"checking"}`
	list := func(items string) string { return `{"data":[` + items + `],"next_cursor":null}` }
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
		"no list":                        {200, "application/json", `{"next_cursor":null}`, "answer_unreadable", "", false},
		"an item without an id":          {200, "application/json", list(strings.Replace(hit, "ach_transfer_1", "", 1)), "answer_unreadable", "", false},
		"another bank's number":          {200, "application/json", list(strings.Replace(hit, "101050001", "021000021", 1)), "other_object", providers.Contradiction, false},
		"another account's number":       {200, "application/json", list(strings.Replace(hit, `"1"`, `"2"`, 1)), "other_object", providers.Contradiction, false},
		"another object than before":     {200, "application/json", list(strings.Replace(hit, "ach_transfer_1", "ach_transfer_2", 1)), "other_object", providers.Contradiction, true},
		"not found":                      {404, "application/json", problemText(404, "object_not_found_error"), "object_not_found_error", "", false},
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
				q = ledger.Question{ProviderKey: "k1", ProviderOperationID: "ach_transfer_1"}
			}
			r, err := configured(t, increase.Config{Endpoint: server.URL}).Lookup(context.Background(), providers.PaymentOrderCreate, q)
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
