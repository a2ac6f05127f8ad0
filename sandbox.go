package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/onceward/onceward/providers/sandbox"
)

// sandboxFlags say how the sandbox behaves, and misbehaves.
type sandboxFlags struct {
	SandboxFaults     string        `env:"ONCEWARD_SANDBOX_FAULTS" placeholder:"LIST" help:"Faults to rehearse: ACTION:FAULT[:COUNT],..."`
	SandboxDeadline   time.Duration `env:"ONCEWARD_SANDBOX_DEADLINE" default:"5s" help:"How long one attempt may take."`
	SandboxLease      time.Duration `env:"ONCEWARD_SANDBOX_LEASE" default:"10s" help:"How long an attempt's worker is presumed alive."`
	SandboxSettle     time.Duration `env:"ONCEWARD_SANDBOX_SETTLE" default:"0s" help:"How long a request may go on running after we gave up."`
	SandboxLag        time.Duration `env:"ONCEWARD_SANDBOX_LAG" default:"0s" help:"How long an effect stays invisible to look-ups."`
	SandboxWindow     time.Duration `env:"ONCEWARD_SANDBOX_WINDOW" default:"24h" help:"How long a key is remembered."`
	SandboxLookup     bool          `env:"ONCEWARD_SANDBOX_LOOKUP" default:"true" negatable:"" help:"Whether the sandbox can be asked."`
	SandboxIdempotent bool          `env:"ONCEWARD_SANDBOX_IDEMPOTENT" default:"true" negatable:"" help:"Whether the sandbox knows keys."`
}

// journalPath is the sandbox's own file: it is the outside world, and no part of the ledger.
func journalPath(dir string) string { return filepath.Join(dir, "sandbox.db") }

func (f sandboxFlags) open(ctx context.Context, dir string) (*sandbox.Sandbox, error) {
	faults, err := sandbox.ParseFaults(f.SandboxFaults)
	if err != nil {
		return nil, fmt.Errorf("--sandbox-faults: %w", err)
	}
	return sandbox.Open(ctx, journalPath(dir), sandbox.Options{
		Deadline: f.SandboxDeadline, Lease: f.SandboxLease, Settle: f.SandboxSettle, Lag: f.SandboxLag, Window: f.SandboxWindow,
		Lookup: f.SandboxLookup, Idempotent: f.SandboxIdempotent, Faults: faults,
	})
}

type sandboxCommand struct {
	Effects effectsCommand `cmd:"" help:"List what the sandbox has done, oldest first."`
}

type effectsCommand struct {
	dataFlags
	JSON bool `name:"json" help:"One JSON object per line."`
}

func (c effectsCommand) Run(ctx context.Context, s streams) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	box, err := sandbox.Inspect(ctx, journalPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no sandbox journal at %s; name the data directory of your server with --data-dir", errRefused, journalPath(dir))
	}
	if err != nil {
		return err
	}
	defer func() { _ = box.Close() }() // it was only read
	table := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(table, "AT\tACTION\tPROVIDER OPERATION\tPROVIDER KEY")
	}
	lines := json.NewEncoder(s.out)
	for effect, err := range box.Effects(ctx) {
		if err != nil {
			return err
		}
		if !c.JSON {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", effect.At.Local().Format(time.DateTime), effect.ActionType, effect.ProviderOperationID, effect.ProviderKey)
			continue
		}
		if err := lines.Encode(effect); err != nil {
			return err
		}
	}
	return table.Flush()
}
