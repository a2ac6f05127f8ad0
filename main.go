// Onceward is an MCP server whose tools act on the real world, each business action
// at most once. This package is the command line and the wiring, nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/onceward/onceward/ledger"
)

// Exit codes.
const (
	exitDone    = 0
	exitRefused = 1 // or not found
	exitUsage   = 2 // wrong usage or configuration
)

// commandLine is what Onceward understands. Every flag has an environment twin; secrets
// come by environment or file only.
type commandLine struct {
	Serve      serveCommand      `cmd:"" help:"Serve the tools to an MCP client."`
	Demo       demoCommand       `cmd:"" help:"Show what happens when replies are lost, processes killed and arguments reworded."`
	Config     configCommand     `cmd:"" help:"See what a configuration means."`
	Operations operationsCommand `cmd:"" help:"See and decide operations."`
	Sandbox    sandboxCommand    `cmd:"" help:"See what the sandbox has done."`
	Console    consoleCommand    `cmd:"" help:"Open the web page on which people decide, for a server on stdio."`
	Approvers  approversCommand  `cmd:"" help:"Say who may decide."`
	Ledger     ledgerCommand     `cmd:"" help:"Move a ledger to another database."`
	Verify     verifyCommand     `cmd:"" help:"Rehearse with your configuration what can go wrong."`
	Audit      auditCommand      `cmd:"" help:"Prove that the history is whole, or export it."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	signal.Ignore(syscall.SIGPIPE) // a client that is gone must not end the process in the middle of an effect
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run is the whole program but for the process: it returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	var cli commandLine
	exited := -1
	parser, err := kong.New(&cli,
		kong.Name("onceward"),
		kong.Description("Tools that act on the real world for agents, each business action at most once."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(s.out, s.err),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
	)
	if err != nil {
		fmt.Fprintln(s.err, "onceward:", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited >= 0: // --help
		return exited
	case err != nil:
		fmt.Fprintf(s.err, "onceward: %v\nSee onceward --help.\n", err)
		return exitUsage
	}
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(s.err, "onceward:", err)
		return exitCode(err)
	}
	return exitDone
}

// exitCode tells a configuration to mend from a decision that was refused.
func exitCode(err error) int {
	var refused *ledger.Refusal
	var decision *ledger.DecisionError
	if errors.As(err, &refused) || errors.As(err, &decision) || errors.Is(err, errRefused) {
		return exitRefused
	}
	return exitUsage
}

// errRefused marks other errors that end with exit code 1.
var errRefused = errors.New("refused")
