package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	sqlitedriver "modernc.org/sqlite"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/tools"
	"github.com/onceward/onceward/transport"
)

// What the explorer's child processes do: the whole program but for the transport, so that
// a process lives for milliseconds. They die just before one of their COMMITs.

const (
	// crashBefore is the number of the COMMIT, of any connection, before which a process
	// of this binary kills itself. It works with the real command line as well.
	crashBefore = "ONCEWARD_TEST_KILL_BEFORE_COMMIT"
	// crashGrace is how long it stands still there before: a caller that was told of what isn't
	// durable yet has time to say so.
	crashGrace = "ONCEWARD_TEST_KILL_GRACE"
	// crashCall makes the process a caller: a crashScript in JSON.
	crashCall = "ONCEWARD_TEST_CRASH_CALL"
)

// A crashScript is what one child does.
type crashScript struct {
	Dir, Tool, Arguments string
	Intent               string // what the call carries in _meta
	Asked, Idempotent    bool   // what the sandbox can do
	Faults               string
	Sweeps               bool   // it sweeps before its first call, as a server does at its start
	Calls                bool   // else it only opens everything
	Bug                  string // the name of a planted one, or empty
}

const (
	crashDeadline = 200 * time.Millisecond
	crashLease    = 400 * time.Millisecond
	crashPatience = 20 * time.Second // of a caller that gets nothing final
)

// crashTold has a token when an answer was printed since it was last emptied.
var crashTold = make(chan struct{}, 1)

func init() { beforeProgram = append(beforeProgram, crashAtCommit, crashProgram) }

func crashAtCommit() {
	n, err := strconv.ParseInt(os.Getenv(crashBefore), 10, 64)
	if err != nil || n <= 0 {
		return
	}
	grace, _ := time.ParseDuration(os.Getenv(crashGrace))
	var commits atomic.Int64
	sqlitedriver.RegisterConnectionHook(func(conn sqlitedriver.ExecQuerierContext, _ string) error {
		hooks, ok := conn.(sqlitedriver.HookRegisterer)
		if !ok {
			return errors.New("the driver has no hooks any more")
		}
		hooks.RegisterCommitHook(func() int32 {
			if commits.Add(1) != n {
				return 0
			}
			select {
			case <-crashTold:
			default:
			}
			select {
			case <-crashTold:
			case <-time.After(grace):
			}
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			if err != nil {
				panic(err)
			}
			select {} // the signal is on its way, and nothing is committed until it comes
		})
		return nil
	})
}

func crashProgram() {
	text := os.Getenv(crashCall)
	if text == "" {
		return
	}
	var script crashScript
	err := json.Unmarshal([]byte(text), &script)
	if err == nil {
		err = script.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage)
	}
	os.Exit(exitDone)
}

// run makes the call again and again until its answer is final or a person is asked, and
// prints each answer as a line of JSON.
func (c crashScript) run(ctx context.Context) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	box := sandboxFlags{
		SandboxFaults: c.Faults, SandboxDeadline: crashDeadline, SandboxLease: crashLease, SandboxWindow: time.Hour,
		SandboxLookup: c.Asked, SandboxIdempotent: c.Idempotent,
	}
	o, err := openOffice(ctx, officeFlags{dataFlags: dataFlags{DataDir: c.Dir}, sandboxFlags: box}, log, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	finish, err := c.plant(o)
	if err != nil || !c.Calls {
		return err
	}
	defer finish()
	o.ledger.Policy.FirstBackoff, o.ledger.Policy.MaxAttempts = 10*time.Millisecond, 50
	set, err := tools.New(o.ledger, tools.Options{Mode: intent.Strict, Secret: o.secret, Providers: o.providers, Log: log})
	if err != nil {
		return err
	}
	mcp, err := newMCPServer(set, new(transport.InFlight), log)
	if err != nil {
		return err
	}
	if c.Sweeps {
		if err := o.ledger.Sweep(ctx); err != nil {
			return err
		}
	}
	request := json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"onceward/operation":%s}}}`,
		c.Tool, c.Arguments, c.Intent))
	ctx, cancel := context.WithTimeout(ctx, crashPatience)
	defer cancel()
	for pause := time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 50*time.Millisecond) {
		reply, err := json.Marshal(mcp.HandleMessage(context.WithoutCancel(ctx), request))
		if err != nil {
			return err
		}
		var answered struct {
			Result struct {
				Structured crashAnswer `json:"structuredContent"`
			} `json:"result"`
		}
		if err := json.Unmarshal(reply, &answered); err != nil {
			return err
		}
		a := answered.Result.Structured
		if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
			return err
		}
		select {
		case crashTold <- struct{}{}:
		default:
		}
		if a.final() {
			return o.ledger.Drain(context.WithoutCancel(ctx))
		}
		<-time.After(pause)
	}
	return errors.New("the caller's patience is over")
}

// A crashAnswer is what the explorer wants to know of an answer.
type crashAnswer struct {
	Status              string `json:"status"`
	Code                string `json:"code,omitempty"`
	ProviderOperationID string `json:"provider_operation_id,omitempty"`
	Replayed            bool   `json:"replayed,omitempty"`
	Review              bool   `json:"review,omitempty"`
}

// final answers don't change by calling again.
func (a crashAnswer) final() bool {
	return a.Status == "succeeded" || a.Status == "failed_final" || a.Status == "refused" || a.Status == "unknown" && a.Review
}
