package stripe_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/providertest"
	"github.com/onceward/onceward/providers/stripe"
)

// The peers are programs of others that answer as Stripe does, on loopback.
const (
	statefulPeer = "ONCEWARD_TEST_STRIPE_STATEFUL_URL" // stripe-stateful-mock: charges, refunds, keys
	shapePeer    = "ONCEWARD_TEST_STRIPE_MOCK_URL"     // stripe-mock: the shape of requests, by Stripe's OpenAPI
)

// peer is where a peer listens. Without one the test is skipped, but not where everything
// has to run.
func peer(t *testing.T, variable string) string {
	t.Helper()
	address := os.Getenv(variable)
	switch {
	case address != "":
	case os.Getenv("CI") == "true":
		t.Fatalf("%s isn't set: start the peer and name its URL", variable)
	default:
		t.Skipf("%s isn't set", variable)
	}
	return strings.TrimSuffix(address, "/")
}

// A charge is a payment at the stateful peer.
type charge struct {
	peer, id string
}

func newCharge(t *testing.T, peer string, amount int) charge {
	t.Helper()
	body := ask(t, http.MethodPost, peer+"/v1/charges", fmt.Sprintf("amount=%d&currency=usd&source=tok_visa", amount))
	var made struct{ ID string }
	if err := json.Unmarshal(body, &made); err != nil || made.ID == "" {
		t.Fatalf("no charge was made: %v, %s", err, body)
	}
	return charge{peer, made.ID}
}

// refunds are the charge's refunds at the peer, oldest first.
func (c charge) refunds(t *testing.T) (ids []string) {
	t.Helper()
	body := ask(t, http.MethodGet, c.peer+"/v1/refunds?limit=100&charge="+c.id, "")
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("no list of refunds: %v, %s", err, body)
	}
	for _, r := range slices.Backward(list.Data) {
		ids = append(ids, r.ID)
	}
	return ids
}

func ask(t *testing.T, method, url, form string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+plantedKey)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// harnessAt is the suite's harness, with the peer as the provider's side.
func harnessAt(t *testing.T, c charge) providertest.Harness {
	t.Helper()
	address, err := url.Parse(c.peer)
	if err != nil {
		t.Fatal(err)
	}
	h := harness(c.id)
	h.Fake = func(t *testing.T) providertest.Fake {
		proxy := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) },
			ModifyResponse: func(answer *http.Response) error {
				if answer.Header.Get("Idempotent-Replayed") == "true" {
					answer.Header.Set("Content-Type", "application/json") // this peer replays JSON as text/html
				}
				return nil
			},
		}
		return providertest.Fake{Handler: proxy, Effects: func() []string { return c.refunds(t) }}
	}
	return h
}

// Every loss comes to exactly one refund at the peer, and to the same in the ledger.
func TestStatefulPeerEveryLoss(t *testing.T) {
	address := peer(t, statefulPeer)
	t.Setenv("ONCEWARD_TEST_PLANTED_KEY", plantedKey)
	for _, loss := range providertest.Losses() {
		t.Run(loss.Name, func(t *testing.T) {
			c := newCharge(t, address, 100_000)
			providertest.Rehearse(t, harnessAt(t, c), loss)
			if n := len(c.refunds(t)); n != 1 {
				t.Errorf("%d refunds at the peer, want 1", n)
			}
		})
	}
}

