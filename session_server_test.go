package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/providers/sandbox"
	"github.com/onceward/onceward/transport"
)

// patience bounds every wait of these tests. None is as long when all is well.
const patience = slowness * 40 * time.Second

// A sharedLog is a server's log, read while it is written.
type sharedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// blankFiles are a data directory after a first start, made once: to make one anew for
// each test would take most of the time.
var blankFiles = sync.OnceValues(func() (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "onceward-blank-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o, err := openOffice(context.Background(), officeFlags{dataFlags: dataFlags{DataDir: dir}, sandboxFlags: defaultSandbox()}, slog.New(slog.DiscardHandler), true)
	if err != nil {
		return nil, err
	}
	if err := o.close(); err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, "-shm") && !strings.HasSuffix(name, ".lock") {
			if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
})

func defaultSandbox() sandboxFlags {
	o := sandbox.DefaultOptions()
	return sandboxFlags{
		SandboxDeadline: o.Deadline, SandboxLease: o.Lease, SandboxWindow: o.Window,
		SandboxLookup: o.Lookup, SandboxIdempotent: o.Idempotent,
	}
}

// dataDir makes a data directory on which a server was started once.
func dataDir(t *testing.T) string {
	t.Helper()
	files, err := blankFiles()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A localServer is a server inside the test's process.
type localServer struct {
	dir    string
	change func(*office) // HTTP only: what else than the command line would have it
	log    *sharedLog
	dial   func(t *testing.T, header http.Header) wire
	stop   func() // ends it in order and checks that it does; more than once is harmless
}

// startLocal starts a server as the command line would, on one of the transports. On
// stdio that is the whole program; on the others all but its listener.
func startLocal(t *testing.T, kind, dir string, flags ...string) *localServer {
	t.Helper()
	return startChanged(t, kind, dir, nil, flags...)
}

func startChanged(t *testing.T, kind, dir string, change func(*office), flags ...string) *localServer {
	t.Helper()
	s := &localServer{dir: dir, change: change, log: new(sharedLog)}
	args := append([]string{"serve", "--transport", kind, "--data-dir", dir}, flags...)
	if kind == "stdio" {
		s.startStdio(t, args)
	} else {
		s.startHTTP(t, kind, args)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *localServer) startStdio(t *testing.T, args []string) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan int, 1)
	ctx := context.WithoutCancel(t.Context()) // it ends with its input
	go func() {
		code := run(ctx, args, streams{in, out, s.log})
		out.Close()
		ended <- code
	}()
	lines := readLinesOf(fromServer)
	s.dial = func(*testing.T, http.Header) wire { return stdioWire{toServer, lines} }
	s.stop = sync.OnceFunc(func() {
		toServer.Close()
		select {
		case code := <-ended:
			if code != exitDone {
				t.Errorf("the server ended with %d; its log:\n%s", code, s.log)
			}
		case <-time.After(patience):
			t.Error("the server didn't end after its input")
		}
	})
}

func (s *localServer) startHTTP(t *testing.T, kind string, args []string) {
	t.Helper()
	c, err := parseServe(args)
	if err != nil {
		t.Fatal(err)
	}
	log := c.logger(streams{err: s.log})
	front, err := c.front(log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	o, err := openOffice(ctx, c.officeFlags, log, true)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	if s.change != nil {
		s.change(o)
	}
	handler, err := handlerFor(ctx, c, o, front, log)
	if err != nil {
		cancel()
		o.close()
		t.Fatal(err)
	}
	listening := httptest.NewServer(handler)
	swept := make(chan struct{})
	go func() { defer close(swept); o.ledger.Run(ctx, c.ReconcileEvery) }()
	s.dial = func(t *testing.T, header http.Header) wire {
		t.Helper()
		if kind == "http" {
			return &postWire{client: listening.Client(), url: listening.URL + "/mcp"}
		}
		w, err := dialSSE(ctx, listening.Client(), listening.URL, header)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	s.stop = sync.OnceFunc(func() {
		cancel() // the streams
		<-swept
		drain, done := context.WithTimeout(context.Background(), patience)
		defer done()
		if err := o.ledger.Drain(drain); err != nil {
			t.Errorf("drain: %v", err)
		}
		listening.CloseClientConnections()
		listening.Close()
		if err := o.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// handlerFor is what stands behind the listener.
func handlerFor(ctx context.Context, c serveCommand, o *office, front transport.FrontOptions, log *slog.Logger) (http.Handler, error) {
	if err := checkTenants(ctx, o.store, front.Tokens); err != nil {
		return nil, err
	}
	m, err := connect(c, o, front, log)
	if err != nil {
		return nil, err
	}
	if c.Transport == "sse" {
		return transport.NewSSEHandler(m, front), nil
	}
	return transport.NewHTTPHandler(m, front), nil
}

// connect is the wiring of serve, for an office that a test has changed.
func connect(c serveCommand, o *office, front transport.FrontOptions, log *slog.Logger) (*server.MCPServer, error) {
	o.ledger.Policy.AnswerWithin = c.AnswerWithin
	set, err := o.tools(o.ledger, c)
	if err != nil {
		return nil, err
	}
	return newMCPServer(set, front.Calls, log)
}

// parseServe reads flags as the program does.
func parseServe(args []string) (serveCommand, error) {
	var cli commandLine
	parser, err := kong.New(&cli, kong.Exit(func(int) {}))
	if err != nil {
		return cli.Serve, err
	}
	_, err = parser.Parse(args)
	return cli.Serve, err
}

// effectsIn are what the outside world has seen of a data directory, oldest first.
func effectsIn(ctx context.Context, dir string) ([]sandbox.Effect, error) {
	box, err := sandbox.Inspect(ctx, filepath.Join(dir, "sandbox.db"))
	if err != nil {
		return nil, err
	}
	defer box.Close()
	var found []sandbox.Effect
	for effect, err := range box.Effects(ctx) {
		if err != nil {
			return nil, err
		}
		found = append(found, effect)
	}
	return found, nil
}

// countEffects counts them by action type.
func countEffects(t *testing.T, dir string) map[string]int {
	t.Helper()
	found, err := effectsIn(context.WithoutCancel(t.Context()), dir)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, effect := range found {
		counts[effect.ActionType]++
	}
	return counts
}

// command runs a command line and returns its exit code and all it printed.
func command(ctx context.Context, args ...string) (code int, out, errOut string) {
	var printed, complained bytes.Buffer
	code = run(ctx, args, streams{bytes.NewReader(nil), &printed, &complained})
	return code, printed.String(), complained.String()
}
