package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/onceward/onceward/ledger"
)

type auditCommand struct {
	Verify auditVerifyCommand `cmd:"" help:"Check every transition, operation and checkpoint. Exit code 1 if one was changed, removed or put in."`
	Export auditExportCommand `cmd:"" help:"Write transitions as JSON lines, oldest operation first."`
}

type auditVerifyCommand struct {
	deskFlags
	Expect string `placeholder:"PROOF" help:"A checkpoint's proof that was kept elsewhere (the server logs each): the trail has to contain it."`
	JSON   bool   `name:"json" help:"One JSON object."`
}

// An auditRow is the report as programs read it.
type auditRow struct {
	Operations  int               `json:"operations"`
	Tombstones  int               `json:"tombstones"`
	Transitions int               `json:"transitions"`
	Checkpoints int               `json:"checkpoints"`
	SealedUntil *time.Time        `json:"sealed_until"`
	LastProof   string            `json:"last_proof"`
	Problems    []auditRowProblem `json:"problems"`
}

type auditRowProblem struct {
	Where string `json:"where"`
	What  string `json:"what"`
}

func (c auditVerifyCommand) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, func(o *office) error {
		report, err := o.ledger.VerifyAudit(ctx, c.Expect)
		if err != nil {
			return err
		}
		if err := printAudit(s.out, report, c.JSON); err != nil {
			return err
		}
		if len(report.Problems) > 0 {
			return fmt.Errorf("%w: the audit trail doesn't hold", errRefused)
		}
		return nil
	})
}

func printAudit(w io.Writer, r ledger.AuditReport, asJSON bool) error {
	if asJSON {
		out := auditRow{r.Operations, r.Tombstones, r.Transitions, r.Checkpoints, set(r.SealedUntil), r.LastProof, []auditRowProblem{}}
		for _, p := range r.Problems {
			out.Problems = append(out.Problems, auditRowProblem(p))
		}
		return json.NewEncoder(w).Encode(out)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "operations\t%d\nof it pruned\t%d\ntransitions\t%d\ncheckpoints\t%d\n", r.Operations+r.Tombstones, r.Tombstones, r.Transitions, r.Checkpoints)
	if r.Checkpoints > 0 {
		fmt.Fprintf(t, "sealed until\t%s\nlast proof\t%s\n", r.SealedUntil.Format(time.RFC3339), r.LastProof)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(t, "PROBLEM\t%s\t%s\n", p.Where, p.What)
	}
	if err := t.Flush(); err != nil || len(r.Problems) > 0 {
		return err
	}
	_, err := fmt.Fprintln(w, "Nothing was changed, removed or put in.")
	return err
}

type auditExportCommand struct {
	deskFlags
	Since *time.Time `format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"Only what was written since, such as 2026-11-30T00:00:00Z."`
}

// An exportedTransition is one line of the export.
type exportedTransition struct {
	OperationID    string `json:"operation_id"`
	IdempotencyKey string `json:"idempotency_key"`
	ActionType     string `json:"action_type"`
	Tenant         string `json:"tenant"`
	transition
}

// Run writes as it reads: a ledger of any size fits.
func (c auditExportCommand) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, func(o *office) error {
		out := json.NewEncoder(s.out)
		filter := ledger.Filter{Limit: page}
		for {
			found, err := o.ledger.List(ctx, filter)
			if err != nil {
				return err
			}
			for _, op := range found {
				filter.After = op.ID
				if c.Since != nil && op.UpdatedAt.Before(*c.Since) {
					continue
				}
				history, err := o.store.History(ctx, op.ID)
				if err != nil {
					return err
				}
				for i, t := range asTransitions(history) {
					if c.Since != nil && history[i].At.Before(*c.Since) {
						continue
					}
					if err := out.Encode(exportedTransition{op.ID, op.Key.String(), op.Action, op.Tenant, t}); err != nil {
						return err
					}
				}
			}
			if len(found) < page {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return errors.New("the export was interrupted")
			}
		}
	})
}
