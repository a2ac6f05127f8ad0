package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A lost answer of a provider that can't be asked, settled by the bank's own list; and a list
// that shows another amount, which settles nothing.
func TestStatementSettlesWhatNobodyCanAsk(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), t.TempDir()
	data := filepath.Join(dir, "data")
	unaskable := []string{"--sandbox-lookup=false", "--sandbox-idempotent=false", "--sandbox-faults", "payment_order.create:lose-reply:2"}
	child := startChild(t, data, nil, unaskable...)
	keys := map[string]string{} // by business reference
	for _, reference := range []string{"invoice-1", "invoice-2"} {
		args := fmt.Sprintf(`{"debit_account":"DE01","payee_account":"DE02","payee_name":"Planted Person","amount":"12.50","currency":"EUR","business_reference":%q}`, reference)
		said, err := child.call(ctx, "payment_order_create", with(fmt.Sprintf(`{"business_operation_id":%q}`, reference), args))
		if err != nil || said.Status != "unknown" {
			t.Fatalf("%+v, %v, want unknown", said, err)
		}
		code, out, errOut := command(ctx, "operations", "show", said.OperationID, "--json", "--data-dir", data)
		var shown struct {
			ProviderKey string `json:"provider_key"`
		}
		if code != exitDone || json.Unmarshal([]byte(out), &shown) != nil || shown.ProviderKey == "" {
			t.Fatalf("show: %d %s %s", code, out, errOut)
		}
		keys[reference] = shown.ProviderKey
	}

	today := time.Now().UTC().Format(time.DateOnly)
	register := filepath.Join(dir, "register.csv")
	lines := "Ref;Id;Amount;Currency;Day;DC\n" +
		keys["invoice-1"] + ";E1;12.50;EUR;" + today + ";D\n" +
		keys["invoice-2"] + ";E2;99.00;EUR;" + today + ";D\n"
	config := filepath.Join(dir, "onceward.yaml")
	columns := "statements:\n  csv:\n    delimiter: ';'\n    date_format: YYYY-MM-DD\n    directions: {D: debit, C: credit}\n" +
		"    columns: {reference: [Ref], id: Id, amount: Amount, currency: Currency, booked: Day, direction: DC}\n"
	for file, text := range map[string]string{register: lines, config: columns} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reconcile := []string{"operations", "reconcile", "--statement", register, "--data-dir", data, "--config", config}
	if code, _, errOut := command(ctx, reconcile...); code != exitUsage || !strings.Contains(errOut, "--by") {
		t.Fatalf("without --by: %d %s", code, errOut)
	}
	code, out, errOut := command(ctx, append(reconcile, "--by", "ann")...)
	if code != exitDone || strings.Contains(out+errOut, "Planted Person") {
		t.Fatalf("reconcile: %d\n%s%s", code, out, errOut)
	}
	_, listed, _ := command(ctx, "operations", "list", "--json", "--data-dir", data)
	statuses := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(listed), "\n") {
		var op struct {
			Name   string `json:"business_operation_id"`
			Status string `json:"status"`
			Review string `json:"review_reason"`
		}
		if err := json.Unmarshal([]byte(line), &op); err != nil {
			t.Fatal(err)
		}
		statuses[op.Name] = op.Status + " " + op.Review
	}
	if statuses["invoice-1"] != "succeeded " || statuses["invoice-2"] != "unknown contradiction" {
		t.Errorf("after the statement: %v\n%s", statuses, out)
	}
}
