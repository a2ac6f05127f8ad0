package moderntreasury_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"

	"github.com/onceward/onceward/providers/providertest"
)

const (
	planted      = "planted_moderntreasury_key_1"
	organization = "11111111-2222-3333-4444-555555555555"
)

// A treasury is Modern Treasury's side, as its documentation has it.
type treasury struct {
	mu      sync.Mutex
	objects []map[string]any // payment orders
	echoes  map[string]map[string]any
	hidden  bool
	double  bool
	others  int // orders of others that an unfiltered list begins with
}

func newTreasury() *treasury { return &treasury{echoes: map[string]map[string]any{}} }

func (s *treasury) fake() providertest.Fake {
	change := func(f func()) func() {
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			f()
		}
	}
	last := func() map[string]any { return s.objects[len(s.objects)-1] }
	return providertest.Fake{
		Handler: s,
		Effects: func() []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			var ids []string
			for _, o := range s.objects {
				ids = append(ids, o["id"].(string))
			}
			return ids
		},
		Forget: change(func() { s.echoes = map[string]map[string]any{} }),
		Hide:   func(hidden bool) { change(func() { s.hidden = hidden })() },
		Crowd:  change(func() { s.others = 150 }),
		Double: change(func() { s.double = true }),
		Alter:  change(func() { last()["amount"] = json.Number("1") }),
		Reject: change(func() { last()["status"] = "returned" }),
	}
}

func (s *treasury) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, password, _ := r.BasicAuth()
	switch {
	case user != organization || password != planted:
		problem(w, 401, "unauthorized", "")
	case r.URL.Path != "/api/payment_orders":
		problem(w, 404, "resource_not_found", "id")
	case r.Method == http.MethodPost:
		s.create(w, r)
	case r.Method == http.MethodGet:
		s.list(w, r)
	default:
		problem(w, 404, "resource_not_found", "id")
	}
}

func (s *treasury) create(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if echo, ok := s.echoes[key]; ok {
		answer(w, 201, echo) // whatever the body says
		return
	}
	var body map[string]any
	d := json.NewDecoder(r.Body)
	d.UseNumber()
	if r.Header.Get("Content-Type") != "application/json" || d.Decode(&body) != nil {
		problem(w, 422, "parameter_invalid", "")
		return
	}
	for _, required := range []string{"type", "amount", "direction", "originating_account_id", "receiving_account_id"} {
		if body[required] == nil {
			problem(w, 422, "parameter_missing", required)
			return
		}
	}
	for _, o := range s.objects {
		if o["external_id"] == body["external_id"] {
			problem(w, 422, "parameter_invalid", "external_id")
			return
		}
	}
	object := maps.Clone(body)
	maps.Copy(object, map[string]any{"id": fmt.Sprintf("po-%d", len(s.objects)+1), "object": "payment_order", "live_mode": false, "status": "approved"})
	s.objects = append(s.objects, object)
	s.echoes[key] = object
	answer(w, 201, object)
}

func (s *treasury) list(w http.ResponseWriter, r *http.Request) {
	all := []map[string]any{}
	for i := range s.others { // a list that isn't filtered
		all = append(all, map[string]any{"id": fmt.Sprintf("others-%d", i), "object": "payment_order", "external_id": nil})
	}
	for _, o := range s.objects {
		if o["external_id"] != r.URL.Query().Get("external_id") || s.hidden {
			continue
		}
		all = append(all, o)
		if s.double {
			twin := maps.Clone(o)
			twin["id"] = "po-twin"
			all = append(all, twin)
		}
	}
	perPage, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	from, _ := strconv.Atoi(r.URL.Query().Get("after_cursor"))
	to := min(from+min(max(perPage, 25), 100), len(all))
	if to < len(all) {
		w.Header().Set("X-After-Cursor", strconv.Itoa(to))
	}
	answer(w, 200, all[from:to])
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, code, parameter string) {
	answer(w, status, map[string]any{"errors": map[string]string{"code": code, "message": "A message.", "parameter": parameter}})
}

func problemText(code, parameter string) string {
	return fmt.Sprintf(`{"errors":{"code":%q,"message":"Ida Planted","parameter":%q}}`, code, parameter)
}
