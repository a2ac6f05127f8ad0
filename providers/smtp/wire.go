package smtp

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// A wire is one connection to a server, for one attempt or look-up.
type wire struct {
	net.Conn
	out  atomic.Int64 // bytes that the kernel took, encrypted ones where the connection is
	stop func() bool
}

// A dialer makes connections; tests have their own.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func tcp(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: 30 * time.Second}).DialContext(ctx, network, address)
}

// connect dials. Ending ctx closes the connection under whatever waits on it.
func (d dialer) connect(ctx context.Context, address string) (*wire, error) {
	conn, err := d(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn}
	w.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return w, nil
}

// Write counts what left this process.
func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	w.out.Add(int64(n))
	return n, err
}

// Close closes the socket and says nothing more to the server.
func (w *wire) Close() error {
	w.stop()
	return w.Conn.Close()
}

// A tail passes on what it reads and remembers the last byte: a reply's line that a lost
// connection cut off doesn't end like one.
type tail struct {
	io.Reader
	last byte
}

func (t *tail) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if n > 0 {
		t.last = b[n-1]
	}
	return n, err
}

// tlsFor is the configuration for a host, on top of what a test trusts.
func tlsFor(host string, trust *tls.Config) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if trust != nil {
		c = trust.Clone()
	}
	c.ServerName = host
	return c
}
