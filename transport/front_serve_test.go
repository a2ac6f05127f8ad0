package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/onceward/onceward/tools"
)

// A watchedListener tells when the server no longer listens.
type watchedListener struct {
	net.Listener
	closed chan struct{}
	once   sync.Once
}

func (l *watchedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type served struct {
	url  string
	stop context.CancelFunc
	ln   *watchedListener
	done chan error
}

func serve(t *testing.T, ts *testServer, h http.Handler, drain time.Duration) *served {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{url: "http://" + ln.Addr().String(), ln: &watchedListener{Listener: ln, closed: make(chan struct{})}, done: make(chan error, 1)}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	go func() { s.done <- serveListener(ctx, s.ln, h, ts.calls, drain) }()
	return s
}

func TestEndOfHTTPServerFinishesCalls(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	s := serve(t, ts, NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{})), time.Minute)
	said := make(chan string, 1)
	go func() {
		said <- parseAnswer(t, do(t, s.url, request{path: "/mcp", body: callText(1, "wait", true)}.modern("tools/call", "wait")).body).say()
	}()
	<-ts.started
	// A stream of an older client never ends by itself.
	_, stream := send(t, s.url, request{method: "GET", path: "/mcp"})
	defer stream.Close()
	r, subscription := send(t, s.url, request{
		path: "/mcp",
		body: subscribe,
	}.modern(string(mcp.MethodSubscriptionsListen), ""))
	defer subscription.Close()
	if r.status != http.StatusOK {
		t.Fatalf("subscriptions/listen: status %d", r.status)
	}

	s.stop()
	<-s.ln.closed
	if ts.calls.enter() {
		t.Error("the server ends and still lets someone in")
	}
	close(ts.release)
	if got := <-said; got != "alive" {
		t.Errorf("the call in flight says %q", got)
	}
	if err := <-s.done; err != nil {
		t.Errorf("serveListener: %v", err)
	}
}

func TestEndOfSSEServerFinishesCalls(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	s := serve(t, ts, NewSSEHandler(ts.MCPServer, ts.front(FrontOptions{})), time.Minute)
	stream := openStream(t, s.url, nil)
	for id := 1; id <= 10; id++ {
		do(t, s.url, request{path: stream.endpoint, body: callText(id, "wait", false)})
		<-ts.started
	}
	s.stop()
	<-s.ln.closed
	close(ts.release)
	for range 10 {
		if got := stream.next(t).say(); got != "alive" {
			t.Errorf("a call in flight says %q", got)
		}
	}
	if err := <-s.done; err != nil {
		t.Errorf("serveListener: %v", err)
	}
	if _, open := <-stream.messages; open {
		t.Error("the stream outlives the server")
	}
}

func TestSSECallsOutliveTheirStream(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	s := serve(t, ts, NewSSEHandler(ts.MCPServer, ts.front(FrontOptions{})), time.Minute)
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	head := make([]byte, 200)
	n, _ := got.Body.Read(head)
	endpoint := string(head[len("event: endpoint\ndata: ") : n-len("\r\n\r\n")])
	do(t, s.url, request{path: endpoint, body: callText(1, "wait", false)})
	<-ts.started
	leave()
	s.stop()
	<-s.ln.closed
	select {
	case err := <-s.done:
		t.Errorf("the server ended with a call in flight: %v", err)
	default:
	}
	close(ts.release)
	if err := <-s.done; err != nil {
		t.Errorf("serveListener: %v", err)
	}
	if len(ts.cancelled) != 0 {
		t.Error("the call was cancelled by the end of its stream")
	}
}

func TestEndOfServerIsBounded(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	defer close(ts.release)
	s := serve(t, ts, NewSSEHandler(ts.MCPServer, ts.front(FrontOptions{})), 10*time.Millisecond)
	stream := openStream(t, s.url, nil)
	do(t, s.url, request{path: stream.endpoint, body: callText(1, "wait", false)})
	<-ts.started
	s.stop()
	if err := <-s.done; !errors.Is(err, ErrDrain) {
		t.Errorf("serveListener: %v, want ErrDrain", err)
	}
}

func TestNothingBeginsOnceTheServerEnds(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	o := ts.front(FrontOptions{})
	url := listen(t, NewHTTPHandler(ts.MCPServer, o))
	ts.calls.close()
	q := request{path: "/mcp", body: callText(1, "wait", true)}.modern("tools/call", "wait")
	if got := do(t, url, q); got.status != http.StatusServiceUnavailable {
		t.Errorf("a request after the end: status %d, want 503", got.status)
	}
	if len(ts.started) != 0 {
		t.Error("a call began")
	}
	// One that was let in just before is turned away where it would begin.
	turned := false
	handler := ts.calls.Wrap(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		turned = tools.TurnedAway(ctx)
		return nil, nil
	})
	if _, err := handler(t.Context(), mcp.CallToolRequest{}); err != nil || !turned {
		t.Errorf("turned away %v, error %v", turned, err)
	}
}

func TestListenAndServeSaysWhatToDo(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := ListenAndServe(t.Context(), ln.Addr().String(), http.NotFoundHandler(), new(InFlight), time.Second, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("two servers on one address")
	}
}

func TestInFlightWait(t *testing.T) {
	t.Parallel()
	f := new(InFlight)
	if err := f.wait(t.Context()); err != nil {
		t.Errorf("nobody is in: %v", err)
	}
	f.enter()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.wait(over); !errors.Is(err, ErrDrain) {
		t.Errorf("one is in and the time is over: %v", err)
	}
	f.leave()
	f.close()
	if f.enter() {
		t.Error("someone entered after close")
	}
}
