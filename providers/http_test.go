package providers

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func dialBroken(conn net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return conn, nil }
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for endpoint, good := range map[string]bool{
		"https://api.example.com":         true,
		"https://api.example.com:8443/v1": true,
		"http://127.0.0.1:8931":           true,
		"http://[::1]:8931":               true,
		"http://localhost":                true,
		"http://api.example.com":          false,
		"http://10.0.0.7":                 false,
		"http://localhost.example.com":    false,
		"ftp://api.example.com":           false,
		"api.example.com":                 false,
		"https://":                        false,
		"":                                false,
		"https://user:planted@a.example":  false,
		"https://a.example/?key=planted":  false,
		"https://a.example/#planted":      false,
		"https://a.example/%zz-planted":   false,
	} {
		c, err := NewHTTPClient(endpoint)
		if (err == nil) != good {
			t.Errorf("%q: error %v, want good: %v", endpoint, err, good)
		}
		if err != nil && strings.Contains(err.Error(), "planted") {
			t.Errorf("%q: the error quotes it: %v", endpoint, err)
		}
		if err == nil && c.Endpoint() != endpoint {
			t.Errorf("Endpoint() = %q, want %q", c.Endpoint(), endpoint)
		}
	}
}

// The request arrives as it was given: nothing is added that could differ next time.
func TestTheRequestArrivesAsItIs(t *testing.T) {
	t.Parallel()
	type request struct {
		Method, URI, Body string
		Header            http.Header
	}
	arrived := make(chan request, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		arrived <- request{r.Method, r.RequestURI, string(body), r.Header}
		w.Header().Set("Date", "Mon, 30 Nov 2026 10:00:00 GMT")
		w.Write([]byte("answer"))
	}))
	t.Cleanup(server.Close)
	c := newClient(t, server.URL+"/base")
	r := post()
	r.Query = url.Values{"payment": {"a b&c"}}
	for range 2 {
		reply, err := c.Do(t.Context(), r)
		if err != nil || string(reply.Body) != "answer" || reply.Status != http.StatusOK {
			t.Fatalf("%d %q, %v", reply.Status, reply.Body, err)
		}
		if want := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC); !reply.Date().Equal(want) {
			t.Errorf("Date() = %v, want %v", reply.Date(), want)
		}
	}
	want := request{"POST", "/base/v1/refunds?payment=a+b%26c", "amount=100", http.Header{
		"Idempotency-Key": {"0123456789abcdef"}, "Authorization": {"Bearer planted"},
		"User-Agent": {"onceward"}, "Content-Length": {"10"}, "Connection": {"close"},
	}}
	if diff := cmp.Diff([]request{want, want}, []request{<-arrived, <-arrived}); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestTheLongestAnswer(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", maxReply)
	server := serveRaw(t, says("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", body))
	reply, err := newClient(t, server.url()).Do(t.Context(), post())
	if err != nil || len(reply.Body) != maxReply {
		t.Errorf("%d bytes, %v; want %d", len(reply.Body), err, maxReply)
	}
}

// Another protocol has no end: it is no answer, and isn't waited for.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server := serveRaw(t, func(conn *net.TCPConn) {
		conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nmore"))
		conn.Read(make([]byte, 1))
		close(ended)
	})
	reply, err := newClient(t, server.url()).Do(t.Context(), post())
	if err != nil || reply.Status != http.StatusSwitchingProtocols || reply.Body != nil {
		t.Errorf("%d %q, %v; want 101 alone", reply.Status, reply.Body, err)
	}
	<-ended
}

func TestReplyIsJSON(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"application/json":                       true,
		"application/json; charset=utf-8":        true,
		"Application/JSON":                       true,
		"application/problem+json":               true,
		"text/html":                              false,
		"text/plain; charset=utf-8":              false,
		"application/json-seq":                   false,
		"":                                       false,
		"application/json; charset=\"unfinished": false,
	} {
		if got := (HTTPReply{Header: http.Header{"Content-Type": {kind}}}).IsJSON(); got != want {
			t.Errorf("%q: %v, want %v", kind, got, want)
		}
	}
}

func TestReplyWithoutADate(t *testing.T) {
	t.Parallel()
	for _, date := range []string{"", "yesterday", "2026-11-30T10:00:00Z"} {
		if got := (HTTPReply{Header: http.Header{"Date": {date}}}).Date(); !got.IsZero() {
			t.Errorf("%q: %v, want no time", date, got)
		}
	}
}