// Two partial refunds of the same amount are two, if they are two operations.
func TestStatefulPeerPartialRefunds(t *testing.T) {
	c := newCharge(t, peer(t, statefulPeer), 25_000)
	t.Setenv("ONCEWARD_TEST_PLANTED_KEY", plantedKey)
	h := harnessAt(t, c)
	p := h.New(t, providertest.NewPeer(t, h.Fake(t).Handler, isPost).URL())
	one := func(number int) (ledger.Receipt, error) { return refundOne(t, p, c.id, number) }
	first, err := one(1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := one(1)
	if err != nil || again.ProviderOperationID != first.ProviderOperationID || !strings.Contains(string(again.Evidence), `"replayed":true`) {
		t.Errorf("the same key again: %s, %v; want %s, replayed", again.Evidence, err, first.ProviderOperationID)
	}
	second, err := one(2)
	if err != nil || second.ProviderOperationID == first.ProviderOperationID {
		t.Errorf("another operation: %s, %v", second.ProviderOperationID, err)
	}
	if _, err := one(3); providers.MarkOf(err) != providers.Refused {
		t.Errorf("more than was paid: %v, want it refused", err)
	}
	if n := len(c.refunds(t)); n != 2 {
		t.Errorf("%d refunds at the peer, want 2", n)
	}
	for number, want := range map[int]string{1: first.ProviderOperationID, 2: second.ProviderOperationID} {
		order := orderOf(c.id, number)
		request, err := p.Prepare(order)
		if err != nil {
			t.Fatal(err)
		}
		found, err := p.Lookup(t.Context(), providers.RefundCreate, ledger.Question{
			OperationID: order.OperationID, ProviderKey: order.ProviderKey, FirstSentAt: time.Now(), Payload: ledger.Payload{Request: request},
		})
		if err != nil || found.ProviderOperationID != want {
			t.Errorf("look-up of operation %d: %q, %v; want %q", number, found.ProviderOperationID, err, want)
		}
	}
}

func orderOf(payment string, number int) providers.Order {
	return providers.Order{
		OperationID: fmt.Sprintf("op_%d", number), ProviderKey: fmt.Sprintf("%s-%d", payment, number),
		Arguments: providers.Refund{PaymentID: payment, Amount: providers.Money{Minor: 10_000, Currency: "USD"}},
	}
}

func refundOne(t *testing.T, p providers.Provider, payment string, number int) (ledger.Receipt, error) {
	t.Helper()
	order := orderOf(payment, number)
	request, err := p.Prepare(order)
	if err != nil {
		t.Fatal(err)
	}
	return p.Apply(t.Context(), providers.RefundCreate, ledger.Attempt{
		OperationID: order.OperationID, ProviderKey: order.ProviderKey, Payload: ledger.Payload{Request: request},
		MaySend: func() error { return nil },
	})
}

// stripe-mock knows Stripe's OpenAPI and nothing else: it refuses requests that aren't as
// specified, and answers the others with an object of its own.
func TestShapePeer(t *testing.T) {
	address := peer(t, shapePeer)
	t.Setenv("ONCEWARD_TEST_PLANTED_KEY", plantedKey)
	p := harness("pi_1").New(t, address)
	for _, payment := range []string{"pi_1", "ch_1"} {
		_, err := refundOne(t, p, payment, 1)
		if e, ok := errors.AsType[*providers.Error](err); !ok || e.Mark != providers.Contradiction {
			t.Errorf("%s: %v, want a refund that isn't ours", payment, err)
		}
		request, err := p.Prepare(orderOf(payment, 1))
		if err != nil {
			t.Fatal(err)
		}
		q := ledger.Question{OperationID: "op_1", FirstSentAt: time.Now(), Payload: ledger.Payload{Request: request}}
		if _, err := p.Lookup(t.Context(), providers.RefundCreate, q); !errors.Is(err, providers.ErrAbsent) {
			t.Errorf("look-up of %s: %v, want ErrAbsent", payment, err)
		}
	}
	// Without this the peer could be one that takes everything.
	_, err := p.Apply(t.Context(), providers.RefundCreate, ledger.Attempt{
		ProviderKey: "1", Payload: ledger.Payload{Request: []byte("amount=100&charge=ch_1&no_such_parameter=1")}, MaySend: func() error { return nil },
	})
	if providers.MarkOf(err) != providers.Refused {
		t.Errorf("a parameter that there isn't: %v, want it refused", err)
	}
}

// The proxy in front of a peer must pass on what it gets.
func TestPeerIsAsked(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Idempotency-Key")
		http.Error(w, "{}", http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	p, err := stripe.New(stripe.Config{APIKeyFile: keyFile(t, plantedKey), Endpoint: providertest.NewPeer(t, harnessAt(t, charge{server.URL, "ch_1"}).Fake(t).Handler, isPost).URL()})
	if err != nil {
		t.Fatal(err)
	}
	refundOne(t, p, "ch_1", 7)
	if got, want := <-seen, "ch_1-7"; got != want {
		t.Errorf("the peer got the key %q, want %q", got, want)
	}
}

func isPost(r *http.Request) bool { return r.Method == http.MethodPost }
