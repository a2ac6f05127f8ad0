package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/tools"
	"github.com/onceward/onceward/transport"
)

// drainFor bounds how long a server that ends waits for what is under way. What is not
// done by then is in the ledger, and the next server settles it.
const drainFor = 60 * time.Second

type serveCommand struct {
	officeFlags
	logFlags
	approverFlags
	Transport      string        `env:"ONCEWARD_TRANSPORT" enum:"stdio,http,sse" default:"stdio" help:"How clients connect: ${enum}."`
	Addr           string        `env:"ONCEWARD_ADDR" default:"127.0.0.1:8931" placeholder:"HOST:PORT" help:"Where http and sse listen."`
	Tokens         string        `env:"ONCEWARD_TOKENS" placeholder:"FILE" help:"Bearer tokens: lines of a tenant and a token's SHA-256. Needed off loopback."`
	AllowedOrigins []string      `env:"ONCEWARD_ALLOWED_ORIGINS" help:"Web origins that may call, such as https://app.example.com."`
	AllowedHosts   []string      `env:"ONCEWARD_ALLOWED_HOSTS" help:"Host names the server answers to, besides loopback."`
	Identity       string        `env:"ONCEWARD_IDENTITY" enum:"strict,workflow" default:"strict" help:"What names an action: a whole intent (strict), or a scope and declared arguments (workflow)."`
	WorkflowID     string        `name:"workflow-id" env:"ONCEWARD_WORKFLOW_ID" placeholder:"ID" help:"The workflow that this server is started for."`
	RunID          string        `name:"run-id" env:"ONCEWARD_RUN_ID" placeholder:"ID" help:"The run that this server is started for."`
	ToolNames      string        `env:"ONCEWARD_TOOL_NAMES" enum:"underscore,dotted" default:"underscore" help:"How tools are listed: ${enum}. Calls may use both."`
	AnswerWithin   time.Duration `env:"ONCEWARD_ANSWER_WITHIN" default:"25s" help:"How long a call waits for its own result before it says in_progress."`
	ReconcileEvery time.Duration `env:"ONCEWARD_RECONCILE_EVERY" default:"15s" help:"How often what is open is looked at."`
}

