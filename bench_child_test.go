package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
	"github.com/onceward/onceward/transport"
)

// asBench makes the re-executed test binary one of the servers that benchmarks compare.
const asBench = "ONCEWARD_TEST_BENCH"

// What a server in a benchmark is.
const (
	bareServer      = "bare"      // mcp-go as its documentation starts it, with one tool
	unguardedServer = "unguarded" // the same tool behind this program's transports
	idleServer      = "idle"      // this program, with a provider that does nothing
)

// benchProfile names a file for a CPU profile of such a server.
const benchProfile = "ONCEWARD_TEST_BENCH_PROFILE"

func init() { beforeProgram = append(beforeProgram, benchProgram) }

func benchProgram() {
	kind := os.Getenv(asBench)
	if kind == "" {
		return
	}
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	serve := map[string]func(context.Context) error{bareServer: serveBare, unguardedServer: serveUnguarded, idleServer: serveIdle}[kind]
	err := profiled(func() error { return serve(ctx) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, kind, "server:", err)
		os.Exit(exitUsage)
	}
	os.Exit(exitDone)
}

func profiled(serve func() error) error {
	path := os.Getenv(benchProfile)
	if path == "" {
		return serve()
	}
	f, err := os.Create(fmt.Sprintf("%s.%s.%d", path, os.Getenv(asBench), os.Getpid()))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	err = serve()
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}

func serveBare(context.Context) error {
	m, err := bareMCPServer()
	if err != nil {
		return err
	}
	return server.ServeStdio(m)
}

func serveUnguarded(ctx context.Context) error {
	m, err := bareMCPServer()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if slices.Contains(os.Args, "http") {
		front := transport.FrontOptions{Calls: new(transport.InFlight), Log: log}
		return transport.ListenAndServe(ctx, "127.0.0.1:0", transport.NewHTTPHandler(m, front), front.Calls, time.Second, log)
	}
	return transport.ServeStdio(ctx, m, os.Stdin, os.Stdout, transport.StdioOptions{Log: log})
}

// bareMCPServer has the refund tool with the same schemas, and a handler that answers
// as ordinary handlers do.
func bareMCPServer() (*server.MCPServer, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "tools", "refund.strict.json"))
	if err != nil {
		return nil, err
	}
	var shown struct {
		Description               string
		InputSchema, OutputSchema json.RawMessage
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		return nil, err
	}
	tool := mcp.NewToolWithRawSchema("refund", shown.Description, shown.InputSchema)
	tool.RawOutputSchema = shown.OutputSchema
	m := server.NewMCPServer("bare", "1", server.WithToolCapabilities(false))
	m.AddTool(tool, answerUnguarded)
	return m, nil
}

type plainAnswer struct {
	OperationID         string            `json:"operation_id"`
	ActionType          string            `json:"action_type"`
	Status              string            `json:"status"`
	Replayed            bool              `json:"replayed"`
	Attempts            int               `json:"attempts"`
	Provider            string            `json:"provider"`
	ProviderOperationID string            `json:"provider_operation_id"`
	ProviderStatus      string            `json:"provider_status"`
	CompletedAt         string            `json:"completed_at"`
	Result              map[string]string `json:"result"`
	Next                string            `json:"next"`
	Message             string            `json:"message"`
}

func answerUnguarded(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	said := plainAnswer{
		OperationID: "op_01930000-0000-7000-8000-000000000000", ActionType: "refund", Status: "succeeded", Attempts: 1,
		Provider: sandbox.Name, ProviderOperationID: "re_0123456789abcdef", ProviderStatus: "accepted",
		CompletedAt: time.Now().UTC().Format(time.RFC3339),
		Result:      map[string]string{"payment_id": r.GetString("payment_id", ""), "amount": r.GetString("amount", ""), "currency": r.GetString("currency", "")},
		Next:        "none", Message: "This refund was made.",
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(said.Message + "\nStatus: succeeded. Operation: " + said.OperationID + "."), mcp.NewTextContent(string(text))},
		StructuredContent: said,
	}, nil
}

// An idleProvider has the sandbox's traits, and does nothing: what is left to measure
// is the guard.
type idleProvider struct{ *sandbox.Sandbox }

func (p idleProvider) Apply(_ context.Context, _ string, a ledger.Attempt) (ledger.Receipt, error) {
	if err := a.MaySend(); err != nil {
		return ledger.Receipt{}, err
	}
	return ledger.Receipt{
		ProviderOperationID: "re_0123456789abcdef", ProviderStatus: "accepted", State: ledger.Settled,
		Result:   json.RawMessage(`{"payment_id":"pay_8812","amount":"100.00","currency":"USD"}`),
		Evidence: json.RawMessage(`{"provider":"sandbox","answer":"accepted","provider_operation_id":"re_0123456789abcdef"}`),
	}, nil
}

// serveIdle is the serve command with the idle provider in the sandbox's place.
func serveIdle(ctx context.Context) (err error) {
	var cli commandLine
	parser, err := kong.New(&cli)
	if err != nil {
		return err
	}
	if _, err := parser.Parse(os.Args[1:]); err != nil {
		return err
	}
	c, s := cli.Serve, streams{os.Stdin, os.Stdout, os.Stderr}
	log := c.logger(s)
	front, err := c.front(log)
	if err != nil {
		return err
	}
	o, err := openOffice(ctx, c.officeFlags, log, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	idle := idleProvider{o.sandbox}
	actor, _ := providers.Actor(sandbox.Name, idle.Scope(), providers.RefundCreate, idle)
	o.ledger.Actors[providers.RefundCreate], o.providers[providers.RefundCreate] = actor, idle
	return c.open(ctx, o, front, s, log)
}

// An addressLog waits for the address at which a server says that it listens, and lets
// the rest go.
type addressLog struct {
	seen    []byte
	found   bool
	address chan string
}

func newAddressLog() *addressLog { return &addressLog{address: make(chan string, 1)} }

var _ io.Writer = (*addressLog)(nil)

// Write implements [io.Writer].
func (l *addressLog) Write(p []byte) (int, error) {
	if l.found {
		return len(p), nil
	}
	l.seen = append(l.seen, p...)
	if _, after, ok := bytes.Cut(l.seen, []byte("msg=listening address=")); ok {
		if address, _, ok := bytes.Cut(after, []byte("\n")); ok {
			l.found = true
			l.address <- string(address)
		}
	}
	return len(p), nil
}
