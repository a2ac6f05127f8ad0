package transport

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each row says what the front answers and what mcp-go alone would: where the
// two are the same, the front isn't what protects.
func TestFrontRefuses(t *testing.T) {
	t.Parallel()
	who := callText(1, "who", false)
	long := who + strings.Repeat(" ", maxMessage+1-len(who))
	origin := func(o string) map[string]string { return map[string]string{"Origin": o} }
	modern := request{path: "/mcp", body: callText(1, "who", true)}.modern("tools/call", "who")
	with := func(q request, change func(*request)) request {
		q.header = maps.Clone(q.header)
		change(&q)
		return q
	}
	tests := []struct {
		name       string
		q          request
		sse        bool
		want, bare int
	}{
		{"a good call", modern, false, 200, 200},
		{"foreign origin", with(modern, func(q *request) { q.header["Origin"] = "https://evil.example" }), false, 403, 200},
		{"null origin", with(modern, func(q *request) { q.header["Origin"] = "null" }), false, 403, 200},
		{"empty origin", with(modern, func(q *request) { q.header["Origin"] = "" }), false, 403, 200},
		{"own name as origin", with(modern, func(q *request) { q.header["Origin"] = "http://127.0.0.1" }), false, 403, 200},
		{"allowed origin", with(modern, func(q *request) { q.header["Origin"] = "https://app.example.com" }), false, 200, 200},
		{"allowed origin, another port", with(modern, func(q *request) { q.header["Origin"] = "https://app.example.com:444" }), false, 403, 200},
		{"allowed origin, another scheme", with(modern, func(q *request) { q.header["Origin"] = "http://app.example.com" }), false, 403, 200},
		{"foreign origin, GET", request{method: "GET", path: "/mcp", header: origin("https://evil.example")}, false, 403, 200},
		{"foreign origin, preflight", request{method: "OPTIONS", path: "/mcp", header: origin("https://evil.example")}, false, 403, 404},
		{"foreign origin, health", request{method: "GET", path: "/healthz", header: origin("https://evil.example")}, false, 403, 200},
		{"rebound host", with(modern, func(q *request) { q.host = "evil.example:8931" }), false, 403, 200},
		{"rebound host that looks local", with(modern, func(q *request) { q.host = "127.0.0.1.evil.example" }), false, 403, 200},
		{"rebound host, health", request{method: "GET", path: "/healthz", host: "evil.example"}, false, 403, 200},
		{"allowed host, any port", with(modern, func(q *request) { q.host = "MCP.example.com:9" }), false, 200, 200},
		{"allowed host and port", with(modern, func(q *request) { q.host = "other.example.com:8443" }), false, 200, 200},
		{"allowed host, another port", with(modern, func(q *request) { q.host = "other.example.com:8444" }), false, 403, 200},
		{"allowed IPv6 address", with(modern, func(q *request) { q.host = "[2001:DB8::1]:8931" }), false, 200, 200},
		{"another IPv6 address", with(modern, func(q *request) { q.host = "[2001:db8::2]" }), false, 403, 200},
		{"localhost", with(modern, func(q *request) { q.host = "localhost:1" }), false, 200, 200},
		{"IPv6 loopback", with(modern, func(q *request) { q.host = "[::1]:1" }), false, 200, 200},
		{"body too long", with(modern, func(q *request) { q.body += strings.Repeat(" ", maxMessage) }), false, 413, 200},
		{"body too long, chunked", with(modern, func(q *request) { q.body += strings.Repeat(" ", maxMessage); q.chunked = true }), false, 413, 200},
		{"body as long as may be", with(modern, func(q *request) { q.body += strings.Repeat(" ", maxMessage-len(q.body)); q.chunked = true }), false, 200, 200},
		{"text", with(modern, func(q *request) { q.header["Content-Type"] = "text/plain" }), false, 415, 400},
		{"JSON with a charset", with(modern, func(q *request) { q.header["Content-Type"] = "application/json; charset=utf-8" }), false, 200, 200},
		{"not JSON", request{path: "/mcp", body: "hello"}, false, 400, 400},
		{"batch", request{path: "/mcp", body: "[" + cancelText("1") + "]"}, false, 400, 400},
		{"unknown path", request{method: "GET", path: "/elsewhere"}, false, 404, 200},
		{"health", request{method: "GET", path: "/healthz"}, false, 200, 200},

		{"SSE: stream", request{method: "GET", path: "/sse"}, true, 200, 200},
		{"SSE: foreign origin opens a stream", request{method: "GET", path: "/sse", header: origin("https://evil.example")}, true, 403, 200},
		{"SSE: null origin opens a stream", request{method: "GET", path: "/sse", header: origin("null")}, true, 403, 200},
		{"SSE: rebound host", request{method: "GET", path: "/sse", host: "evil.example"}, true, 403, 200},
		{"SSE: foreign origin posts", request{body: who, header: origin("https://evil.example")}, true, 403, 202},
		{"SSE: text, as a page may send it", request{body: who, header: map[string]string{"Content-Type": "text/plain"}}, true, 415, 202},
		{"SSE: body too long", request{body: long}, true, 413, 202},
		{"SSE: body too long, chunked", request{body: long, chunked: true}, true, 413, 202},
		{"SSE: two values", request{body: who + who}, true, 400, 202},
		{"SSE: a good call", request{body: who}, true, 202, 202},
		{"SSE: health", request{method: "GET", path: "/healthz"}, true, 200, 404},
	}
	o := FrontOptions{
		AllowedHosts:   []string{"mcp.example.com", "Other.example.com:8443", "[2001:db8::1]"},
		AllowedOrigins: []string{"https://app.example.com"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, front := range []bool{true, false} {
				ts := newTestServer(t)
				var h http.Handler
				want := tc.want
				switch {
				case front && tc.sse:
					h = NewSSEHandler(ts.MCPServer, ts.front(o))
				case front:
					h = NewHTTPHandler(ts.MCPServer, ts.front(o))
				case tc.sse:
					h, want = bareSSE(ts), tc.bare
				default:
					h, want = bareHTTP(ts), tc.bare
				}
				url, q := listen(t, h), tc.q
				if tc.sse && q.path == "" {
					q.path = openStream(t, url, nil).endpoint
				}
				if got := do(t, url, q); got.status != want {
					t.Errorf("front %v: status %d, want %d: %s", front, got.status, want, got.body)
				}
			}
		})
	}
}

