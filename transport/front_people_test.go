package transport

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPagesForPeople: the console has a login of its own, so it needs no token, and a foreign host
// doesn't reach it. Metrics are for this machine, or for whoever has a token.
func TestPagesForPeople(t *testing.T) {
	t.Parallel()
	tokens, err := parseTokens("tokens", strings.NewReader(fmt.Sprintf("one %x\n", sha256.Sum256([]byte("a token")))))
	if err != nil {
		t.Fatal(err)
	}
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	front := newMessageFront(FrontOptions{
		Tokens: tokens, Console: says("console"), Metrics: says("metrics"), Log: slog.New(slog.DiscardHandler),
	}.withDefaults(), func(w http.ResponseWriter, _ *http.Request, _ message) { _, _ = io.WriteString(w, "mcp") })
	const elsewhere, here = "192.0.2.7:4711", "127.0.0.1:4711"
	for _, tc := range []struct {
		path, from, host, token string
		status                  int
		body                    string
	}{
		{"/console", elsewhere, "localhost", "", 200, "console"},
		{"/console/operations", elsewhere, "localhost", "", 200, "console"},
		{"/consoles", elsewhere, "localhost", "", 401, ""},
		{"/console/", elsewhere, "evil.example", "", 403, ""},
		{"/metrics", here, "localhost", "", 200, "metrics"},
		{"/metrics", "[::1]:4711", "localhost", "", 200, "metrics"},
		{"/metrics", elsewhere, "localhost", "", 401, ""},
		{"/metrics", elsewhere, "localhost", "another token", 401, ""},
		{"/metrics", elsewhere, "localhost", "a token", 200, "metrics"},
		{"/metrics", here, "evil.example", "", 403, ""},
		{"/mcp", here, "localhost", "", 401, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+tc.host+tc.path, nil)
		r.RemoteAddr = tc.from
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		if w.Code != tc.status || tc.body != "" && w.Body.String() != tc.body {
			t.Errorf("%s of %s from %s with %q: %d %q, want %d %q", tc.path, tc.host, tc.from, tc.token, w.Code, w.Body, tc.status, tc.body)
		}
	}
}
