package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

// Illegal writes, as somebody with another SQLite program could try them. The operations in
// the file: 1 executing (unsettled), 2 succeeded, 3 failed_final after an attempt, 4 planned, 5 denied,
// 6 unknown, 7 a tombstone, 8 the workflow identity's.
var illegal = map[string]string{
	// What it is.
	"another key":               `UPDATE agent_operations SET key = randomblob(32), moves = moves + 1 WHERE id = 2`,
	"another operation_id":      `UPDATE agent_operations SET operation_id = 'op_x', moves = moves + 1 WHERE id = 2`,
	"another id":                `UPDATE agent_operations SET id = 99, moves = moves + 1 WHERE id = 2`,
	"another tenant":            `UPDATE agent_operations SET tenant = 'x', moves = moves + 1 WHERE id = 2`,
	"another action":            `UPDATE agent_operations SET action_type = 'x', moves = moves + 1 WHERE id = 2`,
	"another revision":          `UPDATE agent_operations SET revision = 9, moves = moves + 1 WHERE id = 2`,
	"another base key":          `UPDATE agent_operations SET base_key = randomblob(32), moves = moves + 1 WHERE id = 8`,
	"another workflow":          `UPDATE agent_operations SET workflow_id = 'x', moves = moves + 1 WHERE id = 2`,
	"another time of birth":     `UPDATE agent_operations SET created_at = 1, moves = moves + 1 WHERE id = 2`,
	"another fingerprint":       `UPDATE agent_operations SET payload_hash = randomblob(32), moves = moves + 1 WHERE id = 2`,
	"another content":           `UPDATE agent_operations SET content_hash = randomblob(32), moves = moves + 1 WHERE id = 2`,
	"other field hashes":        `UPDATE agent_operations SET field_hashes = x'00', moves = moves + 1 WHERE id = 4`,
	"another provider key":      `UPDATE agent_operations SET provider_key = 'x', moves = moves + 1 WHERE id = 6`,
	"another scope":             `UPDATE agent_operations SET provider_scope = 'x', moves = moves + 1 WHERE id = 6`,
	"no scope, by the program":  `UPDATE agent_operations SET provider_scope = NULL, actor = 'sweep:x', moves = moves + 1 WHERE id = 6`,
	"new arguments after a try": `UPDATE agent_operations SET status = 'planned', payload_hash = randomblob(32), moves = moves + 1 WHERE id = 3`,
	"deleted":                   `DELETE FROM agent_operations WHERE id = 2`,
	"replaced by its key":       `INSERT OR REPLACE INTO agent_operations (key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) SELECT key, 'op_x', 'x', 'planned', 1, payload_hash, 1, 1 FROM agent_operations WHERE id = 2`,
	"replaced by its id":        `INSERT OR REPLACE INTO agent_operations (id, key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) VALUES (2, randomblob(32), 'op_x', 'x', 'planned', 1, randomblob(32), 1, 1)`,
	"replaced by its name":      `INSERT OR REPLACE INTO agent_operations (key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) SELECT randomblob(32), operation_id, 'x', 'planned', 1, payload_hash, 1, 1 FROM agent_operations WHERE id = 2`,
	"replaced by its revision":  `INSERT OR REPLACE INTO agent_operations (key, operation_id, base_key, revision, action_type, status, moves, payload_hash, created_at, updated_at) SELECT randomblob(32), 'op_x', base_key, revision, 'x', 'planned', 1, payload_hash, 1, 1 FROM agent_operations WHERE id = 8`,
	"update or replace":         `UPDATE OR REPLACE agent_operations SET operation_id = (SELECT operation_id FROM agent_operations WHERE id = 3), moves = moves + 1 WHERE id = 2`,

	// How it moves.
	"born finished":              `INSERT INTO agent_operations (key, operation_id, action_type, status, moves, payload_hash, evidence_json, created_at, updated_at) VALUES (randomblob(32), 'op_x', 'x', 'succeeded', 1, randomblob(32), '{}', 1, 1)`,
	"born with two moves":        `INSERT INTO agent_operations (key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) VALUES (randomblob(32), 'op_x', 'x', 'planned', 2, randomblob(32), 1, 1)`,
	"a short key":                `INSERT INTO agent_operations (key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) VALUES (randomblob(16), 'op_x', 'x', 'planned', 1, randomblob(32), 1, 1)`,
	"a text for a time":          `UPDATE agent_operations SET next_check_at = 'soon', moves = moves + 1 WHERE id = 6`,
	"a move without a number":    `UPDATE agent_operations SET status = 'succeeded', evidence_json = '{}', unsettled_since = NULL WHERE id = 6`,
	"a change without a move":    `UPDATE agent_operations SET result_json = '{}' WHERE id = 2`,
	"two moves in one":           `UPDATE agent_operations SET status = 'succeeded', evidence_json = '{}', unsettled_since = NULL, moves = moves + 2 WHERE id = 6`,
	"no such status":             `UPDATE agent_operations SET status = 'done', moves = moves + 1 WHERE id = 6`,
	"success undone":             `UPDATE agent_operations SET status = 'unknown', next_check_at = 1, moves = moves + 1 WHERE id = 2`,
	"success done again":         `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 1, lease_owner = 'x', lease_until = 1, first_sent_at = 1, moves = moves + 1 WHERE id = 2`,
	"success without evidence":   `UPDATE agent_operations SET status = 'succeeded', evidence_json = NULL, unsettled_since = NULL, moves = moves + 1 WHERE id = 6`,
	"failure tried again":        `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 1, lease_owner = 'x', lease_until = 1, first_sent_at = 1, moves = moves + 1 WHERE id = 3`,
	"failure planned again":      `UPDATE agent_operations SET status = 'planned', attempt_count = 0, moves = moves + 1 WHERE id = 3`,
	"planned, then succeeded":    `UPDATE agent_operations SET status = 'succeeded', evidence_json = '{}', moves = moves + 1 WHERE id = 4`,
	"planned, then unknown":      `UPDATE agent_operations SET status = 'unknown', next_check_at = 1, moves = moves + 1 WHERE id = 4`,
	"a claim without an attempt": `UPDATE agent_operations SET status = 'executing', lease_owner = 'x', lease_until = 1, first_sent_at = 1, moves = moves + 1 WHERE id = 6`,
	"a claim of two attempts":    `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 2, lease_owner = 'x', lease_until = 1, first_sent_at = 1, moves = moves + 1 WHERE id = 6`,
	"a claim without a lease":    `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 1, lease_until = NULL, moves = moves + 1 WHERE id = 6`,
	"an attempt taken back":      `UPDATE agent_operations SET attempt_count = attempt_count - 1, moves = moves + 1 WHERE id = 6`,
	"a failure without a code":   `UPDATE agent_operations SET status = 'failed_final', unsettled_since = NULL, last_error_code = NULL, moves = moves + 1 WHERE id = 6`,
	"unknown, and nobody looks":  `UPDATE agent_operations SET next_check_at = NULL, moves = moves + 1 WHERE id = 6`,
	"a generation that falls":    `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 1, lease_owner = 'x', lease_until = 1, key_generation = -1, moves = moves + 1 WHERE id = 6`,

	// What is not known.
	"a failure proves more than itself":      `UPDATE agent_operations SET status = 'failed_final', last_error_code = 'x', unsettled_since = NULL, moves = moves + 1 WHERE id = 1`,
	"a postponement proves more than itself": `UPDATE agent_operations SET status = 'failed_retryable', last_error_code = 'x', unsettled_since = NULL, moves = moves + 1 WHERE id = 1`,
	"a failure that is unsettled":            `UPDATE agent_operations SET status = 'failed_final', last_error_code = 'x', moves = moves + 1 WHERE id = 1`,
	"settled while executing":                `UPDATE agent_operations SET unsettled_since = NULL, moves = moves + 1 WHERE id = 1`,
	"settled by the program, still unknown":  `UPDATE agent_operations SET unsettled_since = NULL, actor = 'sweep:x', moves = moves + 1 WHERE id = 6`,
	"unsettled later than it was":            `UPDATE agent_operations SET unsettled_since = unsettled_since + 1, moves = moves + 1 WHERE id = 6`,
	"unsettled after success":                `UPDATE agent_operations SET unsettled_since = 1, moves = moves + 1 WHERE id = 2`,

	// Its history, and what it keeps.
	"a line changed":                `UPDATE history SET reason = 'x' WHERE operation = 2`,
	"a line deleted":                `DELETE FROM history WHERE operation = 2`,
	"a line replaced":               `INSERT OR REPLACE INTO history SELECT operation, seq, from_status, to_status, attempt, 'x', evidence, actor, at FROM history WHERE operation = 2`,
	"a line made up":                `INSERT INTO history VALUES (2, 99, 'planned', 'succeeded', 1, 'x', NULL, 'x', 1)`,
	"a transition changed":          `UPDATE transitions SET reason = 'x'`,
	"a transition deleted":          `DELETE FROM transitions`,
	"a payload changed":             `UPDATE sealed_payloads SET sealed = x'00' WHERE operation = 6`,
	"a payload replaced":            `INSERT OR REPLACE INTO sealed_payloads VALUES (6, x'00')`,
	"a payload thrown away":         `DELETE FROM sealed_payloads WHERE operation = 6`,
	"a payload after the end":       `INSERT INTO sealed_payloads VALUES (2, x'00')`,
	"a fact changed":                `UPDATE ledger_facts SET value = x'00'`,
	"a fact replaced":               `INSERT OR REPLACE INTO ledger_facts VALUES ('check', x'00')`,
	"a fact forgotten":              `DELETE FROM ledger_facts`,
	"details dropped":               `UPDATE agent_operations SET workflow_id = NULL, moves = moves + 1 WHERE id = 2`,
	"an open operation pruned":      `UPDATE agent_operations SET pruned = moves, moves = moves + 1 WHERE id = 6`,
	"pruned to another status":      `UPDATE agent_operations SET pruned = moves, moves = moves + 1, status = 'planned', attempt_count = 0 WHERE id = 5`,
	"pruned with its provider's id": `UPDATE agent_operations SET pruned = moves, moves = moves + 1, provider_operation_id = NULL WHERE id = 2`,
	"pruned further than it moved":  `UPDATE agent_operations SET pruned = moves + 5, moves = moves + 1 WHERE id = 2`,
	"a tombstone raised":            `UPDATE agent_operations SET pruned = NULL, moves = moves + 1 WHERE id = 7`,
	"a tombstone's later line":      `DELETE FROM history WHERE operation = 7`,
	"a tombstone's content":         `UPDATE agent_operations SET content_hash = randomblob(32), moves = moves + 1 WHERE id = 7`,
}

func TestTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openStore(t, path)
	populate(t, s)
	db := openRaw(t, path)
	before := dump(t, db)
	for name, query := range illegal {
		_, err := db.Exec(query)
		var refused *driver.Error
		isView := name == "a transition changed" || name == "a transition deleted"
		if !errors.As(err, &refused) || refused.Code()&0xff != lib.SQLITE_CONSTRAINT && !isView {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		if diff := cmp.Diff(before, dump(t, db)); diff != "" {
			t.Fatalf("%s changed the ledger (-before +after):\n%s", name, diff)
		}
	}
}

// dump is the content of all tables.
func dump(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var lines []string
	for _, query := range []string{
		`SELECT json_array(id, hex(key), operation_id, status, attempt_count, moves, hex(payload_hash), hex(content_hash), provider_operation_id, result_json, workflow_id, revision, pruned, unsettled_since, next_check_at, provider_key, provider_scope) FROM agent_operations ORDER BY id`,
		`SELECT json_array(operation, seq, from_status, to_status, reason, evidence) FROM history ORDER BY operation, seq`,
		`SELECT json_array(operation, hex(sealed)) FROM sealed_payloads ORDER BY operation`,
		`SELECT json_array(name, hex(value)) FROM ledger_facts ORDER BY name`,
	} {
		lines = append(lines, texts(t, db, query)...)
	}
	return lines
}

