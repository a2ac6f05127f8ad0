package providers

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
)

// MaySend is asked once, when the connection stands, and nothing else happens between its
// answer and the first byte.
func TestMaySendIsAskedAfterTheHandshake(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var events []string
	happens := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, what)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		happens("request")
		_, _ = io.Copy(io.Discard, r.Body) // what is left unread would reset the connection
	}))
	t.Cleanup(server.Close)
	trusting := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trusting.VerifyConnection = func(tls.ConnectionState) error { happens("handshake"); return nil }
	c := newClient(t, server.URL).WithTLS(trusting)
	r := post()
	r.MaySend = func() error { happens("may send"); return nil }
	r.Body = make([]byte, 64<<10) // several writes
	if reply, err := c.Do(t.Context(), r); err != nil || reply.Status != http.StatusOK {
		t.Fatalf("%d, %v", reply.Status, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"handshake", "may send", "request"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Too late: not a byte of the request arrives, in clear or under TLS, and a second look
// at the clock doesn't matter.
func TestTooLateSendsNothing(t *testing.T) {
	t.Parallel()
	arrived := make(chan int, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		b, _ := io.ReadAll(conn)
		conn.Close()
		arrived <- len(b)
	}()
	secured := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.StartTLS()
	t.Cleanup(secured.Close)
	clients := []*HTTPClient{
		newClient(t, "http://"+listener.Addr().String()),
		newClient(t, secured.URL).WithTLS(secured.Client().Transport.(*http.Transport).TLSClientConfig),
	}
	for _, c := range clients {
		r := post()
		answers := []error{ledger.ErrTooLate, nil, nil}
		r.MaySend = func() error {
			first := answers[0]
			answers = slices.Delete(answers, 0, 1)
			return first
		}
		reply, err := c.Do(t.Context(), r)
		if !errors.Is(err, ledger.ErrTooLate) {
			t.Errorf("%s: %d, %v; want ErrTooLate", c.Endpoint(), reply.Status, err)
		}
		if len(answers) != 2 {
			t.Errorf("%s: MaySend was asked %d times, want once", c.Endpoint(), 3-len(answers))
		}
	}
	if n := <-arrived; n != 0 {
		t.Errorf("%d bytes arrived", n)
	}
}

// A write that fails may have sent something.
func TestAFailedWriteIsUnmarked(t *testing.T) {
	t.Parallel()
	c := newClient(t, "http://127.0.0.1:1")
	c.dial = dialBroken(&brokenConn{cause: errors.New("broken pipe"), writing: true})
	_, err := c.Do(t.Context(), post())
	wantUnmarked(t, err, "connection_lost")
}
