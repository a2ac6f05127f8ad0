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

// Do makes one request and reads the whole answer. Its error is an *Error marked NotSent
// if no connection was ever obtained, whatever the error says; ledger.ErrTooLate if
// MaySend refused; and else unmarked: it may have happened.
func (c *HTTPClient) Do(ctx context.Context, r HTTPRequest) (HTTPReply, error) {
	var connected, tooLate atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(ctx, r.Method, c.url(r), bytes.NewReader(r.Body))
	if err != nil {
		return HTTPReply{}, &Error{Mark: NotSent, Code: "bad_request_built", Err: err}
	}
	request.GetBody = nil // nothing may send it twice
	for name, values := range r.Header {
		request.Header[name] = values
	}
	transport := c.transport(func() error {
		if r.MaySend == nil {
			return nil
		}
		err := r.MaySend()
		tooLate.Store(err != nil)
		return err
	})
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	switch {
	case err == nil:
	case tooLate.Load():
		return HTTPReply{}, r.MaySend()
	case !connected.Load():
		return HTTPReply{}, &Error{Mark: NotSent, Code: notSentCode(err), Err: err}
	default:
		return HTTPReply{}, &Error{Code: unmarkedCode(err), Err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxReply+1))
	if err != nil || len(body) > maxReply {
		return HTTPReply{}, &Error{Code: "answer_cut", Err: err}
	}
	return HTTPReply{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

func (c *HTTPClient) url(r HTTPRequest) string {
	u := *c.base.JoinPath(r.Path)
	u.RawQuery = r.Query.Encode()
	return u.String()
}

// transport makes one connection for one request, which asks mayWrite before its first
// byte. HTTP/1.1 only: a connection of HTTP/2 would be shared, and re-sent on, by itself.
func (c *HTTPClient) transport(mayWrite func() error) *http.Transport {
	gate := func(conn net.Conn) net.Conn { return &gatedConn{Conn: conn, mayWrite: mayWrite} }
	return &http.Transport{
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := c.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return gate(conn), nil
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := c.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			secured := tls.Client(conn, c.tlsConfig())
			if err := secured.HandshakeContext(ctx); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return gate(secured), nil
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

// A gatedConn asks before it lets the first byte of the request out. It is used by one
// request, whose writes come one after the other.
type gatedConn struct {
	net.Conn
	mayWrite func() error
	open     bool
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if !c.open {
		if err := c.mayWrite(); err != nil {
			return 0, err
		}
		c.open = true
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