// texts reads the only column of a query.
func texts(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var values []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

// populate stores the operations that illegal speaks of.
func populate(t *testing.T, s *sqlite.Store) {
	t.Helper()
	must := func(m ledger.Move, err error) ledger.Operation {
		t.Helper()
		if err == nil {
			err = s.Record(t.Context(), m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m.To()
	}
	note := ledger.Note{Actor: "worker:test", Reason: "test", Evidence: json.RawMessage(`{}`)}
	claim := ledger.Claim{Owner: "host", At: benchTime, Lease: time.Minute, Provider: "sandbox", Scope: "scope"}
	insert := func(i int) ledger.Operation { return must(benchOperation(i).Insert(claim, benchSeal, note)) }
	succeed := func(op ledger.Operation) ledger.Operation {
		return must(op.Succeed(benchTime, ledger.Receipt{ProviderOperationID: "re_1", Result: json.RawMessage(`{}`)}, time.Time{}, note))
	}
	doubt := func(op ledger.Operation) ledger.Operation {
		return must(op.Doubt(benchTime, "timeout", benchTime.Add(time.Hour), note))
	}
	must(doubt(insert(1)).Claim(claim, note))
	succeed(insert(2))
	must(insert(3).Fail(benchTime, "declined", note))
	must(benchOperation(4).Plan(benchTime, benchTime.Add(time.Hour), ledger.Approval{Reason: "alike"}, nil, note))
	must(must(benchOperation(5).Plan(benchTime, benchTime.Add(time.Hour), ledger.Approval{Reason: "alike"}, nil, note)).Fail(benchTime, "denied", note))
	doubt(insert(6))
	early := claim
	early.At = benchTime.Add(-2 * time.Hour)
	tomb := must(must(benchOperation(7).Insert(early, nil, note)).Fail(benchTime.Add(-time.Hour), "declined", note))
	if n, err := s.Prune(t.Context(), ledger.Prunable{Before: benchTime, Limit: 10}, func(op ledger.Operation, _ []ledger.Transition) ledger.Operation { return op.Tombstone(nil) }); err != nil || n != 1 {
		t.Fatalf("Prune = %d, %v; want 1", n, err)
	}
	found, err := s.Find(t.Context(), ledger.Filter{ID: tomb.ID})
	if err != nil {
		t.Fatal(err)
	}
	must(found[0].Observe(benchTime, note, func(o *ledger.Operation) { o.Conflicts++ }))
	byWorkflow := benchOperation(8)
	byWorkflow.BaseKey, byWorkflow.Intent.Identity = ledger.Key{1}, ledger.Workflow
	must(byWorkflow.Insert(claim, benchSeal, note))
	if _, err := s.Remember(t.Context(), "check", []byte("value")); err != nil {
		t.Fatal(err)
	}
}
