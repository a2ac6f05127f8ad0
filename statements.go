package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/statement"
)

// statementFlags bring a bank export or a register to reconcile.
type statementFlags struct {
	Statement     string `placeholder:"FILE" help:"Reconcile against a bank export or register: CSV (columns in the configuration), or ISO 20022 camt.053."`
	Format        string `enum:",csv,camt.053" default:"" help:"How to read it: csv or camt.053. Default: by its content."`
	ClosedThrough string `placeholder:"YYYY-MM-DD" help:"With a CSV file: the last day on which nothing can be booked any more. Without it the file proves presence only."`
	Register      string `placeholder:"PROVIDER" help:"The file is this provider's own register, so what isn't in it wasn't done there. Without it only the file's own accounts count."`
	By            string `placeholder:"WHO" help:"Who brings the statement."`
	Reason        string `placeholder:"TEXT" help:"Why. Kept in the history: no personal data."`
}

// reconcile settles, by the statement, the operations whose outcome is unknown.
func (f statementFlags) reconcile(ctx context.Context, s streams, o *office) error {
	if f.By == "" {
		return errors.New("--statement needs --by: a statement is evidence that a person brings")
	}
	file, err := os.Open(f.Statement)
	if err != nil {
		return fmt.Errorf("--statement: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	read, err := statement.Read(file, statement.Format(f.Format), o.config.Statements.CSV)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Statement, err)
	}
	if f.ClosedThrough != "" {
		if read.Through, err = time.Parse(time.DateOnly, f.ClosedThrough); err != nil {
			return errors.New("--closed-through is a day like 2026-11-29")
		}
	}
	brought := ledger.Statement{
		Digest:  read.Digest,
		Covered: ledger.Coverage{From: read.From, Through: read.Through, Shows: f.shows(read.Accounts)},
		Amounts: map[string]ledger.AmountOf{providers.PaymentOrderCreate: ordered, providers.RefundCreate: ordered},
	}
	for _, e := range read.Entries {
		brought.Entries = append(brought.Entries, ledger.StatementEntry{
			References: e.References, ID: e.ID, Minor: e.Amount.Minor, Currency: e.Amount.Currency, Booked: e.Booked,
			Pending: e.Status == statement.Pending, Reversed: e.Status == statement.Reversed || !e.Debit,
		})
	}
	outcomes, err := o.ledger.ReconcileStatement(ctx, brought, ledger.Person{By: f.By, Reason: f.Reason})
	return errors.Join(printStatement(s, read, outcomes), err)
}

// shows says whose effects would stand in the file: those of the accounts it is about, and
// of the provider whose register it is.
func (f statementFlags) shows(accounts []string) func(ledger.Operation, ledger.Payload) bool {
	return func(op ledger.Operation, p ledger.Payload) bool {
		if f.Register != "" {
			return op.Provider == f.Register
		}
		var order struct {
			DebitAccount string `json:"debit_account"`
		}
		return json.Unmarshal(p.Arguments, &order) == nil && order.DebitAccount != "" && slices.Contains(accounts, order.DebitAccount)
	}
}

// ordered reads the amount from sealed arguments.
func ordered(p ledger.Payload) (minor int64, currency string, err error) {
	var order struct {
		Amount   string `json:"amount"`
		Currency string `json:"currency"`
	}
	if err := json.Unmarshal(p.Arguments, &order); err != nil {
		return 0, "", errors.New("the sealed arguments can't be read")
	}
	m, err := providers.ParseMoney(order.Amount, order.Currency)
	return m.Minor, m.Currency, err
}

func printStatement(s streams, read statement.Statement, outcomes []ledger.StatementOutcome) error {
	fmt.Fprintf(s.out, "%d entries read.", len(read.Entries))
	if read.Partial != "" {
		fmt.Fprintf(s.out, " The file doesn't cover its days completely (%s), so it proves presence only.", read.Partial)
	}
	fmt.Fprintln(s.out)
	t := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "OPERATION\tACTION\tSTATUS\tFINDING\tWHY\tENTRY")
	for _, outcome := range outcomes {
		op := outcome.Operation
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", op.ID, op.Action, op.Status, outcome.Finding, dash(outcome.Why), dash(outcome.Entry))
	}
	return t.Flush()
}
