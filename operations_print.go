package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A row is an operation as programs read it, under the names of the table's columns. It
// holds no sealed payload and no hash but the fingerprint.
type row struct {
	IdempotencyKey      string          `json:"idempotency_key"`
	OperationID         string          `json:"operation_id"`
	Tenant              string          `json:"tenant"`
	ActionType          string          `json:"action_type"`
	Identity            ledger.Identity `json:"identity"`
	WorkflowID          *string         `json:"workflow_id"`
	Step                *string         `json:"step"`
	BusinessObject      *string         `json:"business_object"`
	Revision            *int            `json:"revision"`
	BusinessOperationID *string         `json:"business_operation_id"`
	RunID               *string         `json:"run_id"`
	PayloadHash         string          `json:"payload_hash"`
	Status              ledger.Status   `json:"status"`
	AttemptCount        int             `json:"attempt_count"`
	Provider            *string         `json:"provider"`
	ProviderScope       *string         `json:"provider_scope"`
	ProviderKey         *string         `json:"provider_key"`
	KeyGeneration       int             `json:"key_generation"`
	ProviderOperationID *string         `json:"provider_operation_id"`
	ProviderStatus      *string         `json:"provider_status"`
	ReferenceJSON       json.RawMessage `json:"reference_json"`
	ResultJSON          json.RawMessage `json:"result_json"`
	LastErrorCode       *string         `json:"last_error_code"`
	LeaseOwner          *string         `json:"lease_owner"`
	LeaseUntil          *time.Time      `json:"lease_until"`
	FirstSentAt         *time.Time      `json:"first_sent_at"`
	UnsettledSince      *time.Time      `json:"unsettled_since"`
	NextCheckAt         *time.Time      `json:"next_check_at"`
	ExpiresAt           *time.Time      `json:"expires_at"`
	Approval            *string         `json:"approval"`
	ApprovalReason      *string         `json:"approval_reason"`
	ReviewOpenedAt      *time.Time      `json:"review_opened_at"`
	ReviewReason        *string         `json:"review_reason"`
	RepeatUntil         *time.Time      `json:"repeat_until"`
	Conflicts           int             `json:"conflicts"`
	Pruned              bool            `json:"pruned"`
	CreatedAt           time.Time       `json:"created_at"`
	UpdatedAt           time.Time       `json:"updated_at"`
	CompletedAt         *time.Time      `json:"completed_at"`
}

func asRow(op ledger.Operation) row {
	return row{
		IdempotencyKey: op.Key.String(), OperationID: op.ID, Tenant: op.Tenant, ActionType: op.Action, Identity: op.Intent.Identity,
		WorkflowID: set(op.Intent.WorkflowID), Step: set(op.Intent.Step), BusinessObject: set(op.Intent.BusinessObject),
		Revision: set(op.Intent.Revision), BusinessOperationID: set(op.Intent.BusinessOperationID), RunID: set(op.Intent.RunID),
		PayloadHash: op.Fingerprint.String(), Status: op.Status, AttemptCount: op.Attempts,
		Provider: set(op.Provider), ProviderScope: set(op.Scope), ProviderKey: set(op.ProviderKey), KeyGeneration: op.Generation,
		ProviderOperationID: set(op.ProviderOperationID), ProviderStatus: set(op.ProviderStatus),
		ReferenceJSON: op.Reference, ResultJSON: op.Result, LastErrorCode: set(op.ErrorCode),
		LeaseOwner: set(op.LeaseOwner), LeaseUntil: set(op.LeaseUntil), FirstSentAt: set(op.FirstSentAt),
		UnsettledSince: set(op.UnsettledSince), NextCheckAt: set(op.NextCheckAt), ExpiresAt: set(op.ExpiresAt),
		Approval: set(string(op.Approval.State)), ApprovalReason: set(op.Approval.Reason),
		ReviewOpenedAt: set(op.Review.OpenedAt), ReviewReason: set(op.Review.Reason), RepeatUntil: set(op.Repeat.Until),
		Conflicts: op.Conflicts, Pruned: op.Pruned, CreatedAt: op.CreatedAt, UpdatedAt: op.UpdatedAt, CompletedAt: set(op.CompletedAt),
	}
}

