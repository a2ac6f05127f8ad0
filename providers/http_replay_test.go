package providers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// hangsUp answers GETs, and closes the connection of a POST when it has read it.
func hangsUp(t *testing.T) (url string, posts *atomic.Int32) {
	t.Helper()
	posts = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		posts.Add(1)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}))
	t.Cleanup(server.Close)
	return server.URL, posts
}

// net/http sends a POST with an Idempotency-Key again when a kept connection breaks, and
// tells nobody. One attempt would be two requests.
func TestNetHTTPReplaysAndThisClientDoesNot(t *testing.T) {
	t.Parallel()
	url, posts := hangsUp(t)
	careless := &http.Client{Transport: &http.Transport{}}
	warm, err := careless.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	warm.Body.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("amount=100"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", "0123456789abcdef")
	if answer, err := careless.Do(request); err == nil {
		answer.Body.Close()
		t.Fatal("the careless client got an answer")
	}
	if n := posts.Load(); n != 2 {
		t.Errorf("the careless client sent %d POSTs; this test needs one that sends 2", n)
	}

	url, posts = hangsUp(t)
	c := newClient(t, url)
	for range 3 {
		if reply, err := c.Do(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/"}); err != nil || reply.Status != http.StatusOK {
			t.Fatalf("GET: %d, %v", reply.Status, err)
		}
	}
	_, err = c.Do(t.Context(), post())
	wantUnmarked(t, err, "connection_lost")
	if n := posts.Load(); n != 1 {
		t.Errorf("%d POSTs, want 1", n)
	}
}

func TestRedirectsAreAnswers(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		var seen atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.Add(1)
			http.Redirect(w, r, "/elsewhere", status)
		}))
		t.Cleanup(server.Close)
		reply, err := newClient(t, server.URL).Do(t.Context(), post())
		if err != nil || reply.Status != status {
			t.Errorf("%d: got %d, %v", status, reply.Status, err)
		}
		if n := seen.Load(); n != 1 {
			t.Errorf("%d: %d requests, want 1", status, n)
		}
	}
}

// TestNoProxy isn't parallel: the environment belongs to the process.
func TestNoProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://127.0.0.1:9")
	}
	for endpoint, want := range map[string]string{
		"https://api.example.com": "api.example.com:443", "http://localhost:81": "localhost:81",
	} {
		c := newClient(t, endpoint)
		var dialled string
		c.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = address
			return nil, errors.New("no network here")
		}
		if _, err := c.Do(t.Context(), post()); MarkOf(err) != NotSent {
			t.Errorf("%s: %v, want not sent", endpoint, err)
		}
		if dialled != want {
			t.Errorf("%s: dialled %q, want %q", endpoint, dialled, want)
		}
	}
}
