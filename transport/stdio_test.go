package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
)

// A stdioClient talks to ServeStdio through pipes.
type stdioClient struct {
	in    *io.PipeWriter
	lines chan string
	done  chan error
}

func startStdio(t *testing.T, ctx context.Context, ts *testServer, o StdioOptions) *stdioClient {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	o.Log = ts.logger()
	c := &stdioClient{in: inW, lines: make(chan string, 1000), done: make(chan error, 1)}
	go func() {
		err := ServeStdio(ctx, ts.MCPServer, inR, outW, o)
		outW.Close()
		c.done <- err
	}()
	go func() {
		defer close(c.lines)
		for r := readLines(outR, 1<<20, nil); ; {
			line := <-r
			if len(line.data) > 0 {
				c.lines <- string(line.data)
			}
			if line.err != nil {
				return
			}
		}
	}()
	return c
}

func (c *stdioClient) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (c *stdioClient) next(t *testing.T) answer {
	t.Helper()
	line, ok := <-c.lines
	if !ok {
		t.Fatal("the server ended without the answer")
	}
	return parseAnswer(t, line)
}

// rest returns how often each answer came until the server ended, by what it
// says, and fails when an id was answered twice.
func (c *stdioClient) rest(t *testing.T) map[string]int {
	t.Helper()
	got, ids := map[string]int{}, map[any]bool{}
	for line := range c.lines {
		a := parseAnswer(t, line)
		if a.ID != nil && ids[a.ID] {
			t.Errorf("id %v was answered twice", a.ID)
		}
		ids[a.ID] = true
		got[a.say()]++
	}
	return got
}

func ping(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) }

func cancelText(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}

func TestStdioEndOfInputWithQueuedCalls(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	c := startStdio(t, t.Context(), ts, StdioOptions{})
	for id := 1; id <= 100; id++ {
		c.send(t, callText(id, "wait", id%2 == 0))
	}
	c.send(t, ping(101))
	c.in.Close()

	// While 64 calls hold their slots, all others have their answers.
	early := map[string]int{}
	for range 37 {
		early[c.next(t).say()]++
	}
	if diff := cmp.Diff(map[string]int{"shutting_down": 36, "result": 1}, early); diff != "" {
		t.Errorf("answers while the calls run (-want +got):\n%s", diff)
	}
	for range 64 {
		<-ts.started
	}
	close(ts.release)
	if diff := cmp.Diff(map[string]int{"alive": 64}, c.rest(t)); diff != "" {
		t.Errorf("answers of calls in flight (-want +got):\n%s", diff)
	}
	if err := <-c.done; err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
}

