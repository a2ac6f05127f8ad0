package providers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// asking is a provider that asks an HTTP server and finds nothing.
type asking struct {
	providers.Provider
	client *providers.HTTPClient
}

func (asking) Traits(string) (providers.Traits, bool) {
	return providers.Traits{Lookup: providers.LookupByKey}, true
}

func (a asking) Lookup(ctx context.Context, _ string, _ ledger.Question) (ledger.Receipt, error) {
	if _, err := a.client.Do(ctx, providers.HTTPRequest{Method: http.MethodGet, Path: "/"}); err != nil {
		return ledger.Receipt{}, err
	}
	return ledger.Receipt{}, providers.ErrAbsent
}

// The ledger learns the provider's clock from every look-up's answer, whatever it says.
func TestLookupBringsTheProvidersClock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		date string
		want time.Time
	}{
		"told":       {"Mon, 30 Nov 2026 10:00:00 GMT", time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)},
		"told wrong": {"yesterday", time.Time{}},
		"told not":   {"", time.Time{}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = nil
			if tc.date != "" {
				w.Header().Set("Date", tc.date)
			}
		}))
		client, err := providers.NewHTTPClient(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		actor, _ := providers.Actor("asking", "scope", providers.RefundCreate, asking{client: client})
		if f := actor.Lookup(t.Context(), ledger.Question{}); f.Verdict != ledger.Absent || !f.Clock.Equal(tc.want) {
			t.Errorf("%s: %+v, want absent at %v", name, f, tc.want)
		}
		server.Close()
	}
}