// Run serves until the input ends or a signal comes; then nothing new is claimed, what is
// under way finishes, and the process ends.
func (c serveCommand) Run(ctx context.Context, s streams) (err error) {
	log := c.logger(s)
	if c.AnswerWithin <= 0 || c.ReconcileEvery <= 0 {
		return errors.New("--answer-within and --reconcile-every are longer than nothing")
	}
	front, err := c.front(log)
	if err != nil {
		return err
	}
	o, err := openOffice(ctx, c.officeFlags, log, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	return c.open(ctx, o, front, s, log)
}

// open checks what an office must not be opened with, and serves it.
func (c serveCommand) open(ctx context.Context, o *office, front transport.FrontOptions, s streams, log *slog.Logger) error {
	approvers, err := c.read(o.dir)
	if err != nil {
		return err
	}
	if err := errors.Join(checkTenants(ctx, o.store, front.Tokens), o.checkDryRun(ctx), checkApprovers(approvers, front.Tokens)); err != nil {
		return err
	}
	o.ledger.Policy.AnswerWithin = c.AnswerWithin
	obs, err := o.observe(ctx, c.Transport != "stdio")
	if err != nil {
		return err
	}
	if c.Transport != "stdio" {
		front.Metrics = obs.telemetry.Handler()
		if front.Console, err = o.page(approvers, obs.alarms, !transport.OnLoopback(c.Addr)); err != nil {
			return err
		}
	}
	if c.Identity == "workflow" && c.WorkflowID == "" && c.Transport == "stdio" {
		log.Warn("--identity workflow without --workflow-id: only calls that carry a whole intent will be served")
	}
	set, err := o.tools(obs.telemetry.Ledger(o.ledger), c)
	if err != nil {
		return err
	}
	mcp, err := newMCPServer(set, front.Calls, log, server.WithToolHandlerMiddleware(obs.calls))
	if err != nil {
		return err
	}
	o.announce(log)
	retaining, stopRetaining := context.WithCancel(ctx)
	retained := make(chan struct{})
	go func() { defer close(retained); o.retain(retaining) }()
	defer func() { stopRetaining(); <-retained }()
	return c.serve(ctx, o.ledger, mcp, front, obs, s, log)
}

// tools are the tools, under the policies that hold for them.
func (o *office) tools(l tools.Ledger, c serveCommand) (*tools.Set, error) {
	options := tools.Options{
		Mode: intent.Mode(c.Identity), Secret: o.secret, Scope: intent.Scope{WorkflowID: c.WorkflowID, RunID: c.RunID},
		Providers: o.providers, Templates: o.config.Tools[providers.EmailSend].Templates, DottedNames: c.ToolNames == "dotted", Log: o.log,
		Approval:   func(action string, args providers.Arguments) string { return o.policies[action].NeedsApproval(args) },
		LookAlikes: map[string]bool{}, Elicit: map[string]bool{},
	}
	for action, laid := range o.policies {
		options.LookAlikes[action], options.Elicit[action] = laid.LookAlikes(), laid.Elicit
	}
	return tools.New(l, options)
}

// serve runs the transport and the sweep side by side, and ends both in order.
func (c serveCommand) serve(ctx context.Context, l *ledger.Ledger, m *server.MCPServer, front transport.FrontOptions, obs *observers, s streams, log *slog.Logger) error {
	sweeping, stopSweeping := context.WithCancel(ctx)
	swept := make(chan struct{})
	go func() { defer close(swept); l.Run(sweeping, c.ReconcileEvery) }()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() { defer close(watched); obs.run(watching, l) }()
	stopClaims := context.AfterFunc(ctx, l.Close)
	defer stopClaims()

	var err error
	switch c.Transport {
	case "http":
		err = transport.ListenAndServe(ctx, c.Addr, transport.NewHTTPHandler(m, front), front.Calls, drainFor, log)
	case "sse":
		log.Warn("MCP has deprecated the SSE transport; use --transport http where the client can")
		err = transport.ListenAndServe(ctx, c.Addr, transport.NewSSEHandler(m, front), front.Calls, drainFor, log)
	default:
		err = transport.ServeStdio(ctx, m, s.in, s.out, transport.StdioOptions{Drain: drainFor, Log: log})
	}
	stopSweeping()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	if drainErr := l.Drain(drain); drainErr != nil {
		log.Warn("something was still under way when the time to end was over; the next server settles it")
	}
	<-swept
	stopWatching()
	<-watched
	obs.end(context.WithoutCancel(ctx), log)
	return err
}

// front is what stands before the HTTP transports.
func (c serveCommand) front(log *slog.Logger) (transport.FrontOptions, error) {
	o := transport.FrontOptions{
		AllowedHosts: c.AllowedHosts, AllowedOrigins: c.AllowedOrigins, Calls: new(transport.InFlight), Log: log,
	}
	if c.Transport == "stdio" {
		if c.Tokens != "" {
			return o, errors.New("--tokens is for --transport http and sse; on stdio the client is whoever starts the server")
		}
		return o, nil
	}
	if err := transport.CheckOrigins(c.AllowedOrigins); err != nil {
		return o, err
	}
	if c.Tokens != "" {
		var err error
		if o.Tokens, err = transport.ReadTokens(c.Tokens); err != nil {
			return o, err
		}
	}
	return o, transport.RequireAuth(c.Addr, o.Tokens)
}

// checkTenants refuses a ledger whose operations would belong to nobody: their keys have no
// tenant in them, so a repeat by a tenant would look new.
func checkTenants(ctx context.Context, s ledger.Store, tokens *transport.Tokens) error {
	if tokens == nil || tokens.Heir() != "" {
		return nil
	}
	nobody := ""
	found, err := ledger.HasOperations(ctx, s, &nobody)
	if err != nil || !found {
		return err
	}
	return errors.New("this ledger has operations without a tenant; mark the tenant they belong to with a * in the tokens file, or use another ledger")
}

func newMCPServer(set *tools.Set, calls *transport.InFlight, log *slog.Logger, more ...server.ServerOption) (*server.MCPServer, error) {
	hooks := new(server.Hooks)
	hooks.AddOnRequestInitialization(transport.StrictJSON(func(raw []byte) error { return intent.CheckMessage(raw, intent.KnownMembers) }))
	hooks.AddBeforeCallTool(transport.DottedNames(set.Names()))
	m := server.NewMCPServer("onceward", versionText(), append([]server.ServerOption{
		server.WithToolCapabilities(false),
		server.WithHooks(hooks),
		server.WithToolHandlerMiddleware(transport.HidePanics(log)),
		server.WithToolHandlerMiddleware(calls.Wrap),
		server.WithInstructions("Each tool acts at most once per business action. Repeating a call is safe: it returns the first result. A status of unknown is not a failure: don't try another way."),
	}, more...)...)
	return m, set.Register(m)
}

// announce says who does what, and what can be proved after a lost answer.
func (o *office) announce(log *slog.Logger) {
	for _, action := range actions {
		t, _ := o.providers[action].Traits(action)
		log.Info("serves", "action_type", action, "provider", o.ledger.Actors[action].Provider,
			"idempotency_key", keyText(string(t.Key)), "look_up", keyText(string(t.Lookup)), "proves_absence", t.ProvesAbsence)
	}
}

func keyText(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
