package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// listed runs operations list --json.
func listed(ctx context.Context, t *testing.T, dir string, flags ...string) []map[string]any {
	t.Helper()
	code, out, errOut := command(ctx, append([]string{"operations", "list", "--json", "--data-dir", dir}, flags...)...)
	if code != exitDone {
		t.Fatalf("operations list ended with %d: %s", code, errOut)
	}
	var found []map[string]any
	for line := range strings.Lines(out) {
		var op map[string]any
		if err := json.Unmarshal([]byte(line), &op); err != nil {
			t.Fatalf("not one object a line: %q: %v", line, err)
		}
		found = append(found, op)
	}
	return found
}

func onlyOperation(ctx context.Context, t *testing.T, dir string) map[string]any {
	t.Helper()
	found := listed(ctx, t, dir)
	if len(found) != 1 {
		t.Fatalf("%d operations, want 1", len(found))
	}
	return found[0]
}

// storyDir is a data directory with a mail whose reply was lost, a refund that was
// refused, a payment that waits for a person, and a conflict.
func storyDir(ctx context.Context, t *testing.T) string {
	t.Helper()
	dir := dataDir(t)
	s := startLocal(t, "stdio", dir, "--sandbox-faults", "email.send:lose-reply,refund:refuse,payment_order.create:cached-error", "--no-sandbox-lookup", "--no-sandbox-idempotent", "--sandbox-lease", "1h")
	mail := with(`{"workflow_id":"case-1842","step":"notify","business_object":"order-1","run_id":"run-1"}`, `{"to":["anna@example.com"],"subject":"s","body":"b"}`)
	talk(ctx, t, s, "email_send", mail)
	talk(ctx, t, s, "refund", with(refundIntent, refundArgs))
	talk(ctx, t, s, "refund", with(refundIntent, strings.ReplaceAll(refundArgs, "100.00", "101.00")))
	talk(ctx, t, s, "payment_order_create", with(`{"workflow_id":"case-7","step":"pay","business_object":"invoice-7"}`, faultCalls[1].args))
	s.stop()
	return dir
}

// The columns that programs depend on. What isn't for anybody's eyes is not among them.
var listedColumns = strings.Fields(`
	idempotency_key operation_id tenant action_type identity workflow_id step business_object revision business_operation_id run_id
	payload_hash status attempt_count provider provider_scope provider_key key_generation provider_operation_id provider_status
	reference_json result_json last_error_code lease_owner lease_until first_sent_at unsettled_since next_check_at created_at updated_at`)

func TestOperationsListPrintsTheColumns(t *testing.T) {
	t.Parallel()
	ctx := waiting(t)
	dir := storyDir(ctx, t)
	found := listed(ctx, t, dir)
	var actions, created []string
	for _, op := range found {
		actions = append(actions, op["action_type"].(string)+" "+op["status"].(string))
		created = append(created, op["created_at"].(string))
		for _, name := range listedColumns {
			if _, ok := op[name]; !ok {
				t.Errorf("%v has no %s", op["operation_id"], name)
			}
		}
		for name := range op {
			hidden := strings.Contains(name, "seal") || strings.Contains(name, "hash") && name != "payload_hash"
			if hidden || name == "alike" || name == "key" || name == "base_key" {
				t.Errorf("%v shows %s", op["operation_id"], name)
			}
		}
	}
	want := []string{"email.send unknown", "refund failed_final", "payment_order.create unknown"}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	if !slices.IsSorted(created) {
		t.Errorf("not the oldest first: %v", created)
	}
	if got := listed(ctx, t, dir, "--workflow-id", "case-7"); len(got) != 1 || got[0]["business_object"] != "invoice-7" {
		t.Errorf("of workflow case-7: %v", got)
	}
	if got := listed(ctx, t, dir, "--limit", "1"); len(got) != 1 || got[0]["action_type"] != "email.send" {
		t.Errorf("with a limit of 1: %v", got)
	}
}

