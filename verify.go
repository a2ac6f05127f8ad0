package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/onceward/onceward/drill"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
	"github.com/onceward/onceward/tools"
	"github.com/onceward/onceward/transport"
)

// verifyCommand rehearses failures with the user's configuration. It never touches their ledger,
// reaches no provider and needs no credential.
type verifyCommand struct {
	dataFlags
	configFlags
	sandboxFlags
	Action []string `placeholder:"ACTION" help:"Rehearse only this action type, such as refund. Default: all."`
	JSON   bool     `name:"json" help:"One JSON object per scenario, one per line."`
}

// Run plays all scenarios for each action type. Its error marks a promise that doesn't hold.
func (c verifyCommand) Run(ctx context.Context, s streams) (err error) {
	config, err := c.read()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "onceward-verify-")
	if err != nil {
		return fmt.Errorf("there is no place for the scratch ledger: %w; name one with TMPDIR", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	subjects, err := c.subjects(ctx, config, dir)
	if err != nil {
		return err
	}
	open, drop, err := c.scratch(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	world := drill.World{Open: open, Dir: dir, Serve: serveDrill, Zone: config.zone}
	out := newVerifyPrinter(s.out, subjects)
	lines := json.NewEncoder(s.out)
	for result, err := range world.Run(ctx, subjects) {
		if err == nil && c.JSON {
			err = lines.Encode(result)
		}
		if err != nil {
			return err
		}
		out.add(result)
		if !c.JSON {
			out.printWhole()
		}
	}
	if !c.JSON {
		out.printSummary()
	}
	return out.verdict()
}

// subjects are the action types with their providers' traits. A secret that isn't here is
// replaced: no provider is ever used.
func (c verifyCommand) subjects(ctx context.Context, config *configuration, dir string) ([]drill.Subject, error) {
	if err := (&standIns{config: config, dir: dir}).fill(); err != nil {
		return nil, err
	}
	faults, err := sandbox.ParseFaults(c.SandboxFaults)
	if err != nil {
		return nil, fmt.Errorf("--sandbox-faults: %w", err)
	}
	var subjects []drill.Subject
	made := map[string]realProvider{}
	for _, action := range c.Action {
		if !slices.Contains(actions, action) {
			return nil, fmt.Errorf("--action %s: there is no such action type; there are %v", action, actions)
		}
	}
	for _, action := range actions {
		if len(c.Action) > 0 && !slices.Contains(c.Action, action) {
			continue
		}
		name, real, err := config.provider(action, made)
		if err != nil {
			return nil, err
		}
		traits, err := c.traits(ctx, action, real, dir)
		if err != nil {
			return nil, err
		}
		p, err := config.policy(action, traits)
		if err != nil {
			return nil, err
		}
		tool := config.Tools[action]
		subject := drill.Subject{
			Action: action, Provider: name, Traits: traits, Tool: tool.Tool, Policy: p, Templates: tool.Templates,
			Advice: adviceFor(name, action, traits, tool.AcceptUnverifiable),
		}
		for _, fault := range faults {
			if fault.Action == action {
				subject.Faults = append(subject.Faults, fault)
			}
		}
		subjects = append(subjects, subject)
	}
	return subjects, nil
}

// traits are those of the provider that serves the action type; the sandbox's are what its flags
// make of them.
func (c verifyCommand) traits(ctx context.Context, action string, real realProvider, dir string) (providers.Traits, error) {
	if real != nil {
		traits, _ := real.Traits(action)
		return traits, nil
	}
	box, err := c.sandboxFlags.open(ctx, filepath.Join(dir, "asked"))
	if err != nil {
		return providers.Traits{}, err
	}
	traits, _ := box.Traits(action)
	return traits, box.Close()
}

// serveDrill makes the real server, without its transport.
func serveDrill(set *tools.Set) (drill.Handler, error) {
	m, err := newMCPServer(set, new(transport.InFlight), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, message []byte) ([]byte, error) {
		return json.Marshal(m.HandleMessage(ctx, message))
	}, nil
}
