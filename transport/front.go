package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/onceward/onceward/tools"
)

// FrontOptions says who may reach a server over HTTP. The zero value lets in
// programs on this machine, without tokens, and no web page.
type FrontOptions struct {
	Tokens         *Tokens       // nil: no authentication
	AllowedHosts   []string      // besides loopback names: "name" with any port, or "name:port"
	AllowedOrigins []string      // scheme://host[:port]
	bodyLimit      int64         // bytes; 0 means 1 MiB
	bodyTime       time.Duration // to send a body in; 0 means 30 s
	Calls          *InFlight
	Console        http.Handler // serves /console, for people; it has a login of its own. nil: there is none
	Metrics        http.Handler // serves /metrics: with any known token, or from loopback. nil: there is none
	Log            *slog.Logger
}

func (o FrontOptions) withDefaults() FrontOptions {
	if o.bodyLimit <= 0 {
		o.bodyLimit = maxMessage
	}
	if o.bodyTime <= 0 {
		o.bodyTime = 30 * time.Second
	}
	if o.Calls == nil {
		o.Calls = new(InFlight)
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// isStrayCancel reports whether m is a cancellation outside a session. mcp-go
// keeps all calls outside sessions under one key, the request id, so that such
// a cancellation ends whatever call of any client has that id. Protocol revision
// 2026-07-28 has no sessions, whatever the header says, and on HTTP no
// cancellation but closing the stream.
func isStrayCancel(r *http.Request, m message) bool {
	return m.method == methodCancelled && m.id == nil &&
		(isModern(r, m) || r.Header.Get(headerSession) == "")
}

// isModern decides as mcp-go does: either source makes a request modern.
func isModern(r *http.Request, m message) bool {
	return m.modern || mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
}

// A front puts before next everything that mcp-go's HTTP transports leave out, in order:
// the host and origin checks, authentication, the content type and the limit of the
// body.
type front struct {
	o       FrontOptions
	hosts   hostList
	origins originList
	next    func(w http.ResponseWriter, r *http.Request, m message)
}

func newMessageFront(o FrontOptions, next func(http.ResponseWriter, *http.Request, message)) *front {
	return &front{o: o, hosts: newHostList(o.AllowedHosts), origins: newOriginList(o.AllowedOrigins), next: next}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				logPanic(f.o.Log, p)
			}
			// Cuts the connection; net/http logs the text of any other panic.
			panic(http.ErrAbortHandler)
		}
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")

	if !f.hosts.allow(r.Host) {
		f.refuse(w, r, http.StatusForbidden, "this server doesn't answer under this host name; if it should, start it with --allowed-hosts")
		return
	}
	if f.o.Console != nil && (r.URL.Path == "/console" || strings.HasPrefix(r.URL.Path, "/console/")) {
		f.o.Console.ServeHTTP(w, r) // its own pages post to it, which it checks
		return
	}
	if !f.origins.allow(r.Header.Values("Origin")) {
		f.refuse(w, r, http.StatusForbidden, "requests from web pages of this origin are refused; if they should be served, start the server with --allowed-origins")
		return
	}
	if r.Header.Get("Origin") != "" && allowOrigin(w, r) {
		return
	}
	if r.URL.Path == "/healthz" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
		return
	}
	caller, ok := f.caller(r)
	if f.o.Metrics != nil && r.URL.Path == "/metrics" && (ok || fromLoopback(r)) {
		f.o.Metrics.ServeHTTP(w, r)
		return
	}
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		f.refuse(w, r, http.StatusUnauthorized, "a known bearer token is needed: send Authorization: Bearer TOKEN")
		return
	}
	r = r.WithContext(tools.WithCaller(r.Context(), caller))
	if r.Method != http.MethodPost {
		f.next(w, r, message{})
		return
	}
	f.post(w, r)
}

// post reads the message of a POST and hands both on.
func (f *front) post(w http.ResponseWriter, r *http.Request) {
	if !f.o.Calls.enter() {
		w.Header().Set("Connection", "close")
		f.refuse(w, r, http.StatusServiceUnavailable, "the server is shutting down; nothing was done")
		return
	}
	streaming := false
	defer func() {
		if !streaming {
			f.o.Calls.leave()
		}
	}()
	m, ok := f.readMessage(w, r)
	if !ok {
		return
	}
	if m.method == string(mcp.MethodSubscriptionsListen) {
		// Its answer ends with the connection: nothing to wait for.
		streaming = true
		f.o.Calls.leave()
	}
	f.next(w, r, m)
}

// caller returns whose request r is, and false when tokens are needed and r has
// no known one.
func (f *front) caller(r *http.Request) (tools.Caller, bool) {
	if f.o.Tokens == nil {
		return tools.Caller{}, true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return tools.Caller{}, false
	}
	return f.o.Tokens.tenant(strings.TrimSpace(token))
}

// fromLoopback reports whether a request comes from this machine.
func fromLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// refuse answers a request that goes no further. What it says is about the
// configuration: nothing of the request is repeated.
func (f *front) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	f.o.Log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelDebug, "request refused",
		slog.Int("status", status), slog.String("reason", text))
	http.Error(w, text, status)
}
