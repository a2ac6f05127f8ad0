package main

import (
	"context"
	"errors"
	"slices"

	"github.com/onceward/onceward/console"
	"github.com/onceward/onceward/ledger"
)

// This file is where people decide on the command line. The console does the same.

type resolveCommand struct {
	deskFlags
	operationArg
	Happened            bool   `xor:"what" required:"" help:"It happened."`
	Drop                bool   `xor:"what" required:"" help:"It didn't happen, and shall not."`
	Retry               bool   `xor:"what" required:"" help:"It didn't happen; allow one more attempt."`
	ProviderOperationID string `name:"provider-operation-id" placeholder:"ID" help:"With --happened: under which id the provider has it."`
	Attempt             int    `required:"" placeholder:"N" help:"The attempt count that you saw; another one now refuses the decision."`
	byFlags
	Reason string `required:"" placeholder:"TEXT" help:"Why. Kept in the history: no personal data."`
}

func (c resolveCommand) Run(ctx context.Context, s streams) error {
	what := ledger.Happened
	switch {
	case c.Drop:
		what = ledger.Drop
	case c.Retry:
		what = ledger.Retry
	case c.ProviderOperationID == "":
		return errors.New("--happened needs --provider-operation-id")
	}
	return c.with(ctx, s, func(o *office) error {
		who, err := c.who(o.dir, s.in, c.Reason, console.Operator, false)
		if err != nil {
			return err
		}
		op, err := o.ledger.Resolve(ctx, c.Operation, what, c.ProviderOperationID, c.Attempt, who)
		return printOutcome(s, op, err)
	})
}

type approveCommand struct {
	deskFlags
	operationArg
	byFlags
	Reason string `placeholder:"TEXT" help:"Why."`
}

func (c approveCommand) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, func(o *office) error {
		who, err := c.whoApproves(ctx, o, c.Operation, s, c.Reason)
		if err != nil {
			return err
		}
		op, err := o.ledger.Approve(ctx, c.Operation, who)
		return printOutcome(s, op, err)
	})
}

// whoApproves is the person who lets a planned operation go. What a policy laid down takes an
// approver; what only the workflow identity's own rules hold back takes one where there are any.
func (f byFlags) whoApproves(ctx context.Context, o *office, name string, s streams, reason string) (ledger.Person, error) {
	op, _, err := o.ledger.History(ctx, name)
	if err != nil {
		return ledger.Person{}, err
	}
	byIdentity := []string{ledger.ApprovalAlike, ledger.ApprovalLateChange}
	demanded := op.Status == ledger.Planned && !slices.Contains(byIdentity, op.Approval.Reason)
	who, err := f.who(o.dir, s.in, reason, console.Approver, demanded)
	who.Saw = op.Moves
	return who, err
}

type denyCommand struct {
	deskFlags
	operationArg
	byFlags
	Reason string `placeholder:"TEXT" help:"Why."`
}

func (c denyCommand) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, func(o *office) error {
		who, err := c.who(o.dir, s.in, c.Reason, console.Approver, false)
		if err != nil {
			return err
		}
		op, err := o.ledger.Deny(ctx, c.Operation, who)
		return printOutcome(s, op, err)
	})
}

type allowRepeatCommand struct {
	deskFlags
	operationArg
	byFlags
	SameContent bool   `help:"Also for a call that repeats the first one to the letter."`
	Reason      string `placeholder:"TEXT" help:"Why."`
}

func (c allowRepeatCommand) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, func(o *office) error {
		who, err := c.whoApproves(ctx, o, c.Operation, s, c.Reason)
		if err != nil {
			return err
		}
		op, err := o.ledger.AllowRepeat(ctx, c.Operation, c.SameContent, who)
		return printOutcome(s, op, err)
	})
}