func TestNoPageMayReadWithoutLeave(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	const cors = "Access-Control-Allow-Origin"
	get := request{method: "GET", path: "/sse"}
	if got := do(t, listen(t, bareSSE(ts)), get).header.Get(cors); got != "*" {
		t.Errorf("mcp-go alone lets %q read; noOrigin may no longer be needed", got)
	}
	url := listen(t, NewSSEHandler(ts.MCPServer, ts.front(FrontOptions{AllowedOrigins: []string{"https://app.example.com"}})))
	if got, ok := do(t, url, get).header[cors]; ok {
		t.Errorf("without an origin: %s: %q", cors, got)
	}
	get.header = map[string]string{"Origin": "https://app.example.com"}
	if got := do(t, url, get).header[cors]; !cmp.Equal(got, []string{"https://app.example.com"}) {
		t.Errorf("allowed origin: %s: %q", cors, got)
	}
}

func TestPreflightNeedsNoToken(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	url := listen(t, NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{
		Tokens: testTokens(t, "acme alpha"), AllowedOrigins: []string{"https://app.example.com"},
	})))
	q := request{method: "OPTIONS", path: "/mcp", header: map[string]string{
		"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST",
	}}
	got := do(t, url, q)
	if got.status != http.StatusNoContent || !strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "Onceward-Operation") {
		t.Errorf("preflight: status %d, headers %v", got.status, got.header)
	}
	delete(q.header, "Access-Control-Request-Method")
	if got := do(t, url, q); got.status != http.StatusUnauthorized {
		t.Errorf("OPTIONS that isn't a preflight: status %d, want 401", got.status)
	}
}

func TestBearerDecidesTheTenant(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	o := ts.front(FrontOptions{Tokens: testTokens(t, "acme alpha", "globex beta", "*old gamma")})
	overHTTP, overSSE := listen(t, NewHTTPHandler(ts.MCPServer, o)), listen(t, NewSSEHandler(ts.MCPServer, o))
	for _, tc := range []struct {
		name, authorization string
		status              int
		tenant              string
	}{
		{"none", "", 401, ""},
		{"wrong", "Bearer delta", 401, ""},
		{"empty", "Bearer ", 401, ""},
		{"the hash itself", "Bearer " + hashHex("alpha"), 401, ""},
		{"another scheme", "Basic alpha", 401, ""},
		{"no scheme", "alpha", 401, ""},
		{"acme's", "Bearer alpha", 200, "acme"},
		{"globex's, lower-case scheme", "bearer beta", 200, "globex"},
		{"the heir's", "Bearer gamma", 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q := request{path: "/mcp", body: callText(1, "who", true)}.modern("tools/call", "who")
			stream := request{method: "GET", path: "/sse", header: map[string]string{}}
			if tc.authorization != "" {
				q.header["Authorization"] = tc.authorization
				stream.header["Authorization"] = tc.authorization
			}
			got := do(t, overHTTP, q)
			if got.status != tc.status {
				t.Errorf("HTTP: status %d, want %d", got.status, tc.status)
			}
			if tc.status == 401 {
				if got.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("WWW-Authenticate: %q", got.header.Get("WWW-Authenticate"))
				}
				if got := do(t, overSSE, stream); got.status != 401 {
					t.Errorf("SSE: status %d, want 401", got.status)
				}
				return
			}
			if got, want := parseAnswer(t, got.body).say(), "tenant="+tc.tenant; got != want {
				t.Errorf("HTTP: %q, want %q", got, want)
			}
			s := openStream(t, overSSE, stream.header)
			do(t, overSSE, request{path: s.endpoint, body: callText(1, "who", false), header: stream.header})
			if got, want := s.next(t).say(), "tenant="+tc.tenant; got != want {
				t.Errorf("SSE: %q, want %q", got, want)
			}
		})
	}
	if got := do(t, overHTTP, request{method: "GET", path: "/healthz"}); got.status != 200 || got.body != "ok\n" {
		t.Errorf("/healthz without a token: %d %q", got.status, got.body)
	}
	for _, secret := range []string{"delta", "alpha", hashHex("alpha")} {
		if strings.Contains(ts.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

func TestCheckOrigins(t *testing.T) {
	t.Parallel()
	for origin, ok := range map[string]bool{
		"https://app.example.com": true, "http://localhost:3000": true,
		"*": false, "null": false, "app.example.com": false, "https://app.example.com/": false,
		"https://user@app.example.com": false, "ftp://app.example.com": false, "": false,
	} {
		if err := CheckOrigins([]string{origin}); (err == nil) != ok {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
