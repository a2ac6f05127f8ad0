package transport

import (
	"strings"
	"testing"
)

// A wire sends one message on one transport and returns the answer.
type wire struct {
	name string
	ask  func(t *testing.T, ts *testServer, text, method, tool string, modern bool) answer
}

func wires() []wire {
	return []wire{
		{"stdio", func(t *testing.T, ts *testServer, text, _, _ string, _ bool) answer {
			c := startStdio(t, t.Context(), ts, StdioOptions{})
			c.send(t, text)
			defer c.in.Close()
			return c.next(t)
		}},
		{"http", func(t *testing.T, ts *testServer, text, method, tool string, modern bool) answer {
			url := listen(t, NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{})))
			q := request{path: "/mcp", body: text}
			if modern {
				q = q.modern(method, tool)
			} else {
				q.header = map[string]string{"Mcp-Session-Id": startSession(t, url, nil)}
			}
			return parseAnswer(t, do(t, url, q).body)
		}},
		{"sse", func(t *testing.T, ts *testServer, text, _, _ string, _ bool) answer {
			url := listen(t, NewSSEHandler(ts.MCPServer, ts.front(FrontOptions{})))
			s := openStream(t, url, nil)
			do(t, url, request{path: s.endpoint, body: text})
			return s.next(t)
		}},
	}
}

// overAll runs f on every transport and in both protocol eras.
func overAll(t *testing.T, f func(t *testing.T, w wire, modern bool)) {
	t.Helper()
	for _, w := range wires() {
		for era, modern := range map[string]bool{"legacy": false, "modern": true} {
			t.Run(w.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				f(t, w, modern)
			})
		}
	}
}

func TestRepeatedAndRecasedMembersAreRefused(t *testing.T) {
	t.Parallel()
	attacks := map[string]func(meta string) string{
		"params twice": func(meta string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"panic"},"params":{"name":"who",` + meta + `}}`
		},
		"_meta twice": func(meta string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","_meta":{"a":"b"},` + meta + `}}`
		},
		"_META": func(meta string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who",` + meta + `,` + strings.Replace(meta, "_meta", "_META", 1) + `}}`
		},
		"member of _meta twice": func(meta string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who",` + strings.TrimSuffix(meta, "}") + `,"k":1,"k":2}}}`
		},
		"Name": func(meta string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"panic","name":"who",` + meta + `}}`
		},
		"argument twice": func(meta string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","arguments":{"n":"1","n":"2"},` + meta + `}}`
		},
	}
	overAll(t, func(t *testing.T, w wire, modern bool) {
		for name, attack := range attacks {
			text := attack(metaOf(modern))
			if got := w.ask(t, newTestServer(t), text, "tools/call", "who", modern); got.say() != "error -32600" {
				t.Errorf("%s: %q, want that it is refused", name, got.say())
			}
		}
		if got := w.ask(t, newTestServer(t), callText(1, "who", modern), "tools/call", "who", modern); got.say() != "tenant=" {
			t.Errorf("a plain call: %q", got.say())
		}
	})
}

func TestDottedNamesInCalls(t *testing.T) {
	t.Parallel()
	overAll(t, func(t *testing.T, w wire, modern bool) {
		if got := w.ask(t, newTestServer(t), callText(1, "who.am.i", modern), "tools/call", "who.am.i", modern); got.say() != "tenant=" {
			t.Errorf("call by the dotted name: %q", got.say())
		}
		if got := w.ask(t, newTestServer(t), callText(1, "who.are.you", modern), "tools/call", "who.are.you", modern); got.say() != "error -32602" {
			t.Errorf("call by an unknown name: %q", got.say())
		}
	})
}

func TestPanicTextStaysHere(t *testing.T) {
	t.Parallel()
	overAll(t, func(t *testing.T, w wire, modern bool) {
		ts := newTestServer(t)
		got := w.ask(t, ts, callText(1, "panic", modern), "tools/call", "panic", modern)
		if got.say() != "error -32603" || got.ID != 1.0 {
			t.Errorf("answer %+v, want an internal error of this call", got)
		}
		if got.Error != nil && strings.Contains(got.Error.Message, panicSecret) {
			t.Errorf("the client reads the panic's text: %s", got.Error.Message)
		}
		log := ts.log.String()
		if strings.Contains(log, panicSecret) || !strings.Contains(log, "a handler panicked") {
			t.Errorf("the log should tell of the panic but not its text:\n%s", log)
		}
	})
}

// A panic outside a tool, in a hook, has no middleware around it.
func TestPanicOutsideATool(t *testing.T) {
	t.Parallel()
	const list = `{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{}}`
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		ts := newTestServer(t)
		c := startStdio(t, t.Context(), ts, StdioOptions{})
		c.send(t, list)
		if got := c.next(t); got.say() != "error -32603" || strings.Contains(got.Error.Message, panicSecret) {
			t.Errorf("answer %+v", got)
		}
		c.send(t, ping(2))
		if got := c.next(t); got.say() != "result" {
			t.Errorf("the stream didn't survive: %+v", got)
		}
		if strings.Contains(ts.log.String(), panicSecret) {
			t.Error("the log holds the panic's text")
		}
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		ts := newTestServer(t)
		url := listenLogging(t, NewHTTPHandler(ts.MCPServer, ts.front(FrontOptions{})), ts.logger().Handler())
		session := startSession(t, url, nil)
		r, body := trySend(t, url, request{path: "/mcp", body: list, header: map[string]string{"Mcp-Session-Id": session}})
		if body != "" || r != 0 {
			t.Errorf("status %d, body %q; want a cut connection", r, body)
		}
		if log := ts.log.String(); strings.Contains(log, panicSecret) || !strings.Contains(log, "a handler panicked") {
			t.Errorf("log:\n%s", log)
		}
	})
}
