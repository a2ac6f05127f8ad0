package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/tools"
)

type operationsCommand struct {
	List        listCommand        `cmd:"" help:"List operations, oldest first."`
	Show        showCommand        `cmd:"" help:"Show an operation with its history and evidence, oldest first."`
	Resolve     resolveCommand     `cmd:"" help:"Say what became of an operation that automation can't settle."`
	Reconcile   reconcileCommand   `cmd:"" help:"Ask the provider what became of an operation, or of all that are due."`
	Approve     approveCommand     `cmd:"" help:"Let a planned operation go."`
	Deny        denyCommand        `cmd:"" help:"End a planned operation; it never runs."`
	AllowRepeat allowRepeatCommand `cmd:"" help:"Allow one more action with the same name (workflow identity), within 15 minutes."`
	Prune       pruneCommand       `cmd:"" help:"Drop results and details of old final operations. What they are stays known for ever."`
}

// deskFlags are what every command on operations takes.
type deskFlags struct {
	officeFlags
	logFlags
}

// with opens the office for one command.
func (f deskFlags) with(ctx context.Context, s streams, do func(*office) error) (err error) {
	o, err := openOffice(ctx, f.officeFlags, f.logger(s), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	return do(o)
}

// An operationArg is an operation_id or an idempotency key.
type operationArg struct {
	Operation string `arg:"" name:"operation" help:"The operation_id, or the idempotency key."`
}

type listCommand struct {
	deskFlags
	Status     []string `placeholder:"STATUS" help:"Only these statuses."`
	Action     string   `placeholder:"TYPE" help:"Only this action type, such as refund."`
	WorkflowID string   `name:"workflow-id" placeholder:"ID" help:"Only this workflow."`
	RunID      string   `name:"run-id" placeholder:"ID" help:"Only this run."`
	Tenant     *string  `placeholder:"NAME" help:"Only this tenant."`
	Review     bool     `help:"Only those that ask a person."`
	Limit      int      `default:"0" help:"At most so many; 0 lists all."`
	JSON       bool     `name:"json" help:"One JSON object per line."`
}

// page is how many operations are read at once.
const page = 500

func (c listCommand) Run(ctx context.Context, s streams) error {
	filter := ledger.Filter{Action: c.Action, WorkflowID: c.WorkflowID, RunID: c.RunID, Tenant: c.Tenant, Review: c.Review}
	for _, name := range c.Status {
		status := ledger.Status(name)
		if !status.Known() {
			return fmt.Errorf("--status %q: the statuses are %v", name, ledger.Statuses())
		}
		filter.Statuses = append(filter.Statuses, status)
	}
	if c.Limit < 0 {
		return errors.New("--limit is not negative")
	}
	return c.with(ctx, s, func(o *office) error {
		out := newOperationList(s.out, c.JSON)
		left := c.Limit
		for {
			filter.Limit = page
			if c.Limit > 0 {
				filter.Limit = min(page, left)
			}
			found, err := o.ledger.List(ctx, filter)
			if err != nil {
				return err
			}
			for _, op := range found {
				if err := out.add(op); err != nil {
					return err
				}
			}
			left -= len(found)
			if len(found) < filter.Limit || c.Limit > 0 && left == 0 {
				return out.end()
			}
			filter.After = found[len(found)-1].ID
		}
	})
}

type showCommand struct {
	deskFlags
	operationArg
	JSON bool `name:"json" help:"One JSON object."`
}

func (c showCommand) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, func(o *office) error {
		op, history, err := o.ledger.History(ctx, c.Operation)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(s.out).Encode(shownOperation{asRow(op), asTransitions(history)})
		}
		return printOperation(s.out, op, history)
	})
}

type reconcileCommand struct {
	deskFlags
	statementFlags
	Operation string `arg:"" optional:"" help:"The operation_id, or the idempotency key. Without it: all that are due."`
}

func (c reconcileCommand) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, func(o *office) error {
		switch {
		case c.Statement != "" && c.Operation != "":
			return errors.New("a statement is about all operations: leave the operation out")
		case c.Statement != "":
			return c.reconcile(ctx, s, o)
		case c.Operation == "":
			return o.ledger.Sweep(ctx)
		}
		op, err := o.ledger.Reconcile(ctx, c.Operation)
		return printOutcome(s, op, err)
	})
}

type pruneCommand struct {
	deskFlags
	OlderThan time.Duration `required:"" placeholder:"DURATION" help:"How long ago they were last moved, such as 2160h for 90 days."`
}

// retainEvery is how often a server prunes what the policies keep no longer.
const retainEvery = 6 * time.Hour

// retain prunes, now and again, what is older than the policies keep it, until ctx is done.
func (o *office) retain(ctx context.Context) {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for action, laid := range o.policies {
			if laid.Retention <= 0 {
				continue
			}
			for n := page; n == page && ctx.Err() == nil; {
				var err error
				if n, err = o.ledger.Prune(ctx, ledger.Prunable{Before: time.Now().Add(-laid.Retention), Action: action, Limit: page}, tools.Critical()); err != nil && ctx.Err() == nil {
					o.log.Error("what is kept no longer can't be pruned; it is tried again", "action_type", action, "error", err)
				}
			}
		}
	}
}

func (c pruneCommand) Run(ctx context.Context, s streams) error {
	if c.OlderThan < 0 {
		return errors.New("--older-than is not negative")
	}
	return c.with(ctx, s, func(o *office) error {
		total, before := 0, time.Now().Add(-c.OlderThan)
		for {
			n, err := o.ledger.Prune(ctx, ledger.Prunable{Before: before, Limit: page}, tools.Critical())
			total += n
			if err != nil || n < page {
				fmt.Fprintf(s.out, "%d operations pruned; what they are stays known, so a repeat is still a replay.\n", total)
				return err
			}
		}
	})
}
