package stripe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/providers/providertest"
)

// A fake is Stripe as its documentation describes refunds: idempotency by key, lists
// newest first in pages of at most 100 and 10 by default, and its own errors.
type fake struct {
	apiKey  string
	payment string

	mu      sync.Mutex
	refunds []map[string]any // oldest first
	effects []string
	keys    map[string]saved
	hidden  bool
}

type saved struct {
	request []byte
	status  int
	body    []byte
}

func newFake(apiKey, payment string) *fake {
	return &fake{apiKey: apiKey, payment: payment, keys: map[string]saved{}}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_fake")
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	switch {
	case r.Header.Get("Authorization") != "Bearer "+f.apiKey:
		f.fail(w, 401, "invalid_request_error", "")
	case r.URL.Path != "/v1/refunds":
		f.fail(w, 404, "invalid_request_error", "resource_missing")
	case r.Method == http.MethodPost:
		f.create(w, r)
	case r.Method == http.MethodGet:
		f.list(w, r)
	default:
		f.fail(w, 405, "invalid_request_error", "")
	}
}

func (f *fake) fail(w http.ResponseWriter, status int, kind, code string) {
	w.WriteHeader(status)
	fmt.Fprint(w, problem(kind, code))
}

func problem(kind, code string) string {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"type": kind, "code": code, "message": "no such thing: " + plantedNote}})
	return string(b)
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	if old, ok := f.keys[key]; ok && key != "" {
		if !bytes.Equal(old.request, body) {
			f.fail(w, 400, "idempotency_error", "")
			return
		}
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(old.status)
		w.Write(old.body)
		return
	}
	form, err := url.ParseQuery(string(body))
	amount, amountErr := strconv.ParseInt(form.Get("amount"), 10, 64)
	switch {
	case err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || amountErr != nil:
		f.fail(w, 400, "invalid_request_error", "parameter_invalid_integer")
		return
	case form.Get("charge")+form.Get("payment_intent") != f.payment:
		f.fail(w, 404, "invalid_request_error", "resource_missing")
		return
	case r.Header.Get("Stripe-Version") == "":
		f.fail(w, 400, "invalid_request_error", "no_version_pinned")
		return
	}
	made := f.add(amount, form)
	f.effects = append(f.effects, made["id"].(string))
	answer, _ := json.Marshal(made)
	f.keys[key] = saved{body, 200, answer}
	w.Write(answer)
}

func (f *fake) add(amount int64, form url.Values) map[string]any {
	metadata := map[string]string{}
	for name, values := range form {
		if inner, ok := strings.CutPrefix(name, "metadata["); ok {
			metadata[strings.TrimSuffix(inner, "]")] = values[0]
		}
	}
	made := map[string]any{
		"id": fmt.Sprintf("re_fake%04d", len(f.refunds)+1), "object": "refund", "amount": amount, "currency": "usd",
		"status": "succeeded", "created": time.Now().Unix(), "metadata": metadata, "charge": "ch_fake", "payment_intent": nil,
		"reason": nil, "receipt_number": nil,
	}
	if strings.HasPrefix(f.payment, "pi_") {
		made["payment_intent"] = f.payment
	} else {
		made["charge"] = f.payment
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
	since, _ := strconv.ParseInt(query.Get("created[gte]"), 10, 64)
	data := []map[string]any{}
	after := query.Get("starting_after")
	for _, refund := range slices.Backward(f.refunds) {
		switch {
		case after != "":
			if refund["id"] == after {
				after = ""
			}
		case refund["created"].(int64) < since:
		case f.hidden && slices.Contains(f.effects, refund["id"].(string)):
		case refund["charge"] != query.Get("charge") && refund["payment_intent"] != query.Get("payment_intent"):
		default:
			data = append(data, refund)
		}
	}
	page := data[:min(limit, len(data))]
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "url": "/v1/refunds", "data": page, "has_more": len(data) > len(page)})
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
		Forget: locked(func() { f.keys = map[string]saved{} }),
		Hide:   func(hidden bool) { locked(func() { f.hidden = hidden })() },
		Crowd: locked(func() {
			for range 150 {
				f.add(17, url.Values{"metadata[onceward_operation]": {"op_of_another"}})
			}
		}),
		Double: locked(func() {
			form := url.Values{}
			for name, value := range last()["metadata"].(map[string]string) {
				form.Set("metadata["+name+"]", value)
			}
			f.add(last()["amount"].(int64), form)
		}),
		Alter:  locked(func() { last()["amount"] = int64(1) }),
		Reject: locked(func() { last()["status"] = "failed" }),
	}
}
