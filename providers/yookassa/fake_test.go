package yookassa_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/providers/providertest"
)

// A fake is YooKassa as its documentation describes refunds: idempotency by
// Idempotence-Key, lists newest first in pages with a cursor, and its own errors.
type fake struct {
	shop, key string
	payment   string

	mu      sync.Mutex
	refunds []map[string]any // oldest first
	effects []string
	keys    map[string][2][]byte // request and answer
	hidden  bool
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	shop, key, _ := r.BasicAuth()
	switch {
	case shop != f.shop || key != f.key:
		f.fail(w, 401, "invalid_credentials", "")
	case r.URL.Path != "/v3/refunds":
		f.fail(w, 404, "not_found", "")
	case r.Method == http.MethodPost:
		f.create(w, r)
	default:
		f.list(w, r)
	}
}

func (f *fake) fail(w http.ResponseWriter, status int, code, parameter string) {
	w.WriteHeader(status)
	fmt.Fprint(w, problem(code, parameter))
}

func problem(code, parameter string) string {
	b, _ := json.Marshal(map[string]any{
		"type": "error", "id": "ab5a11cd-13cc-4e33-af8b-75a74e18dd09", "code": code, "parameter": parameter,
		"description": "Cannot do this: " + plantedNote,
	})
	return string(b)
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotence-Key")
	if old, ok := f.keys[key]; ok {
		if !bytes.Equal(old[0], body) {
			f.fail(w, 400, "invalid_request", "Idempotence-Key")
			return
		}
		w.Write(old[1])
		return
	}
	var order struct {
		PaymentID string `json:"payment_id"`
		Amount    struct{ Value, Currency string }
		Metadata  map[string]string
	}
	switch err := json.Unmarshal(body, &order); {
	case err != nil || key == "" || len(key) > 64 || order.Amount.Value == "" || order.Amount.Currency == "":
		f.fail(w, 400, "invalid_request", "amount")
		return
	case r.Header.Get("Content-Type") != "application/json":
		w.WriteHeader(415)
		return
	case order.PaymentID != f.payment:
		f.fail(w, 404, "not_found", "payment_id")
		return
	}
	made := f.add(order.Amount.Value, order.Metadata)
	f.effects = append(f.effects, made["id"].(string))
	answer, _ := json.Marshal(made)
	f.keys[key] = [2][]byte{body, answer}
	w.Write(answer)
}

func (f *fake) add(value string, metadata map[string]string) map[string]any {
	made := map[string]any{
		"id": fmt.Sprintf("216749f7-0016-50be-b000-%012d", len(f.refunds)+1), "payment_id": f.payment, "status": "succeeded",
		"amount": map[string]string{"value": value, "currency": "RUB"}, "metadata": metadata,
		"created_at": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	f.refunds = append(f.refunds, made)
	return made
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit := 10
	if n, err := strconv.Atoi(query.Get("limit")); err == nil {
		limit = min(n, 100)
	}
	items := []map[string]any{}
	for _, refund := range slices.Backward(f.refunds) {
		hidden := f.hidden && slices.Contains(f.effects, refund["id"].(string))
		if !hidden && refund["payment_id"] == query.Get("payment_id") && refund["created_at"].(string) >= query.Get("created_at.gte") {
			items = append(items, refund)
		}
	}
	from, _ := strconv.Atoi(query.Get("cursor"))
	to := min(from+limit, len(items))
	page := map[string]any{"type": "list", "items": items[from:to]}
	if to < len(items) {
		page["next_cursor"] = strconv.Itoa(to)
	}
	json.NewEncoder(w).Encode(page)
}

// as is the fake for the suite.
func (f *fake) as(*testing.T) providertest.Fake {
	locked := func(do func()) func() {
		return func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			do()
		}
	}
	last := func() map[string]any { return f.refunds[len(f.refunds)-1] }
	return providertest.Fake{
		Handler: f,
		Effects: func() []string {
			f.mu.Lock()
			defer f.mu.Unlock()
			return slices.Clone(f.effects)
		},
		Forget: locked(func() { f.keys = map[string][2][]byte{} }),
		Hide:   func(hidden bool) { locked(func() { f.hidden = hidden })() },
		Crowd: locked(func() {
			for range 150 {
				f.add("0.17", map[string]string{"onceward_operation": "op_of_another"})
			}
		}),
		Double: locked(func() {
			f.add(last()["amount"].(map[string]string)["value"], last()["metadata"].(map[string]string))
		}),
		Alter:  locked(func() { last()["amount"] = map[string]string{"value": "1.00", "currency": "RUB"} }),
		Reject: locked(func() { last()["status"] = "canceled" }),
	}
}
