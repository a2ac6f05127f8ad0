package providers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// maxReply bounds a provider's answer, in bytes. A longer one is cut, and a cut answer
// proves nothing.
const maxReply = 4 << 20

// An HTTPClient speaks to one provider. One Do is one request on the wire, whatever
// happens: every request has a connection of its own, so net/http has nothing to replay
// (it re-sends a POST with an Idempotency-Key when a kept connection breaks); redirects
// are answers; no proxy is taken from the environment.
type HTTPClient struct {
	base *url.URL
	tls  *tls.Config
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// NewHTTPClient returns a client for a provider at base, an https URL; http is allowed on
// loopback only, for tests and local gateways.
func NewHTTPClient(base string) (*HTTPClient, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("an endpoint is a URL like https://api.example.com, without user, query or fragment")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, fmt.Errorf("an endpoint off this machine begins with https://, not %s://: what is sent there is worth money", u.Scheme)
	}
	return &HTTPClient{base: u, dial: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// WithTLS returns a client that trusts what config says. It is for tests and private
// certificate authorities.
func (c *HTTPClient) WithTLS(config *tls.Config) *HTTPClient {
	with := *c
	with.tls = config.Clone()
	return &with
}

// Endpoint is where the client speaks to, for a provider's scope.
func (c *HTTPClient) Endpoint() string { return c.base.String() }

// An HTTPRequest is one request.
type HTTPRequest struct {
	Method string
	Path   string // below the endpoint, escaped
	Query  url.Values
	Header http.Header
	Body   []byte
	// MaySend is asked when the connection stands, just before the first byte; nil for
	// look-ups, which change nothing.
	MaySend func() error
}

// An HTTPReply is a whole answer.
type HTTPReply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Date is the provider's clock, zero if it didn't tell.
func (r HTTPReply) Date() time.Time {
	t, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// IsJSON reports whether the answer says that it is JSON: what comes from a gateway or a
// captive portal says something else.
func (r HTTPReply) IsJSON() bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || kind == "application/problem+json")
}

// Do makes one request and reads the whole answer, until ctx is done. Its error is an
// *Error marked NotSent if no connection was ever obtained, whatever the error says;
// MaySend's own error if that refused; and else unmarked: it may have happened.
func (c *HTTPClient) Do(ctx context.Context, r HTTPRequest) (HTTPReply, error) {
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(traced, r.Method, c.url(r), bytes.NewReader(r.Body))
	if err != nil {
		return HTTPReply{}, &Error{Mark: NotSent, Code: "bad_request_built", Err: err}
	}
	request.GetBody = nil // nothing may send it twice
	request.Header.Set("User-Agent", "onceward")
	for name, values := range r.Header {
		request.Header[name] = values
	}
	line := &gate{maySend: r.MaySend}
	transport := c.transport(ctx, line)
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err == nil {
		defer func() { _ = answer.Body.Close() }() // what counts was read by then
	}
	refusal := line.refusal()
	switch {
	case refusal != nil:
		return HTTPReply{}, refusal
	case err != nil && !connected.Load():
		return HTTPReply{}, &Error{Mark: NotSent, Code: notSentCode(err), Err: err}
	case err != nil:
		return HTTPReply{}, &Error{Code: lostCode(ctx, err), Err: err}
	}
	return read(ctx, answer)
}

// read takes the whole answer, or none of it.
func read(ctx context.Context, answer *http.Response) (HTTPReply, error) {
	reply := HTTPReply{Status: answer.StatusCode, Header: answer.Header}
	tellClock(ctx, reply.Date())
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return reply, nil // what follows is no body, and has no end
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxReply+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return HTTPReply{}, &Error{Code: lostCode(ctx, err), Err: err}
	case err != nil:
		return HTTPReply{}, &Error{Code: "answer_cut", Err: err}
	case len(body) > maxReply:
		return HTTPReply{}, &Error{Code: "answer_too_long"}
	}
	reply.Body = body
	return reply, nil
}

// lostCode names why nothing is known. A deadline may show itself as any error.
func lostCode(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return unmarkedCode(ctx.Err())
	}
	return unmarkedCode(err)
}

func (c *HTTPClient) url(r HTTPRequest) string {
	u := *c.base.JoinPath(r.Path)
	u.RawQuery = r.Query.Encode()
	return u.String()
}

// transport makes one connection for one request. It dials under ctx itself: net/http
// dials under a context that never ends, and a handshake that hangs would stay for ever.
// HTTP/1.1 only: a connection of HTTP/2 would be shared, and re-sent on, by itself.
func (c *HTTPClient) transport(ctx context.Context, g *gate) *http.Transport {
	return &http.Transport{
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := c.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &gatedConn{Conn: conn, gate: g}, nil
		},
		DialTLSContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := c.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			secured := tls.Client(conn, c.tlsConfig())
			if err := secured.HandshakeContext(ctx); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return &gatedConn{Conn: secured, gate: g}, nil
		},
	}
}

func (c *HTTPClient) tlsConfig() *tls.Config {
	config := c.tls.Clone() // nil stays nil
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.ServerName == "" {
		config.ServerName = c.base.Hostname()
	}
	config.NextProtos = []string{"http/1.1"}
	return config
}

// A gate lets a request out, or not, when its first byte is about to leave. It is asked
// once: a second answer would be about another moment.
type gate struct {
	maySend func() error
	mu      sync.Mutex
	asked   bool
	err     error
}

func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked && g.maySend != nil {
		g.err = g.maySend()
	}
	g.asked = true
	return g.err
}

func (g *gate) refusal() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// A gatedConn carries the request; with TLS, it is inside, and the handshake is over.
type gatedConn struct {
	net.Conn
	gate *gate
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if err := c.gate.open(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// notSentCode names why no connection was obtained. The code is for people; what
// counts is that there was none.
func notSentCode(err error) string {
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return "host_not_found"
	case errors.As(err, &untrusted):
		return "certificate_refused"
	default:
		return "unavailable"
	}
}