func TestOperationsShowTellsTheHistory(t *testing.T) {
	t.Parallel()
	ctx := waiting(t)
	dir := storyDir(ctx, t)
	refund := listed(ctx, t, dir, "--action", "refund")[0]
	for _, name := range []string{"operation_id", "idempotency_key"} { // both name it
		code, out, errOut := command(ctx, "operations", "show", refund[name].(string), "--json", "--data-dir", dir)
		if code != exitDone {
			t.Fatalf("operations show ended with %d: %s", code, errOut)
		}
		var shown struct {
			OperationID string `json:"operation_id"`
			Transitions []struct {
				Seq        int             `json:"seq"`
				FromStatus *string         `json:"from_status"`
				ToStatus   string          `json:"to_status"`
				Attempt    int             `json:"attempt"`
				Reason     string          `json:"reason"`
				Evidence   json.RawMessage `json:"evidence"`
				Actor      string          `json:"actor"`
				At         time.Time       `json:"at"`
			} `json:"transitions"`
		}
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			t.Fatal(err)
		}
		var story []string
		var at []time.Time
		for i, step := range shown.Transitions {
			from := "none"
			if step.FromStatus != nil {
				from = *step.FromStatus
			}
			story = append(story, from+" > "+step.ToStatus+": "+step.Reason)
			at = append(at, step.At)
			if step.Seq != i+1 || step.Actor == "" || step.Attempt != 1 {
				t.Errorf("step %d: %+v", i, step)
			}
		}
		want := []string{"none > executing: claimed", "executing > failed_final: provider_answered", "failed_final > failed_final: conflict"}
		if diff := cmp.Diff(want, story); diff != "" {
			t.Errorf("the story (-want +got):\n%s", diff)
		}
		if !slices.IsSortedFunc(at, time.Time.Compare) || shown.OperationID != refund["operation_id"] {
			t.Errorf("%s at %v", shown.OperationID, at)
		}
	}
}

// The queries that the documentation gives, letter by letter.
const (
	workflowQuery = `SELECT idempotency_key, action_type, status, attempt_count, provider_operation_id, created_at, updated_at
FROM agent_operations WHERE workflow_id = 'case-1842' ORDER BY created_at;`
	duplicatesQuery = `SELECT idempotency_key, count(*) AS rows_per_key FROM agent_operations GROUP BY idempotency_key HAVING count(*) > 1;`
)

func TestTheTableAnswersTheTwoQueries(t *testing.T) {
	t.Parallel()
	ctx := waiting(t)
	dir := storyDir(ctx, t)
	db := openTable(t, dir)
	rows, err := db.QueryContext(ctx, workflowQuery)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got [][]any
	for rows.Next() {
		var key, action, status string
		var attempts, created, updated int64
		var id *string
		if err := rows.Scan(&key, &action, &status, &attempts, &id, &created, &updated); err != nil {
			t.Fatal(err)
		}
		if created > updated || created < time.Now().Add(-time.Hour).UnixMicro() {
			t.Errorf("created at %d and updated at %d", created, updated)
		}
		got = append(got, []any{key, action, status, attempts})
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var want [][]any
	for _, op := range listed(ctx, t, dir, "--workflow-id", "case-1842") {
		want = append(want, []any{op["idempotency_key"], op["action_type"], op["status"], int64(op["attempt_count"].(float64))})
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 2 {
		t.Errorf("the workflow's operations (-listed +queried):\n%s", diff)
	}
	var key string
	var count int
	if err := db.QueryRowContext(ctx, duplicatesQuery).Scan(&key, &count); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("%d rows of one key, %v; want none", count, err)
	}
}

// The database refuses what must never happen, whoever writes.
func TestTheTableRefusesIllegalUpdates(t *testing.T) {
	t.Parallel()
	ctx := waiting(t)
	dir := storyDir(ctx, t)
	db := openTable(t, dir)
	before := listed(ctx, t, dir)
	for _, statement := range []string{
		`UPDATE agent_operations SET status = 'succeeded' WHERE action_type = 'email.send'`,
		`UPDATE agent_operations SET status = 'executing', moves = moves + 1 WHERE action_type = 'refund'`,
		`UPDATE agent_operations SET status = 'planned', moves = moves + 1 WHERE action_type = 'refund'`,
		`UPDATE agent_operations SET status = 'done', moves = moves + 1 WHERE action_type = 'refund'`,
		`UPDATE agent_operations SET payload_hash = zeroblob(32), moves = moves + 1 WHERE action_type = 'refund'`,
		`UPDATE agent_operations SET unsettled_since = NULL, actor = 'sweep:x', moves = moves + 1 WHERE action_type = 'email.send'`,
		`DELETE FROM agent_operations WHERE action_type = 'refund'`,
		`INSERT OR REPLACE INTO agent_operations SELECT * FROM agent_operations WHERE action_type = 'refund'`,
		`DELETE FROM history`,
		`UPDATE history SET to_status = 'succeeded'`,
		`DELETE FROM transitions`,
	} {
		if result, err := db.ExecContext(ctx, statement); err == nil {
			n, _ := result.RowsAffected()
			t.Errorf("%s: changed %d rows", statement, n)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, listed(ctx, t, dir)); diff != "" {
		t.Errorf("the operations (-before +after):\n%s", diff)
	}
}

// openTable opens the ledger's file as any other program would.
func openTable(t *testing.T, dir string) *sql.DB {
	t.Helper()
	path := filepath.Join(dir, "ledger.db")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
