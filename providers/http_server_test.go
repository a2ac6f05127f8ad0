package providers

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// rawServer lets serve have each connection to itself, after the request was read.
// requests counts those that arrived whole.
type rawServer struct {
	net.Listener
	mu       sync.Mutex
	requests int
}

func serveRaw(t *testing.T, serve func(*net.TCPConn)) *rawServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{Listener: listener}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return
				}
				s.mu.Lock()
				s.requests++
				s.mu.Unlock()
				serve(conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return s
}

func (s *rawServer) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *rawServer) url() string { return "http://" + s.Addr().String() }

// says answers with a text.
func says(parts ...string) func(*net.TCPConn) {
	return func(conn *net.TCPConn) { io.WriteString(conn, strings.Join(parts, "")) }
}

func newClient(t *testing.T, base string) *HTTPClient {
	t.Helper()
	c, err := NewHTTPClient(base)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// post is a request that acts, as providers make it.
func post() HTTPRequest {
	return HTTPRequest{
		Method: http.MethodPost, Path: "/v1/refunds", Body: []byte("amount=100"),
		Header: http.Header{"Idempotency-Key": {"0123456789abcdef"}, "Authorization": {"Bearer planted"}},
	}
}
