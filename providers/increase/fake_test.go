package increase_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/onceward/onceward/providers/providertest"
)

const planted = "planted_increase_key_1"

// A bank is Increase's side, as its documentation has it.
type bank struct {
	mu      sync.Mutex
	path    string
	kind    string
	status  string // of new transfers
	objects []map[string]any
	bodies  map[string]map[string]any // by key
	hidden  bool
	double  bool
	crowded bool
}

func newBank(path, kind, status string) *bank {
	return &bank{path: path, kind: kind, status: status, bodies: map[string]map[string]any{}}
}

func (b *bank) fake() providertest.Fake {
	change := func(f func()) func() {
		return func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			f()
		}
	}
	last := func() map[string]any { return b.objects[len(b.objects)-1] }
	return providertest.Fake{
		Handler: b,
		Effects: func() []string {
			b.mu.Lock()
			defer b.mu.Unlock()
			var ids []string
			for _, o := range b.objects {
				ids = append(ids, o["id"].(string))
			}
			return ids
		},
		Hide:   func(hidden bool) { change(func() { b.hidden = hidden })() },
		Crowd:  change(func() { b.crowded = true }),
		Double: change(func() { b.double = true }),
		Alter:  change(func() { last()["amount"] = json.Number("1") }),
		Reject: change(func() { last()["status"] = "canceled" }),
	}
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+planted:
		problem(w, 401, "invalid_api_key_error", nil)
	case r.URL.Path != "/"+b.path:
		problem(w, 404, "api_method_not_found_error", nil)
	case r.Method == http.MethodPost:
		b.create(w, r)
	case r.Method == http.MethodGet:
		b.list(w, r)
	default:
		problem(w, 404, "api_method_not_found_error", nil)
	}
}

func (b *bank) create(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	var body map[string]any
	d := json.NewDecoder(r.Body)
	d.UseNumber()
	if r.Header.Get("Content-Type") != "application/json" || d.Decode(&body) != nil || key == "" || len(key) > 200 {
		problem(w, 400, "malformed_request_error", nil)
		return
	}
	amount, isNumber := body["amount"].(json.Number)
	if _, err := amount.Int64(); !isNumber || err != nil || body["account_id"] == nil {
		problem(w, 400, "invalid_parameters_error", nil)
		return
	}
	if first, ok := b.bodies[key]; ok {
		object := b.find(key)
		if !reflect.DeepEqual(first, body) {
			problem(w, 409, "idempotency_key_already_used_error", map[string]any{"resource_id": object["id"]})
			return
		}
		w.Header().Set("Idempotent-Replayed", "true")
		answer(w, 200, object)
		return
	}
	object := map[string]any{
		"id": fmt.Sprintf("%s_%d", b.kind, len(b.objects)+1), "type": b.kind, "status": b.status, "currency": "USD",
		"idempotency_key": key, "external_account_id": nil, "individual_name": nil, "addenda": nil,
	}
	for name, value := range body {
		object[name] = value
	}
	if object["external_account_id"] != nil { // Increase fills in what the external account has
		object["routing_number"], object["account_number"] = "101050001", "987654321"
	}
	b.objects = append(b.objects, object)
	b.bodies[key] = body
	answer(w, 200, object)
}

func (b *bank) find(key string) map[string]any {
	for _, o := range b.objects {
		if o["idempotency_key"] == key {
			return o
		}
	}
	return nil
}

func (b *bank) list(w http.ResponseWriter, r *http.Request) {
	data := []map[string]any{}
	if o := b.find(r.URL.Query().Get("idempotency_key")); o != nil && !b.hidden {
		data = append(data, o)
		if b.double {
			twin := map[string]any{}
			for name, value := range o {
				twin[name] = value
			}
			twin["id"] = o["id"].(string) + "_twin"
			data = append(data, twin)
		}
	}
	var next any
	if b.crowded && r.URL.Query().Get("cursor") == "" { // a list that isn't filtered
		data, next = []map[string]any{{"id": "ach_transfer_others", "idempotency_key": "others", "type": b.kind}}, "page2"
	}
	answer(w, 200, map[string]any{"data": data, "next_cursor": next})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, kind string, more map[string]any) {
	body := map[string]any{"type": kind, "status": status, "title": "A title.", "detail": nil}
	for name, value := range more {
		body[name] = value
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func problemText(status int, kind string) string {
	return fmt.Sprintf(`{"type":%q,"status":%d,"title":"A title.","detail":"account 987654321 of Ida Planted"}`, kind, status)
}
