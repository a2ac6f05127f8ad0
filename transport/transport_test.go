package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/tools"
)

const panicSecret = "secret-123"

// A testServer is an MCP server with a few tools that show what a transport
// does with their calls.
type testServer struct {
	*server.MCPServer
	calls     *InFlight
	log       *lockedBuffer
	started   chan string   // gets the argument "n" of each call of wait
	cancelled chan string   // the same, when its context ends before its release
	release   chan struct{} // closed: all calls of wait return
}

func newTestServer(t *testing.T) *testServer {
	t.Helper()
	ts := &testServer{
		calls: new(InFlight), log: new(lockedBuffer),
		started: make(chan string, 1000), cancelled: make(chan string, 1000), release: make(chan struct{}),
	}
	hooks := new(server.Hooks)
	hooks.AddOnRequestInitialization(StrictJSON(func(raw []byte) error { return intent.CheckJSON(raw, intent.KnownMembers) }))
	hooks.AddBeforeCallTool(DottedNames(map[string]string{"who.am.i": "who"}))
	hooks.AddBeforeAny(func(_ context.Context, _ any, method mcp.MCPMethod, _ any) {
		if method == mcp.MethodPromptsList {
			panic(panicSecret)
		}
	})
	ts.MCPServer = server.NewMCPServer("test", "1", server.WithHooks(hooks), server.WithPromptCapabilities(true),
		server.WithToolHandlerMiddleware(HidePanics(ts.logger())), server.WithToolHandlerMiddleware(ts.calls.Wrap))
	ts.AddTool(mcp.NewTool("who"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("tenant=" + tools.CallerFrom(ctx).Tenant), nil
	})
	ts.AddTool(mcp.NewTool("panic"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		panic(panicSecret)
	})
	// wait behaves as a guarded tool: turned away it does nothing. Else it
	// says, once released, whether its context is still alive.
	ts.AddTool(mcp.NewTool("wait"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if tools.TurnedAway(ctx) {
			return mcp.NewToolResultText("shutting_down"), nil
		}
		n := r.GetString("n", "")
		defer context.AfterFunc(ctx, func() { ts.cancelled <- n })()
		ts.started <- n
		<-ts.release
		if ctx.Err() != nil {
			return mcp.NewToolResultText("dead"), nil
		}
		return mcp.NewToolResultText("alive"), nil
	})
	return ts
}

func (ts *testServer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(ts.log, nil)) }

func (ts *testServer) front(o FrontOptions) FrontOptions {
	o.Calls, o.Log = ts.calls, ts.logger()
	return o
}

func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	return listenLogging(t, h, slog.DiscardHandler)
}

func listenLogging(t *testing.T, h http.Handler, log slog.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(log, slog.LevelError)
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// bareHTTP and bareSSE are mcp-go's transports without the front.
func bareHTTP(ts *testServer) http.Handler {
	return server.NewStreamableHTTPServer(ts.MCPServer, server.WithDisableLocalhostProtection(true))
}

func bareSSE(ts *testServer) http.Handler {
	return server.NewSSEServer(ts.MCPServer, server.WithSSEDisableLocalhostProtection(true))
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

const (
	modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	legacyMeta = `"_meta":{"progressToken":7}`
)

func metaOf(modern bool) string {
	if modern {
		return modernMeta
	}
	return legacyMeta
}

func callText(id int, tool string, modern bool) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"n":"%d"},%s}}`, id, tool, id, metaOf(modern))
}

// subscribe asks for a stream that ends only when it is told to.
const subscribe = `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},` + modernMeta + `}}`

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// An answer is what tests look at in a JSON-RPC answer.
type answer struct {
	ID     any `json:"id"`
	Result *struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// say is the text of a result, or the code of an error.
func (a answer) say() string {
	switch {
	case a.Error != nil:
		return fmt.Sprintf("error %d", a.Error.Code)
	case a.Result != nil && len(a.Result.Content) > 0:
		return a.Result.Content[0].Text
	case a.Result != nil:
		return "result"
	}
	return "nothing"
}

func parseAnswer(t *testing.T, text string) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("not a JSON object: %q: %v", text, err)
	}
	return a
}

// A request is a POST by default, of JSON, with what else a test wants.
type request struct {
	method, path, body string
	host               string
	header             map[string]string
	chunked            bool
}

// modern adds the headers that protocol revision 2026-07-28 wants.
func (q request) modern(method, name string) request {
	h := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	for k, v := range q.header {
		h[k] = v
	}
	q.header = h
	return q
}

type response struct {
	status int
	header http.Header
	body   string
}

// do sends q and returns the whole response; of an event stream only its head.
func do(t *testing.T, url string, q request) response {
	t.Helper()
	r, body := send(t, url, q)
	defer body.Close()
	if strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		return r
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	r.body = string(b)
	return r
}

func send(t *testing.T, url string, q request) (response, io.ReadCloser) {
	t.Helper()
	if q.method == "" {
		q.method = http.MethodPost
	}
	var body io.Reader = strings.NewReader(q.body)
	if q.chunked {
		body = struct{ io.Reader }{body}
	}
	r, err := http.NewRequestWithContext(t.Context(), q.method, url+q.path, body)
	if err != nil {
		t.Fatal(err)
	}
	if q.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	if q.host != "" {
		r.Host = q.host
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	return response{status: got.StatusCode, header: got.Header}, got.Body
}

// A stream is an open SSE stream: where to post, and what comes.
type stream struct {
	endpoint string
	messages chan string
}

func openStream(t *testing.T, url string, header map[string]string) stream {
	t.Helper()
	r, body := send(t, url, request{method: http.MethodGet, path: "/sse", header: header})
	if r.status != http.StatusOK {
		t.Fatalf("GET /sse: status %d", r.status)
	}
	t.Cleanup(func() { body.Close() })
	s := stream{messages: make(chan string, 100)}
	lines := bufio.NewScanner(body)
	for s.endpoint == "" && lines.Scan() {
		s.endpoint, _ = strings.CutPrefix(lines.Text(), "data: ")
		if !strings.HasPrefix(s.endpoint, "/message") {
			s.endpoint = ""
		}
	}
	go func() {
		defer close(s.messages)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.messages <- data
			}
		}
	}()
	return s
}

func (s stream) next(t *testing.T) answer {
	t.Helper()
	text, ok := <-s.messages
	if !ok {
		t.Fatal("the stream ended without the answer")
	}
	return parseAnswer(t, text)
}

// trySend is do for a request that may get no answer: then it returns 0 and "".
func trySend(t *testing.T, url string, q request) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer got.Body.Close()
	b, _ := io.ReadAll(got.Body)
	return got.StatusCode, string(b)
}
