package telemetry_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/telemetry"
)

var (
	webhookSecret = []byte("a webhook secret for tests")
	alarmAt       = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	lateSuccess   = ledger.Alarm{Kind: "late_success", OperationID: "op_1", Action: "refund", Status: ledger.Succeeded, Moves: 7, At: alarmAt}
)

// A post is what a receiver got.
type post struct {
	header http.Header
	body   string
}

// receiver takes what is posted, and answers with what answer does.
func receiver(posts chan<- post, answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer(w, r)
		posts <- post{r.Header.Clone(), string(body)}
	})
}

func taken(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// start runs a webhook until the test ends.
func start(t *testing.T, o telemetry.WebhookOptions) *telemetry.Webhook {
	t.Helper()
	if o.Secret == nil {
		o.Secret = webhookSecret
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	w, err := telemetry.NewWebhook(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

// The ids are SHA-256 of the names' JSON, as Python prints it.
func TestAWebhookTells(t *testing.T) {
	t.Parallel()
	posts := make(chan post, 10)
	server := httptest.NewServer(receiver(posts, taken))
	defer server.Close()
	w := start(t, telemetry.WebhookOptions{URL: server.URL + "/onceward?token=not-for-logs"})
	overdue := ledger.Alarm{Kind: "review_overdue", OperationID: "op_1", Action: "refund", Status: ledger.Unknown, Moves: 7, At: alarmAt}
	tomorrow := overdue
	tomorrow.At = alarmAt.Add(24 * time.Hour)
	skew := ledger.Alarm{Kind: "clock_skew", At: alarmAt}
	for _, a := range []ledger.Alarm{lateSuccess, lateSuccess, overdue, overdue, tomorrow, skew, skew} {
		w.Alarm(a)
	}
	type alarm struct {
		ID          string `json:"id"`
		Kind        string `json:"kind"`
		OperationID string `json:"operation_id"`
		ActionType  string `json:"action_type"`
		At          string `json:"at"`
		Status      string `json:"status"`
	}
	var got []alarm
	for range 4 {
		p := <-posts
		wantSigned(t, p)
		var a alarm
		strict := json.NewDecoder(strings.NewReader(p.body))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&a); err != nil {
			t.Errorf("%s: %v", p.body, err)
		}
		if p.header.Get("Idempotency-Key") != a.ID || p.header.Get("Content-Type") != "application/json" {
			t.Errorf("headers: %v", p.header)
		}
		got = append(got, a)
	}
	if got[2].ID == got[1].ID || !strings.HasPrefix(got[2].ID, "al_") {
		t.Errorf("the reminder of the next day has the id %s, like the day before's", got[2].ID)
	}
	got[2].ID = ""
	want := []alarm{
		{"al_ce5ddde091a3fad6be8afbeb6f2999e7", "late_success", "op_1", "refund", "2026-11-30T10:00:00Z", "succeeded"},
		{"al_b1360812368d079121173718c3efae45", "review_overdue", "op_1", "refund", "2026-11-30T10:00:00Z", "unknown"},
		{"", "review_overdue", "op_1", "refund", "2026-12-01T10:00:00Z", "unknown"},
		{"al_321167d91eda341d8e47710d4cb83c4c", "clock_skew", "", "", "2026-11-30T10:00:00Z", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if len(posts) != 0 {
		t.Errorf("an alarm was told twice: %v", <-posts)
	}
}

// wantSigned verifies a signature by RFC 2104's own words, without crypto/hmac.
func wantSigned(t *testing.T, p post) {
	t.Helper()
	stamp, digest, ok := strings.Cut(p.header.Get("Onceward-Signature"), ",v1=")
	at, err := strconv.ParseInt(strings.TrimPrefix(stamp, "t="), 10, 64)
	if !ok || err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		t.Fatalf("Onceward-Signature: %s", p.header.Get("Onceward-Signature"))
	}
	inner, outer := make([]byte, 64), make([]byte, 64) // SHA-256's block
	copy(inner, webhookSecret)
	copy(outer, webhookSecret)
	for i := range 64 {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	first := sha256.Sum256(append(inner, []byte(stamp[len("t="):]+"."+p.body)...))
	second := sha256.Sum256(append(outer, first[:]...))
	if want := hex.EncodeToString(second[:]); digest != want {
		t.Errorf("v1=%s, want %s", digest, want)
	}
}

// A redirect leads nowhere, and an authority that nobody trusts is told nothing. Logs hold
// neither the URL nor the secret.
func TestAWebhookGoesNowhereElse(t *testing.T) {
	t.Parallel()
	elsewhere := make(chan post, 10)
	other := httptest.NewServer(receiver(elsewhere, taken))
	defer other.Close()
	posts := make(chan post, 10)
	redirects := httptest.NewServer(receiver(posts, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer redirects.Close()
	secure := httptest.NewUnstartedServer(receiver(elsewhere, taken))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	secure.StartTLS()
	defer secure.Close()
	for _, test := range []struct{ url, why string }{
		{redirects.URL + "/a-secret-path", "it answered 307"},
		{secure.URL + "/a-secret-path", "its certificate isn't trusted"},
	} {
		logged := make(logLines, 10)
		w := start(t, telemetry.WebhookOptions{URL: test.url, Log: slog.New(slog.NewTextHandler(logged, nil))})
		w.Alarm(lateSuccess)
		var line string
		select {
		case line = <-logged:
		case p := <-elsewhere:
			t.Errorf("%s led to somebody else, who got %s", test.why, p.body)
			continue
		}
		if !strings.Contains(line, test.why) || strings.Contains(line, "a-secret-path") || strings.Contains(line, string(webhookSecret)) {
			t.Errorf("logged %s, want %q and no secret", line, test.why)
		}
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(secure.Certificate())
	w := start(t, telemetry.WebhookOptions{URL: secure.URL, TLS: &tls.Config{RootCAs: trusted}})
	w.Alarm(ledger.Alarm{Kind: "key_reused", OperationID: "op_2", At: alarmAt})
	if p := <-elsewhere; !strings.Contains(p.body, "key_reused") {
		t.Errorf("it was told elsewhere: %s", p.body)
	}
}

// logLines takes a log's lines.
type logLines chan string

func (l logLines) Write(b []byte) (int, error) {
	l <- string(bytes.TrimSpace(b))
	return len(b), nil
}

func TestNewWebhookRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		o       telemetry.WebhookOptions
		refused bool
	}{
		{"https", telemetry.WebhookOptions{URL: "https://alarms.example.com/x?y=z", Secret: webhookSecret}, false},
		{"http on loopback", telemetry.WebhookOptions{URL: "http://127.0.0.1:9/x", Secret: webhookSecret}, false},
		{"http on loopback, IPv6", telemetry.WebhookOptions{URL: "http://[::1]:9/x", Secret: webhookSecret}, false},
		{"http", telemetry.WebhookOptions{URL: "http://alarms.example.com/x", Secret: webhookSecret}, true},
		{"http to a look-alike", telemetry.WebhookOptions{URL: "http://localhost.example.com/x", Secret: webhookSecret}, true},
		{"user", telemetry.WebhookOptions{URL: "https://user:password@alarms.example.com/x", Secret: webhookSecret}, true},
		{"no host", telemetry.WebhookOptions{URL: "https:///x", Secret: webhookSecret}, true},
		{"nothing", telemetry.WebhookOptions{Secret: webhookSecret}, true},
		{"file", telemetry.WebhookOptions{URL: "file:///etc/passwd", Secret: webhookSecret}, true},
		{"short secret", telemetry.WebhookOptions{URL: "https://alarms.example.com/x", Secret: webhookSecret[:15]}, true},
		{"unverified", telemetry.WebhookOptions{URL: "https://alarms.example.com/x", Secret: webhookSecret, TLS: &tls.Config{InsecureSkipVerify: true}}, true}, //nolint:gosec // it is refused
	} {
		_, err := telemetry.NewWebhook(test.o)
		if (err != nil) != test.refused {
			t.Errorf("%s: %v, want it refused: %v", test.name, err, test.refused)
		}
		if err != nil && (strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), string(webhookSecret[:15]))) {
			t.Errorf("%s: the error tells a secret: %v", test.name, err)
		}
	}
}
