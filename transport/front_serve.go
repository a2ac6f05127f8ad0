package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ListenAndServe serves h on addr until ctx ends, then finishes what calls
// counts, for at most drain. See [serveListener]. The log says where it listens.
func ListenAndServe(ctx context.Context, addr string, h http.Handler, calls *InFlight, drain time.Duration, log *slog.Logger) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --addr", addr, err)
	}
	log.Info("listening", "address", ln.Addr().String())
	return serveListener(ctx, ln, h, calls, drain)
}

// serveListener serves h until ctx ends. Then nothing new is let in, what calls
// counts finishes, and only after that the streams end, because answers go out
// on them. It returns nil, or [ErrDrain] when drain wasn't enough. There is no
// limit on the time of a response: a stream has none.
func serveListener(ctx context.Context, ln net.Listener, h http.Handler, calls *InFlight, drain time.Duration) error {
	// A signal must not reach a handler that is between claim and outcome.
	base, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	defer func() { _ = s.Close() }()
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(ln) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}

	calls.close()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(limit) }()
	if err := calls.wait(limit); err != nil {
		return err
	}
	endStreams()
	if err := <-stopped; err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("end the HTTP server: %w", err)
	}
	return nil
}

// ListenAndServePage serves the front's console alone, until ctx ends. listening is told the
// address.
func ListenAndServePage(ctx context.Context, addr string, o FrontOptions, listening func(address string)) error {
	o = o.withDefaults()
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --addr", addr, err)
	}
	listening(ln.Addr().String())
	h := newMessageFront(o, func(w http.ResponseWriter, r *http.Request, _ message) { http.NotFound(w, r) })
	return serveListener(ctx, ln, h, o.Calls, time.Second)
}
