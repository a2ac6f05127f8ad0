package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// statefulStripe is a program of others that keeps refunds and keys as Stripe does.
func statefulStripe(t *testing.T) *url.URL {
	t.Helper()
	address := os.Getenv("ONCEWARD_TEST_STRIPE_STATEFUL_URL")
	if address == "" && os.Getenv("CI") == "true" {
		t.Fatal("ONCEWARD_TEST_STRIPE_STATEFUL_URL isn't set: start the peer and name its URL")
	}
	if address == "" {
		t.Skip("ONCEWARD_TEST_STRIPE_STATEFUL_URL isn't set")
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func askStripe(t *testing.T, method, address, form string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer sk_test_example")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(body, into) != nil {
		t.Fatalf("%s %s: %s, %v: %s", method, address, answer.Status, err, body)
	}
}

// The answer to a refund is swallowed on its way, and the process is killed before it can give
// up. After a restart the same call finds the one refund at the peer; and a second, legitimate
// partial refund of the same amount, with another intent, goes through.
func TestKilledWhileStripeActed(t *testing.T) {
	t.Parallel()
	peer := statefulStripe(t)
	var charge struct{ ID string }
	askStripe(t, http.MethodPost, peer.String()+"/v1/charges", "amount=10000&currency=usd&source=tok_visa", &charge)

	var victim atomic.Pointer[childServer]
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(peer) },
		ModifyResponse: func(answer *http.Response) error {
			if answer.Request.Method == http.MethodPost {
				if child := victim.Swap(nil); child != nil {
					child.kill() // Stripe has acted, and nobody is there to hear of it
				}
			}
			if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
				answer.Header.Set("Content-Type", "application/json") // this peer replays JSON as text/html
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)

	dir := t.TempDir()
	config := filepath.Join(dir, "onceward.yaml")
	text := fmt.Sprintf("tools: {refund: {provider: stripe}}\nproviders: {stripe: {api_key_env: STRIPE_KEY, endpoint: %q, deadline: 2s, lease: 4s}}\n", front.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, data := waiting(t), filepath.Join(dir, "data")
	start := func() *childServer {
		return startChild(t, data, []string{"STRIPE_KEY=sk_test_example"}, "--config", config)
	}
	args := fmt.Sprintf(`{"payment_id":%q,"amount":"10.00","currency":"USD"}`, charge.ID)

	child := start()
	victim.Store(child)
	if said, err := child.call(ctx, "refund", with(`{"business_operation_id":"refund-1"}`, args)); err == nil {
		t.Fatalf("a killed server answered %+v", said)
	}
	child = start()
	first, err := child.call(ctx, "refund", with(`{"business_operation_id":"refund-1"}`, args))
	if err != nil || first.Status != "succeeded" || !first.Replayed {
		t.Fatalf("after the restart: %+v, %v, want a success that was found\n%s", first, err, child.log)
	}
	second, err := child.call(ctx, "refund", with(`{"business_operation_id":"refund-2"}`, args))
	if err != nil || second.Status != "succeeded" || second.Replayed || second.ProviderOperationID == first.ProviderOperationID {
		t.Fatalf("a second partial refund: %+v, %v, want one of its own\n%s", second, err, child.log)
	}
	var list struct{ Data []struct{ ID string } }
	askStripe(t, http.MethodGet, peer.String()+"/v1/refunds?limit=100&charge="+charge.ID, "", &list)
	if len(list.Data) != 2 {
		t.Fatalf("the peer has %d refunds, want one for each intent: %v", len(list.Data), list.Data)
	}
}
