package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/onceward/onceward/providers/providertest"
)

const planted = "planted_webhook_token_1"

// A gateway is somebody's own payment gateway. It has four interfaces that differ:
//
//	/v1/payment-orders  the key in a header, known for a time; asked by key
//	/v2/transfers       the key as a reference that it doesn't know a repeat by; lists
//	/v3/refunds/KEY     the key is the object's place; can't be asked
//	/mail               knows no key and can't be asked
type gateway struct {
	mu      sync.Mutex
	objects []map[string]any
	known   map[string]int // key to object
	bodies  map[string]any
	hidden  bool
	double  bool
	crowded bool
}

func newGateway() *gateway { return &gateway{known: map[string]int{}, bodies: map[string]any{}} }

func (g *gateway) fake() providertest.Fake {
	change := func(f func()) func() {
		return func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			f()
		}
	}
	last := func() map[string]any { return g.objects[len(g.objects)-1] }
	return providertest.Fake{
		Handler: g,
		Effects: func() []string {
			g.mu.Lock()
			defer g.mu.Unlock()
			var ids []string
			for _, o := range g.objects {
				ids = append(ids, o["id"].(string))
			}
			return ids
		},
		Hide:   func(hidden bool) { change(func() { g.hidden = hidden })() },
		Alter:  change(func() { last()["amount_minor"], last()["amount"] = json.Number("1"), "0.01" }),
		Reject: change(func() { last()["status"] = "failed" }),
	}
}

// forgets adds what only a gateway with a window can do.
func (g *gateway) forgets() providertest.Fake {
	f := g.fake()
	f.Forget = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		clear(g.known)
	}
	return f
}

// lists adds what only a gateway with lists can do.
func (g *gateway) lists() providertest.Fake {
	f := g.fake()
	f.Crowd = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.crowded = true
	}
	f.Double = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.double = true
	}
	return f
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	body := map[string]any{}
	if len(raw) > 0 {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if r.Header.Get("Content-Type") != "application/json" || d.Decode(&body) != nil {
			fail(w, 400, "malformed")
			return
		}
	}
	key, byKey := strings.CutPrefix(r.URL.Path, "/v1/payment-orders/by-key/")
	put, isPut := strings.CutPrefix(r.URL.Path, "/v3/refunds/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+planted:
		fail(w, 401, "unauthorized")
	case r.Method == "POST" && r.URL.Path == "/v1/payment-orders":
		g.create(w, r.Header.Get("Idempotency-Key"), "pending", body, body["amount_minor"])
	case r.Method == "GET" && byKey:
		g.byKey(w, key)
	case r.Method == "POST" && r.URL.Path == "/v2/transfers":
		g.act(w, fmt.Sprint(body["reference"]), "booked", body)
	case r.Method == "POST" && r.URL.Path == "/v2/transfers/search":
		g.search(w, fmt.Sprint(body["reference"]), r.URL.Query().Get("page"))
	case r.Method == "PUT" && isPut:
		g.put(w, put, body)
	case r.Method == "POST" && r.URL.Path == "/mail" && body["to"] != nil:
		g.act(w, "", "queued", body)
	default:
		fail(w, 404, "no_such_route")
	}
}

// create knows a repeat by its key.
func (g *gateway) create(w http.ResponseWriter, key, status string, body map[string]any, amount any) {
	number, _ := amount.(json.Number)
	if minor, err := number.Int64(); err != nil || minor <= 0 || key == "" {
		fail(w, 422, "amount_minor_invalid")
		return
	}
	if i, ok := g.known[key]; ok {
		if !reflect.DeepEqual(g.bodies[key], body) {
			fail(w, 422, "idempotency_key_reused")
			return
		}
		respond(w, 200, g.objects[i])
		return
	}
	g.known[key], g.bodies[key] = len(g.objects), body
	g.act(w, key, status, body)
}

// act does it, whatever the key.
func (g *gateway) act(w http.ResponseWriter, key, status string, body map[string]any) {
	object := maps.Clone(body)
	object["id"], object["status"], object["key"] = fmt.Sprintf("obj-%d", len(g.objects)+1), status, key
	g.objects = append(g.objects, object)
	respond(w, 201, object)
}

func (g *gateway) byKey(w http.ResponseWriter, key string) {
	for _, o := range g.objects {
		if o["key"] == key && !g.hidden {
			respond(w, 200, o)
			return
		}
	}
	fail(w, 404, "payment_order_not_found")
}

// search shows pages; with a crowd, it shows everybody's.
func (g *gateway) search(w http.ResponseWriter, reference, page string) {
	items, next := []any{}, any(nil)
	number, _ := strconv.Atoi(page)
	if g.crowded && number < 2 {
		items, next = append(items, map[string]any{"id": "others", "reference": nil, "status": "booked"}), strconv.Itoa(number+1)
		respond(w, 200, map[string]any{"data": map[string]any{"items": items, "next": next}})
		return
	}
	for _, o := range g.objects {
		if o["reference"] != reference || g.hidden {
			continue
		}
		items = append(items, o)
		if g.double {
			twin := maps.Clone(o)
			twin["id"] = "obj-twin"
			items = append(items, twin)
		}
	}
	respond(w, 200, map[string]any{"data": map[string]any{"items": items, "next": next}})
}

// put answers a repeat with what stands there already.
func (g *gateway) put(w http.ResponseWriter, key string, body map[string]any) {
	if i, ok := g.known[key]; ok {
		respond(w, 200, g.objects[i])
		return
	}
	if text, _ := body["amount"].(string); text == "" || strings.HasPrefix(text, "-") {
		fail(w, 422, "amount_invalid")
		return
	}
	g.known[key] = len(g.objects)
	g.act(w, key, "done", body)
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/vnd.example+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, status int, code string) {
	respond(w, status, map[string]any{"error": map[string]string{"code": code, "message": "A message."}})
}

func failText(code string) string {
	return fmt.Sprintf(`{"error":{"code":%q,"message":"Ida Planted"}}`, code)
}
