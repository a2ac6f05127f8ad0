package transport

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOnlyItsTenantPostsIntoAStream(t *testing.T) {
	t.Parallel()
	a := map[string]string{"Authorization": "Bearer alpha"}
	b := map[string]string{"Authorization": "Bearer beta"}
	ts := newTestServer(t)
	url := listen(t, NewSSEHandler(ts.MCPServer, ts.front(FrontOptions{Tokens: testTokens(t, "acme alpha", "globex beta")})))
	s := openStream(t, url, a)
	for _, text := range []string{callText(1, "who", false), callText(1, "who", true), cancelText("1"), `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		if got := do(t, url, request{path: s.endpoint, body: text, header: b}); got.status != http.StatusNotFound {
			t.Errorf("B posts into A's stream: status %d, want 404", got.status)
		}
	}
	if got := do(t, url, request{path: s.endpoint + "0", body: callText(1, "who", false), header: a}); got.status != http.StatusNotFound {
		t.Errorf("A posts into a stream that isn't: status %d, want 404", got.status)
	}
	if got := do(t, url, request{path: s.endpoint, body: callText(2, "who", false), header: a}); got.status != http.StatusAccepted {
		t.Fatalf("A posts into its stream: status %d", got.status)
	}
	// The first thing on the stream is A's answer: B's calls left nothing there.
	if got := s.next(t); got.say() != "tenant=acme" || got.ID != 2.0 {
		t.Errorf("A reads %+v", got)
	}
	if strings.Contains(s.endpoint, "acme") || strings.Contains(s.endpoint, "alpha") {
		t.Errorf("the endpoint tells who it is for: %s", s.endpoint)
	}
}

func TestWithoutTheFrontAnyonePostsIntoAStream(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	url := listen(t, bareSSE(ts))
	s := openStream(t, url, nil)
	do(t, url, request{path: s.endpoint, body: callText(7, "who", false), header: map[string]string{"Authorization": "Bearer beta"}})
	if got := s.next(t); got.ID != 7.0 {
		t.Errorf("mcp-go now keeps others out: %+v", got)
	}
}

func TestSSECancelStaysInItsStream(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	url := listen(t, NewSSEHandler(ts.MCPServer, ts.front(FrontOptions{})))
	a, b := openStream(t, url, nil), openStream(t, url, nil)
	// Both calls have id 1.
	do(t, url, request{path: a.endpoint, body: strings.Replace(callText(1, "wait", false), `"n":"1"`, `"n":"a"`, 1)})
	do(t, url, request{path: b.endpoint, body: strings.Replace(callText(1, "wait", false), `"n":"1"`, `"n":"b"`, 1)})
	<-ts.started
	<-ts.started
	do(t, url, request{path: b.endpoint, body: cancelText("1")})
	if got := <-ts.cancelled; got != "b" {
		t.Errorf("B cancelled the call of %s", got)
	}
	close(ts.release)
	if got := a.next(t).say(); got != "alive" {
		t.Errorf("A's call says %q after B's cancellation", got)
	}
	if got := b.next(t).say(); got != "dead" {
		t.Errorf("B's call says %q after its cancellation", got)
	}
}

// A slowReader is a client whose connection takes an event only when it is let.
type slowReader struct {
	header   http.Header
	endpoint chan string
	writing  chan struct{}
	let      chan struct{}
}

func (w *slowReader) Header() http.Header { return w.header }
func (w *slowReader) WriteHeader(int)     {}
func (w *slowReader) Flush()              {}
func (w *slowReader) Write(p []byte) (int, error) {
	if _, endpoint, ok := strings.Cut(string(p), "event: endpoint\ndata: "); ok {
		w.endpoint <- strings.TrimSpace(endpoint)
		return len(p), nil
	}
	w.writing <- struct{}{}
	<-w.let
	return len(p), nil
}

// The tool has returned, its answer isn't written yet: the server may not end.
func TestAnswerOnItsWayIsInFlight(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	h := NewSSEHandler(ts.MCPServer, ts.front(FrontOptions{}))
	w := &slowReader{header: http.Header{}, endpoint: make(chan string, 1), writing: make(chan struct{}), let: make(chan struct{})}
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	local := func(method, target, body string) *http.Request {
		r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	go func() {
		defer close(ended)
		h.ServeHTTP(w, local(http.MethodGet, "/sse", ""))
	}()
	endpoint := <-w.endpoint
	post := httptest.NewRecorder()
	h.ServeHTTP(post, local(http.MethodPost, endpoint, callText(1, "who", false)))
	if post.Code != http.StatusAccepted {
		t.Fatalf("status %d", post.Code)
	}
	<-w.writing
	now, cancel := context.WithCancel(ctx)
	cancel()
	if err := ts.calls.wait(now); !errors.Is(err, ErrDrain) {
		t.Errorf("the answer isn't counted as in flight: %v", err)
	}
	close(w.let)
	if err := ts.calls.wait(ctx); err != nil {
		t.Error(err)
	}
	leave()
	<-ended
}
