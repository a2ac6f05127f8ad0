package resend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/onceward/onceward/providers/providertest"
)

const planted = "re_planted_key_1"

// A mailer is Resend's side, as its documentation has it.
type mailer struct {
	mu     sync.Mutex
	ids    []string
	keys   map[string]string // to ids
	bodies map[string][]byte
	event  string // of every mail
}

func newMailer() *mailer {
	return &mailer{keys: map[string]string{}, bodies: map[string][]byte{}, event: "delivered"}
}

func (m *mailer) fake() providertest.Fake {
	return providertest.Fake{
		Handler: m,
		Effects: func() []string {
			m.mu.Lock()
			defer m.mu.Unlock()
			return append([]string(nil), m.ids...)
		},
		Forget: func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			clear(m.keys)
		},
	}
}

func (m *mailer) turn(event string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.event = event
}

func (m *mailer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, one := strings.CutPrefix(r.URL.Path, "/emails/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+planted:
		say(w, 401, problem(401, "validation_error"))
	case r.Method == http.MethodPost && r.URL.Path == "/emails":
		m.send(w, r)
	case r.Method == http.MethodGet && one && m.bodies[id] != nil:
		say(w, 200, fmt.Sprintf(`{"object":"email","id":%q,"to":["x@example.com"],"last_event":%q}`, id, m.event))
	default:
		say(w, 404, problem(404, "not_found"))
	}
}

func (m *mailer) send(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var mail struct {
		From, Subject string
		To            []string
		Text, HTML    *string
	}
	key := r.Header.Get("Idempotency-Key")
	switch {
	case err != nil:
	case len(key) == 0 || len(key) > 256:
		say(w, 400, problem(400, "invalid_idempotency_key"))
	case r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(body, &mail) != nil:
		say(w, 400, problem(400, "validation_error"))
	case mail.From == "" || mail.Subject == "" || mail.Text == nil && mail.HTML == nil:
		say(w, 422, problem(422, "missing_required_field"))
	case len(mail.To) == 0 || len(mail.To) > 50:
		say(w, 422, problem(422, "validation_error"))
	case m.keys[key] != "" && !bytes.Equal(m.bodies[m.keys[key]], body):
		say(w, 409, problem(409, "invalid_idempotent_request"))
	default:
		if m.keys[key] == "" {
			m.keys[key] = fmt.Sprintf("4ef9a417-02e9-4d39-ad75-%012d", len(m.ids))
			m.ids = append(m.ids, m.keys[key])
			m.bodies[m.keys[key]] = body
		}
		say(w, 200, fmt.Sprintf(`{"id":%q}`, m.keys[key]))
	}
}

func problem(status int, name string) string {
	return fmt.Sprintf(`{"statusCode":%d,"name":%q,"message":"about ida.planted@example.org"}`, status, name)
}

func say(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
