package transport

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func TestSlowBodyIsCutOff(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	url := listen(t, NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{bodyTime: 10 * time.Millisecond})))
	slow, w := io.Pipe()
	defer w.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", slow)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	go func() { _, _ = io.WriteString(w, `{"jsonrpc":`) }()
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return // cut before the answer could be read: fine too
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d, want 400", got.StatusCode)
	}
}

// deadlineWriter records the read deadlines of a connection.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *deadlineWriter) SetReadDeadline(d time.Time) error {
	w.deadlines = append(w.deadlines, d)
	return nil
}

// A deadline that stayed would end the connection, and with it the context of
// a call that takes longer than a body may.
func TestDeadlineOfTheBodyEndsWithIt(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(ping(1)))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{})).ServeHTTP(w, r)
	if n := len(w.deadlines); n != 2 || w.deadlines[0].IsZero() || !w.deadlines[1].IsZero() {
		t.Errorf("deadlines %v, want one and then none", w.deadlines)
	}
}

// A real client gets through the front, in both eras and on both transports.
func TestClientsGetThrough(t *testing.T) {
	t.Parallel()
	header := map[string]string{"Authorization": "Bearer alpha"}
	for _, version := range []string{"2026-07-28", "2025-11-25", "2024-11-05"} {
		for name, dial := range map[string]func(ts *testServer, o FrontOptions) (*client.Client, error){
			"http": func(ts *testServer, o FrontOptions) (*client.Client, error) {
				return client.NewStreamableHttpClient(listen(t, NewHTTPHandler(ts.MCPServer, o))+"/mcp", transport.WithHTTPHeaders(header))
			},
			"sse": func(ts *testServer, o FrontOptions) (*client.Client, error) {
				return client.NewSSEMCPClient(listen(t, NewSSEHandler(ts.MCPServer, o))+"/sse", transport.WithHeaders(header))
			},
		} {
			t.Run(name+"/"+version, func(t *testing.T) {
				ts := newTestServer(t)
				c, err := dial(ts, ts.front(FrontOptions{Tokens: testTokens(t, "acme alpha")}))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if err := c.Start(context.WithoutCancel(t.Context())); err != nil {
					t.Fatal(err)
				}
				var hello mcp.InitializeRequest
				hello.Params.ProtocolVersion = version
				hello.Params.ClientInfo = mcp.Implementation{Name: "t", Version: "1"}
				if _, err := c.Initialize(t.Context(), hello); err != nil {
					t.Fatal(err)
				}
				var call mcp.CallToolRequest
				call.Params.Name = "who.am.i"
				got, err := c.CallTool(t.Context(), call)
				if err != nil {
					t.Fatal(err)
				}
				if text, ok := got.Content[0].(mcp.TextContent); !ok || text.Text != "tenant=acme" {
					t.Errorf("the client reads %+v", got.Content)
				}
			})
		}
	}
}
