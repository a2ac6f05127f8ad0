package smtp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

func fails(err error) dialer {
	return func(context.Context, string, string) (net.Conn, error) { return nil, err }
}

// impatient is a context that ends as a deadline does, soon.
func impatient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 50*time.Millisecond)
}

var errBroken = errors.New("the line broke")

// A brittle connection breaks when so many bytes have passed in one direction; negative:
// never.
type brittle struct {
	net.Conn
	mu      sync.Mutex
	out, in int
}

func (b *brittle) pass(left *int, n int) (int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if *left < 0 {
		return n, false
	}
	if n <= *left {
		*left -= n
		return n, false
	}
	n = *left
	*left = 0
	return n, true
}

func (b *brittle) Write(p []byte) (int, error) {
	n, broken := b.pass(&b.out, len(p))
	written, err := b.Conn.Write(p[:n])
	if broken && err == nil {
		b.Conn.Close()
		err = errBroken
	}
	return written, err
}

func (b *brittle) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	n, broken := b.pass(&b.in, n)
	if broken {
		b.Conn.Close()
		return n, errBroken
	}
	return n, err
}
