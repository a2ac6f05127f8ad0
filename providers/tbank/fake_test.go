package tbank_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/onceward/onceward/providers/providertest"
)

const planted = "planted_tbank_token_1"

// A bank is T-Bank's side, as its documentation has it. It has no word for what was taken
// on but the one that these tests configure.
type bank struct {
	mu       sync.Mutex
	ids      []string
	payments map[string]map[string]any // by id
	bodies   map[string]string
	hidden   bool

	// What the bank answers to another payment under an id that it knows isn't documented;
	// all that is said is that there is one payment. silent: as to the first one. Else it
	// refuses.
	silent bool
}

const takenOn = "accepted"

func newBank() *bank {
	return &bank{payments: map[string]map[string]any{}, bodies: map[string]string{}}
}

func (b *bank) fake() providertest.Fake {
	change := func(f func(last map[string]any)) func() {
		return func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			f(b.payments[b.ids[len(b.ids)-1]])
		}
	}
	return providertest.Fake{
		Handler: b,
		Effects: func() []string {
			b.mu.Lock()
			defer b.mu.Unlock()
			return append([]string(nil), b.ids...)
		},
		Hide: func(hidden bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.hidden = hidden
		},
		Alter: change(func(last map[string]any) {
			altered := maps.Clone(last["meta"].(map[string]any))
			altered["amount"] = "1.00"
			last["meta"] = altered
		}),
		Reject: change(func(last map[string]any) { last["status"] = "FAILED" }),
	}
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, isPayment := strings.CutPrefix(r.URL.Path, "/api/v1/payment/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+planted:
		problem(w, 401, "UNAUTHORIZED")
	case r.Method == http.MethodPost && r.URL.Path == "/api/v1/payment/ruble-transfer/pay":
		b.pay(w, r)
	case r.Method == http.MethodGet && isPayment:
		payment, ok := b.payments[id]
		if !ok || b.hidden {
			problem(w, 404, "NOT_FOUND")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"status": payment["status"], "meta": payment["meta"]})
	default:
		problem(w, 400, "BAD_REQUEST")
	}
}

var account = regexp.MustCompile(`^([0-9]{20}|[0-9]{22})$`)

func (b *bank) pay(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ID   string
		From struct{ AccountNumber string }
		To   struct {
			Name, INN, BIK string
			AccountNumber  string
		}
		Purpose string
		Amount  float64
		Meta    map[string]any
	}
	raw, _ := io.ReadAll(r.Body)
	if r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(raw, &body) != nil ||
		body.ID == "" || len(body.ID) > 64 || !account.MatchString(body.From.AccountNumber) || !account.MatchString(body.To.AccountNumber) ||
		body.To.Name == "" || body.To.INN == "" || body.To.BIK == "" || body.Purpose == "" || len([]rune(body.Purpose)) > 210 || body.Amount <= 0 {
		problem(w, 422, "VALIDATION_ERROR")
		return
	}
	switch _, known := b.payments[body.ID]; {
	case !known:
		b.ids = append(b.ids, body.ID)
		b.payments[body.ID] = map[string]any{"status": takenOn, "meta": body.Meta}
		b.bodies[body.ID] = string(raw)
	case b.bodies[body.ID] != string(raw) && !b.silent:
		problem(w, 422, "DUPLICATE_ID")
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, problemText(code))
}

func problemText(code string) string {
	return fmt.Sprintf(`{"errorId":"1f0","errorMessage":"Ida Planted","errorCode":%q}`, code)
}