func TestStdioOneCallThenEndOfInput(t *testing.T) {
	t.Parallel()
	for range 100 {
		ts := newTestServer(t)
		close(ts.release)
		var out bytes.Buffer
		if err := ServeStdio(t.Context(), ts.MCPServer, strings.NewReader(callText(1, "wait", false)), &out, StdioOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := parseAnswer(t, out.String()).say(); got != "alive" {
			t.Fatalf("answer %q, want that the call was served", got)
		}
	}
}

func TestStdioSignalFinishesCalls(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	ctx, stop := context.WithCancel(t.Context())
	c := startStdio(t, ctx, ts, StdioOptions{slots: 1})
	c.send(t, callText(1, "wait", false))
	<-ts.started
	c.send(t, callText(2, "wait", false))
	c.send(t, ping(3))
	c.next(t) // the ping's: by now the second call waits
	stop()    // and the input stays open
	if got := c.next(t).say(); got != "shutting_down" {
		t.Errorf("waiting call: %q", got)
	}
	close(ts.release)
	if diff := cmp.Diff(map[string]int{"alive": 1}, c.rest(t)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if err := <-c.done; err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
}

func TestStdioDrainIsBounded(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	defer close(ts.release)
	c := startStdio(t, t.Context(), ts, StdioOptions{Drain: 10 * time.Millisecond})
	c.send(t, callText(1, "wait", false))
	c.in.Close()
	if err := <-c.done; !errors.Is(err, ErrDrain) {
		t.Errorf("ServeStdio: %v, want ErrDrain", err)
	}
}

// stuckWriter is a client that never reads.
type stuckWriter struct{ forever chan struct{} }

func (w stuckWriter) Write([]byte) (int, error) { <-w.forever; return 0, io.ErrClosedPipe }

func TestStdioClientThatDoesNotReadCannotHoldTheEnd(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	w := stuckWriter{make(chan struct{})}
	defer close(w.forever)
	err := ServeStdio(t.Context(), ts.MCPServer, strings.NewReader(ping(1)+"\n"+ping(2)), w, StdioOptions{Drain: 10 * time.Millisecond, Log: ts.logger()})
	if !errors.Is(err, ErrDrain) {
		t.Errorf("ServeStdio: %v, want ErrDrain", err)
	}
}

func TestStdioFullQueueBlocksNothing(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	c := startStdio(t, t.Context(), ts, StdioOptions{slots: 1, queue: 1})
	c.send(t, callText(1, "wait", false))
	<-ts.started
	c.send(t, callText(2, "wait", false))
	c.send(t, callText(3, "wait", false))
	if a := c.next(t); a.say() != "error -32603" || !strings.Contains(a.Error.Message, "busy") {
		t.Errorf("call beyond the queue: %+v", a)
	}
	c.send(t, ping(4))
	if a := c.next(t); a.say() != "result" {
		t.Errorf("ping behind a full queue: %+v", a)
	}
	// A cancellation gets past them too, to the call that runs and to the one
	// that waits.
	c.send(t, cancelText("1"))
	c.send(t, cancelText("2"))
	c.send(t, ping(5))
	c.next(t)
	close(ts.release)
	if first, second := c.next(t).say(), c.next(t).say(); first != "dead" || second != "dead" {
		t.Errorf("cancelled calls: %q and %q, want that both knew", first, second)
	}
	c.in.Close()
	if diff := cmp.Diff(map[string]int{}, c.rest(t)); diff != "" {
		t.Errorf("further answers (-want +got):\n%s", diff)
	}
}

func TestStdioWaitingCallsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	text := callText(2, "wait", false)
	c := startStdio(t, t.Context(), ts, StdioOptions{slots: 1, held: 2 * len(text)})
	c.send(t, callText(1, "wait", false))
	<-ts.started
	c.send(t, text)
	c.send(t, callText(3, "wait", false))
	c.send(t, callText(4, "wait", false))
	if got := c.next(t); got.ID != 4.0 || got.say() != "error -32603" {
		t.Errorf("the call that is too much: %+v", got)
	}
	close(ts.release)
	for range 3 {
		if got := c.next(t).say(); got != "alive" {
			t.Errorf("a call that ran or waited: %q", got)
		}
	}
	// The room is given back.
	for id := 5; id <= 6; id++ {
		c.send(t, callText(id, "wait", false))
		if got := c.next(t).say(); got != "alive" {
			t.Errorf("a later call: %q", got)
		}
	}
	c.in.Close()
	c.rest(t)
}

func TestStdioCancelledCallIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	c := startStdio(t, t.Context(), ts, StdioOptions{})
	c.send(t, callText(1, "wait", false))
	<-ts.started
	c.send(t, cancelText("1"))
	c.send(t, ping(2))
	c.next(t)
	close(ts.release)
	c.in.Close()
	if diff := cmp.Diff(map[string]int{"dead": 1}, c.rest(t)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestStdioSubscriptionEndsWithTheInput(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	c := startStdio(t, t.Context(), ts, StdioOptions{})
	c.send(t, subscribe)
	c.next(t) // acknowledged
	c.in.Close()
	if diff := cmp.Diff(map[string]int{"result": 1}, c.rest(t)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if err := <-c.done; err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
}

func TestStdioLines(t *testing.T) {
	t.Parallel()
	long := `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
	edge := ping(8) + strings.Repeat(" ", 1<<20-len(ping(8)))
	tests := []struct {
		name, in string
		want     map[string]int
	}{
		{"nothing", "", map[string]int{}},
		{"blank lines", "\n\r\n  \n", map[string]int{}},
		{"no last line break", ping(1), map[string]int{"result": 1}},
		{"cut off in the middle", ping(1)[:20], map[string]int{"error -32700": 1}},
		{"carriage return", ping(1) + "\r\n", map[string]int{"result": 1}},
		{"too long, then a good one", long + "\n" + ping(1) + "\n", map[string]int{"error -32600": 1, "result": 1}},
		{"as long as may be", edge + "\n", map[string]int{"result": 1}},
		{"one byte longer", edge + " \n", map[string]int{"error -32600": 1}},
		{"not JSON, then a good one", "hello\n" + ping(1), map[string]int{"error -32700": 1, "result": 1}},
		{"batch", "[" + ping(1) + "]", map[string]int{"error -32600": 1}},
		{"number", "7", map[string]int{"error -32600": 1}},
		{"answers to nothing", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, map[string]int{}},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, map[string]int{"error -32601": 1}},
		{"call without an id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"panic"}}`, map[string]int{}},
		{"dotted name", callText(1, "who.am.i", false), map[string]int{"tenant=": 1}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ts := newTestServer(t)
			c := startStdio(t, t.Context(), ts, StdioOptions{})
			go func() { _, _ = io.WriteString(c.in, tc.in); c.in.Close() }()
			if diff := cmp.Diff(tc.want, c.rest(t)); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if err := <-c.done; err != nil {
				t.Errorf("ServeStdio: %v", err)
			}
		})
	}
}

func TestStdioReadError(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	c := startStdio(t, t.Context(), ts, StdioOptions{})
	broken := errors.New("broken")
	c.in.CloseWithError(broken)
	if err := <-c.done; !errors.Is(err, broken) {
		t.Errorf("ServeStdio: %v, want the error of the reader", err)
	}
}

func TestStdioNotificationsGoOutWhole(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	ts.AddTool(mcp.NewTool("tell"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 20 {
			if err := ts.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": 7}); err != nil {
				return nil, err
			}
		}
		return mcp.NewToolResultText("told"), nil
	})
	c := startStdio(t, t.Context(), ts, StdioOptions{})
	c.send(t, initialize)
	c.next(t)
	for id := 1; id <= 4; id++ {
		c.send(t, callText(id, "tell", false))
	}
	c.in.Close()
	if diff := cmp.Diff(map[string]int{"told": 4, "nothing": 80}, c.rest(t)); diff != "" {
		t.Errorf("answers and notifications (-want +got):\n%s", diff)
	}
}
