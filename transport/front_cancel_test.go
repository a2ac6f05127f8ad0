package transport

import (
	"net/http"
	"testing"
)

// Client A's call runs; then someone posts a cancellation of its id. What the
// call says of its context at its end shows whether that reached it.
func TestCancellationOfAnotherClientsCall(t *testing.T) {
	t.Parallel()
	modernCancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,` + modernMeta + `}}`
	session := map[string]string{"Mcp-Session-Id": "mcp-session-00000000-0000-4000-8000-000000000000"}
	tests := []struct {
		name string
		q    request
		bare string // what becomes of A's call without the front
	}{
		{"modern", request{body: modernCancel}.modern(methodCancelled, ""), "dead"},
		{"modern, with a session id that nobody looks at", request{body: modernCancel, header: session}.modern(methodCancelled, ""), "dead"},
		{"other case of members", request{body: `{"jsonrpc":"2.0","METHOD":"notifications/cancelled","Params":{"requestId":1,` + modernMeta + `}}`}.modern(methodCancelled, ""), "dead"},
		{"method given twice", request{body: `{"jsonrpc":"2.0","method":"x","method":"notifications/cancelled","params":{"requestId":1,` + modernMeta + `}}`}.modern(methodCancelled, ""), "dead"},
		{"id null", request{body: `{"jsonrpc":"2.0","id":null,"method":"notifications/cancelled","params":{"requestId":1,` + modernMeta + `}}`}.modern(methodCancelled, ""), "dead"},
		{"older revision without a session", request{body: cancelText("1")}, "alive"},
		{"batch", request{body: "[" + modernCancel + "]"}.modern(methodCancelled, ""), "alive"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, front := range []bool{true, false} {
				ts := newTestServer(t)
				h, want := bareHTTP(ts), tc.bare
				if front {
					h, want = NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{})), "alive"
				}
				url := listen(t, h)
				said := make(chan string, 1)
				go func() {
					said <- parseAnswer(t, do(t, url, request{path: "/mcp", body: callText(1, "wait", true)}.modern("tools/call", "wait")).body).say()
				}()
				<-ts.started
				q := tc.q
				q.path = "/mcp"
				do(t, url, q)
				close(ts.release)
				if got := <-said; got != want {
					t.Errorf("front %v: the call of A says %q, want %q", front, got, want)
				}
			}
		})
	}
}

// startSession begins a session of an older revision and returns its id.
func startSession(t *testing.T, url string, header map[string]string) string {
	t.Helper()
	r := do(t, url, request{path: "/mcp", body: initialize, header: header})
	id := r.header.Get("Mcp-Session-Id")
	if r.status != http.StatusOK || id == "" {
		t.Fatalf("initialize: status %d, session %q: %s", r.status, id, r.body)
	}
	return id
}

func TestSessionsBelongToTheirTenant(t *testing.T) {
	t.Parallel()
	a := map[string]string{"Authorization": "Bearer alpha"}
	b := map[string]string{"Authorization": "Bearer beta"}
	in := func(header map[string]string, session string) map[string]string {
		return map[string]string{"Authorization": header["Authorization"], "Mcp-Session-Id": session}
	}
	ts := newTestServer(t)
	url := listen(t, NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{Tokens: testTokens(t, "acme alpha", "globex beta")})))
	sa, sb := startSession(t, url, a), startSession(t, url, b)

	said := make(chan string, 1)
	go func() {
		said <- parseAnswer(t, do(t, url, request{path: "/mcp", body: callText(1, "wait", false), header: in(a, sa)}).body).say()
	}()
	<-ts.started
	last := sa[:len(sa)-1]
	forged := last + "0"
	if forged == sa {
		forged = last + "1"
	}
	for _, tc := range []struct {
		name   string
		q      request
		status int
	}{
		{"A in A's session", request{body: callText(2, "who", false), header: in(a, sa)}, 200},
		{"B calls in A's session", request{body: callText(2, "who", false), header: in(b, sa)}, 404},
		{"B cancels in A's session", request{body: cancelText("1"), header: in(b, sa)}, 404},
		{"B cancels in its own session", request{body: cancelText("1"), header: in(b, sb)}, 202},
		{"B answers in A's session", request{body: `{"jsonrpc":"2.0","id":1,"result":{"x":1}}`, header: in(b, sa)}, 404},
		{"B listens to A's session", request{method: "GET", header: in(b, sa)}, 404},
		{"B ends A's session", request{method: "DELETE", header: in(b, sa)}, 404},
		{"forged id", request{body: callText(2, "who", false), header: in(a, forged)}, 404},
		{"id of mcp-go's own form", request{body: callText(2, "who", false), header: in(a, "mcp-session-00000000-0000-4000-8000-000000000000")}, 404},
		{"no id", request{body: callText(2, "who", false), header: a}, 404},
		{"modern call with any id", request{body: callText(2, "who", true), header: in(b, sa)}.modern("tools/call", "who"), 200},
		{"A ends its session", request{method: "DELETE", header: in(a, sa)}, 200},
	} {
		tc.q.path = "/mcp"
		if got := do(t, url, tc.q); got.status != tc.status {
			t.Errorf("%s: status %d, want %d: %s", tc.name, got.status, tc.status, got.body)
		}
	}
	close(ts.release)
	if got := <-said; got != "alive" {
		t.Errorf("A's call says %q: someone else cancelled it", got)
	}
}

// The other side: within its own session a client of an older revision may
// cancel, and without the front another client's guess of the id is enough.
func TestCancelWithinASession(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	url := listen(t, NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{})))
	session := map[string]string{"Mcp-Session-Id": startSession(t, url, nil)}
	said := make(chan string, 1)
	go func() {
		said <- parseAnswer(t, do(t, url, request{path: "/mcp", body: callText(1, "wait", false), header: session}).body).say()
	}()
	<-ts.started
	if got := do(t, url, request{path: "/mcp", body: cancelText("1"), header: session}); got.status != 202 {
		t.Errorf("cancellation: status %d", got.status)
	}
	close(ts.release)
	if got := <-said; got != "dead" {
		t.Errorf("the cancelled call says %q", got)
	}
}

func TestSessionIDs(t *testing.T) {
	t.Parallel()
	ids, others := newSessionIDs("s-"), newSessionIDs("s-")
	id := ids.mint("acme")
	for name, tc := range map[string]struct {
		ids    *sessionIDs
		id     string
		tenant string
		want   bool
	}{
		"the tenant's":       {ids, id, "acme", true},
		"another tenant's":   {ids, id, "acm", false},
		"no tenant's":        {ids, id, "", false},
		"of another process": {others, id, "acme", false},
		"longer":             {ids, id + "0", "acme", false},
		"shorter":            {ids, id[:len(id)-1], "acme", false},
		"empty":              {ids, "", "acme", false},
		"moved boundary":     {ids, id, "acme-", false},
	} {
		if got := tc.ids.owns(tc.id, tc.tenant); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if ids.mint("acme") == id {
		t.Error("two sessions have one id")
	}
}
