package compare_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A bank is the world outside: an HTTP payment server that gives a payment back in as many
// parts as one likes, until its amount is used up. It keeps the Idempotency-Key for ever: the
// same key with the same body gets the first answer, with another body it is refused. So no
// way to name an action fails here for want of a careful server.
type bank struct {
	server *httptest.Server

	mu       sync.Mutex
	left     map[string]int64 // by payment, in cents
	known    map[string]answered
	journal  map[string][]int64 // by payment: what was given back, oldest first
	next     fault              // of the request that acts next
	gate     <-chan struct{}    // if there is one, a request waits for it before it acts
	held     chan struct{}      // told of each answer that is held back
	released chan struct{}      // ends those
}

// answered is what a key was used for.
type answered struct {
	body   string
	refund []byte
}

// A fault is what becomes of the answer to a request that has acted.
type fault string

const (
	none   fault = ""
	hangUp fault = "hang up" // the connection ends without an answer
	cut    fault = "cut"     // it ends in the middle of the answer
	hold   fault = "hold"    // nothing comes, for as long as the caller lives
)

func newBank(t testing.TB) *bank {
	b := &bank{
		left: map[string]int64{}, known: map[string]answered{}, journal: map[string][]int64{},
		held: make(chan struct{}, 1), released: make(chan struct{}),
	}
	b.server = httptest.NewServer(http.HandlerFunc(b.refund))
	t.Cleanup(b.server.Close)
	return b
}

// open makes a payment of so many cents that can be given back.
func (b *bank) open(payment string, cents int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left[payment] = cents
}

// refunds are the parts of a payment that were given back.
func (b *bank) refunds(payment string) []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]int64(nil), b.journal[payment]...)
}

// arrange says what becomes of the next answer, and what requests wait for before they act.
func (b *bank) arrange(next fault, gate <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next, b.gate = next, gate
}

// release ends the connections whose answer is held back, those to come too until the next
// one is.
func (b *bank) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.released)
	b.released = make(chan struct{})
}

// An order is what the server is asked to do.
type order struct {
	PaymentID   string `json:"payment_id"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

func (b *bank) refund(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.wait(r.Context())
	status, reply, lost, released := b.act(r.Header.Get("Idempotency-Key"), body)
	switch lost {
	case none:
	case hold:
		b.held <- struct{}{}
		<-released
		panic(http.ErrAbortHandler)
	case hangUp:
		panic(http.ErrAbortHandler)
	case cut:
		w.Header().Set("Content-Length", fmt.Sprint(len(reply)+1))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(reply)
}

func (b *bank) wait(ctx context.Context) {
	b.mu.Lock()
	gate := b.gate
	b.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-ctx.Done():
	}
}

// act is one transaction: all or nothing, and one at a time.
func (b *bank) act(key string, body []byte) (status int, reply []byte, lost fault, released <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var o order
	if err := json.Unmarshal(body, &o); err != nil || key == "" {
		return refused(http.StatusBadRequest, "bad_request")
	}
	if was, ok := b.known[key]; ok {
		if was.body != string(body) {
			return refused(http.StatusUnprocessableEntity, "idempotency_key_reused")
		}
		return http.StatusOK, was.refund, b.take(), b.released
	}
	if o.AmountMinor <= 0 || o.AmountMinor > b.left[o.PaymentID] {
		return refused(http.StatusUnprocessableEntity, "amount_too_large")
	}
	b.left[o.PaymentID] -= o.AmountMinor
	b.journal[o.PaymentID] = append(b.journal[o.PaymentID], o.AmountMinor)
	reply = fmt.Appendf(nil, `{"id":"re_%s_%d","amount_minor":%d,"currency":%q}`, o.PaymentID, len(b.journal[o.PaymentID]), o.AmountMinor, o.Currency)
	b.known[key] = answered{string(body), reply}
	return http.StatusOK, reply, b.take(), b.released
}

// take is the fault that was arranged; it happens once.
func (b *bank) take() fault {
	f := b.next
	b.next = none
	return f
}

func refused(status int, code string) (int, []byte, fault, <-chan struct{}) {
	return status, fmt.Appendf(nil, `{"error":{"code":%q}}`, code), none, nil
}
