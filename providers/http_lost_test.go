package providers

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

func wantUnmarked(t *testing.T, err error, code string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Mark != "" || e.Code != code {
		t.Errorf("error %v, want one without a mark and with the code %q", err, code)
	}
}

func wantNotSent(t *testing.T, err error, code string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Mark != NotSent || e.Code != code {
		t.Errorf("error %v, want one marked %q with the code %q", err, NotSent, code)
	}
	if err != nil && strings.Contains(err.Error(), "planted") {
		t.Errorf("the error shows the credential: %v", err)
	}
}

func TestNotSentWhereNoConnectionWasObtained(t *testing.T) {
	t.Parallel()
	gone := serveRaw(t, says())
	gone.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := serveRaw(t, says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	for _, tt := range []struct{ name, endpoint, code string }{
		{"refused", gone.url(), "unavailable"},
		{"a name with an empty label, which no resolver is asked for", "https://no..such.host.invalid", "host_not_found"},
		{"certificate not trusted", untrusted.URL, "certificate_refused"},
		{"TLS with a plain server", "https://" + plain.Addr().String(), "unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := post()
			r.MaySend = func() error { t.Error("MaySend was asked, and there is no connection"); return nil }
			_, err := newClient(t, tt.endpoint).Do(t.Context(), r)
			wantNotSent(t, err, tt.code)
		})
	}
}

func TestNotSentWhenTheDialTakesTooLong(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://api.example.com")
	ctx, cancel := context.WithCancel(t.Context())
	c.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := c.Do(ctx, post())
	wantNotSent(t, err, "unavailable")
}

// A handshake that hangs must not stay behind when the attempt is over.
func TestNotSentWhenTheHandshakeHangs(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			closed <- err
			return
		}
		defer conn.Close()
		conn.Read(make([]byte, 1)) // the handshake has begun
		cancel()
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err = io.Copy(io.Discard, conn)
		closed <- err
	}()
	_, err = newClient(t, "https://"+listener.Addr().String()).Do(ctx, post())
	wantNotSent(t, err, "unavailable")
	if err := <-closed; err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection stayed open: %v", err)
	}
}

func TestUnmarkedOnceAConnectionWasObtained(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		serve func(*net.TCPConn)
		code  string
	}{
		{"FIN", says(), "connection_lost"},
		{"RST", func(conn *net.TCPConn) { conn.SetLinger(0) }, "connection_lost"},
		{"half a status line", says("HTTP/1.1 20"), "connection_lost"},
		{"no HTTP", says("220 mail.example.com ESMTP\r\n"), "connection_lost"},
		{"headers without end", says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"), "connection_lost"},
		{"too many headers", says("HTTP/1.1 200 OK\r\nX: ", strings.Repeat("x", 80<<10), "\r\n\r\n"), "connection_lost"},
		{"truncated", says("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"id\":"), "answer_cut"},
		{"truncated, in chunks", says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n"), "answer_cut"},
		{"RST within the body", func(conn *net.TCPConn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"id\":")
			conn.SetLinger(0)
		}, ""},
		{"too long", says("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", strings.Repeat(" ", maxReply+1)), "answer_too_long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serveRaw(t, tt.serve)
			reply, err := newClient(t, server.url()).Do(t.Context(), post())
			if tt.code == "" { // the reset may overtake the headers
				if e, ok := errors.AsType[*Error](err); ok && e.Mark == "" {
					tt.code = e.Code
				}
			}
			wantUnmarked(t, err, tt.code)
			if reply.Status != 0 || reply.Body != nil {
				t.Errorf("a reply beside the error: %d, %d bytes", reply.Status, len(reply.Body))
			}
			if n := server.seen(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// The deadline counts for headers and body, and for what is no body at all.
func TestTheDeadlineEndsEverything(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, begins string }{
		{"no answer", ""},
		{"headers that stop", "HTTP/1.1 200 OK\r\n"},
		{"a body that stops", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"id\":"},
		{"hints and then nothing", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			server := serveRaw(t, func(conn *net.TCPConn) {
				io.WriteString(conn, tt.begins)
				cancel(nil)
				io.Copy(io.Discard, conn)
			})
			_, err := newClient(t, server.url()).Do(ctx, post())
			wantUnmarked(t, err, "cancelled")
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	server := serveRaw(t, func(conn *net.TCPConn) { io.Copy(io.Discard, conn) })
	_, err := newClient(t, server.url()).Do(ctx, post())
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != "timeout" && e.Mark != NotSent {
		t.Errorf("error %v, want a timeout", err)
	}
}

// What was seen of the connection decides, never what the error is called.
func TestTheErrorsNameProvesNothing(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{
		syscall.ECONNREFUSED, &net.DNSError{Err: "no such host", IsNotFound: true},
		&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, context.DeadlineExceeded,
	} {
		c := newClient(t, "http://127.0.0.1:1")
		broken := &brokenConn{cause: cause}
		c.dial = func(context.Context, string, string) (net.Conn, error) { return broken, nil }
		_, err := c.Do(t.Context(), post())
		if e, ok := errors.AsType[*Error](err); !ok || e.Mark != "" {
			t.Errorf("%v after the request was written: %v, want no mark", cause, err)
		}
		c.dial = func(context.Context, string, string) (net.Conn, error) { return nil, cause }
		if _, err := c.Do(t.Context(), post()); MarkOf(err) != NotSent {
			t.Errorf("%v while dialling: %v, want not sent", cause, err)
		}
	}
}

// A server that acts, resets and goes down makes a client that dials again see "refused".
func TestServerActsResetsAndGoesDown(t *testing.T) {
	t.Parallel()
	var server *rawServer
	ready := make(chan struct{})
	server = serveRaw(t, func(conn *net.TCPConn) {
		<-ready
		server.Close()
		conn.SetLinger(0)
	})
	close(ready)
	c := newClient(t, server.url())
	_, err := c.Do(t.Context(), post())
	wantUnmarked(t, err, "connection_lost")
	if n := server.seen(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	_, err = c.Do(t.Context(), post())
	wantNotSent(t, err, "unavailable")
}

// A brokenConn takes what is written and fails to be read, or fails to be written.
type brokenConn struct {
	net.Conn
	cause   error
	writing bool
}

func (c *brokenConn) Write(b []byte) (int, error) {
	if c.writing {
		return 0, c.cause
	}
	return len(b), nil
}
func (c *brokenConn) Read([]byte) (int, error)         { return 0, c.cause }
func (c *brokenConn) Close() error                     { return nil }
func (c *brokenConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *brokenConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *brokenConn) SetDeadline(time.Time) error      { return nil }
func (c *brokenConn) SetReadDeadline(time.Time) error  { return nil }
func (c *brokenConn) SetWriteDeadline(time.Time) error { return nil }
