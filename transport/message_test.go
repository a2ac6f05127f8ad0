package transport

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMessage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       message
		code       int
	}{
		{"request", `{"id":1,"method":"ping"}`, message{id: 1.0, method: "ping"}, 0},
		{"null id", `{"id":null,"method":"ping"}`, message{method: "ping"}, 0},
		{"last one wins, as for mcp-go", `{"method":"ping","METHOD":"pong"}`, message{method: "pong"}, 0},
		{"modern", `{"method":"m","params":{` + modernMeta + `}}`, message{method: "m", modern: true}, 0},
		{"older", `{"method":"m","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}`, message{method: "m"}, 0},
		{"params of another shape", `{"method":"m","params":[1]}`, message{method: "m"}, 0},
		{"cancellation", cancelText(`"a"`), message{method: methodCancelled, cancels: "a"}, 0},
		{"answer", `{"id":1,"result":{}}`, message{id: 1.0, result: true}, 0},
		{"null result", `{"id":1,"method":"m","result":null}`, message{id: 1.0, method: "m"}, 0},
		{"error", `{"id":1,"error":{}}`, message{id: 1.0, failed: true}, 0},
		{"batch", `[{"id":1}]`, message{}, -32600},
		{"method that is none", `{"id":1,"method":7}`, message{id: 1.0}, -32600},
		{"two values", `{} {}`, message{}, -32700},
		{"nothing", ``, message{}, -32700},
	}
	for _, tc := range tests {
		got, refused := parseMessage([]byte(tc.text))
		code := 0
		if refused != nil {
			code = refused.code
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(message{})); diff != "" || code != tc.code {
			t.Errorf("%s: code %d, want %d (-want +got):\n%s", tc.name, code, tc.code, diff)
		}
	}
}

func TestIsStrayCancel(t *testing.T) {
	t.Parallel()
	session := http.Header{"Mcp-Session-Id": {"s"}}
	both := http.Header{"Mcp-Session-Id": {"s"}, "Mcp-Protocol-Version": {"2026-07-28"}}
	for _, tc := range []struct {
		name   string
		header http.Header
		m      message
		want   bool
	}{
		{"no session", http.Header{}, message{method: methodCancelled}, true},
		{"in a session", session, message{method: methodCancelled}, false},
		{"modern by its header", both, message{method: methodCancelled}, true},
		{"modern by its body", session, message{method: methodCancelled, modern: true}, true},
		{"another notification", http.Header{}, message{method: "notifications/initialized"}, false},
		{"a request, which gets an answer", http.Header{}, message{method: methodCancelled, id: 1.0}, false},
	} {
		if got := isStrayCancel(&http.Request{Header: tc.header}, tc.m); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