// set is null in JSON for what was never set.
func set[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

type shownOperation struct {
	row
	Transitions []transition `json:"transitions"`
}

type transition struct {
	Seq        int             `json:"seq"`
	FromStatus *string         `json:"from_status"`
	ToStatus   ledger.Status   `json:"to_status"`
	Attempt    int             `json:"attempt"`
	Reason     string          `json:"reason"`
	Evidence   json.RawMessage `json:"evidence"`
	Actor      string          `json:"actor"`
	At         time.Time       `json:"at"`
}

func asTransitions(history []ledger.Transition) []transition {
	lines := make([]transition, len(history))
	for i, t := range history {
		lines[i] = transition{t.Seq, set(string(t.From)), t.To, t.Attempt, t.Reason, t.Evidence, t.Actor, t.At}
	}
	return lines
}

// An operationList prints operations as they come: a table for people, lines of JSON for
// programs.
type operationList struct {
	table *tabwriter.Writer
	lines *json.Encoder
}

func newOperationList(w io.Writer, asJSON bool) *operationList {
	if asJSON {
		return &operationList{lines: json.NewEncoder(w)}
	}
	l := &operationList{table: tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)}
	fmt.Fprintln(l.table, "OPERATION\tACTION\tSTATUS\tATTEMPTS\tWORKFLOW\tSTEP OR ID\tPROVIDER OPERATION\tCREATED\tNEEDS")
	return l
}

func (l *operationList) add(op ledger.Operation) error {
	if l.lines != nil {
		return l.lines.Encode(asRow(op))
	}
	named := op.Intent.Step
	if named == "" {
		named = op.Intent.BusinessOperationID
	}
	_, err := fmt.Fprintf(l.table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", op.ID, op.Action, op.Status, op.Attempts,
		dash(op.Intent.WorkflowID), dash(named), dash(op.ProviderOperationID), op.CreatedAt.Local().Format(time.DateTime), needs(op))
	return err
}

func (l *operationList) end() error {
	if l.table == nil {
		return nil
	}
	return l.table.Flush()
}

// needs says whether a person has something to do.
func needs(op ledger.Operation) string {
	switch {
	case op.Review.Open():
		return "review: " + op.Review.Reason
	case op.Status == ledger.Planned && op.Approval.State == ledger.Waiting:
		return "approval: " + op.Approval.Reason
	}
	return "-"
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func printOperation(w io.Writer, op ledger.Operation, history []ledger.Transition) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" && value != "-" {
			fmt.Fprintf(t, "%s\t%s\n", name, value)
		}
	}
	line("operation", op.ID)
	line("key", op.Key.String())
	line("action", op.Action)
	line("tenant", op.Tenant)
	line("workflow", op.Intent.WorkflowID)
	line("step", op.Intent.Step)
	line("business object", op.Intent.BusinessObject)
	line("business operation", op.Intent.BusinessOperationID)
	line("run", op.Intent.RunID)
	line("status", string(op.Status))
	line("attempts", fmt.Sprint(op.Attempts))
	line("provider", op.Provider)
	line("provider key", op.ProviderKey)
	line("provider operation", op.ProviderOperationID)
	line("provider status", op.ProviderStatus)
	line("last error", op.ErrorCode)
	line("unsettled since", moment(op.UnsettledSince))
	line("lease until", moment(op.LeaseUntil))
	line("next check", moment(op.NextCheckAt))
	line("expires", moment(op.ExpiresAt))
	line("needs", needs(op))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(t, "WHEN\tFROM\tTO\tATTEMPT\tWHY\tBY\tEVIDENCE")
	for _, h := range history {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", moment(h.At), dash(string(h.From)), h.To, h.Attempt, h.Reason, h.Actor, dash(string(h.Evidence)))
	}
	return t.Flush()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// printOutcome says what a decision left behind.
func printOutcome(s streams, op ledger.Operation, err error) error {
	if err != nil {
		return err
	}
	list := newOperationList(s.out, false)
	if err := list.add(op); err != nil {
		return err
	}
	return list.end()
}
