package postgres_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
)

// Illegal writes, as somebody with psql and all rights could try them. The operations in
// the ledger: 1 executing (unsettled), 2 succeeded, 3 failed_final after an attempt, 4 planned, 5 denied,
// 6 unknown, 7 a tombstone, 8 the workflow identity's.
var illegal = map[string]string{
	// What it is.
	"another key":               `UPDATE agent_operations SET idempotency_key = 'v1:' || repeat('ab', 32), moves = moves + 1 WHERE id = 2`,
	"another operation_id":      `UPDATE agent_operations SET operation_id = 'op_x', moves = moves + 1 WHERE id = 2`,
	"another id":                `UPDATE agent_operations SET id = 99, moves = moves + 1 WHERE id = 2`,
	"another tenant":            `UPDATE agent_operations SET tenant = 'x', moves = moves + 1 WHERE id = 2`,
	"another action":            `UPDATE agent_operations SET action_type = 'x', moves = moves + 1 WHERE id = 2`,
	"another revision":          `UPDATE agent_operations SET revision = 9, moves = moves + 1 WHERE id = 2`,
	"another base key":          `UPDATE agent_operations SET base_key = decode(repeat('ab', 32), 'hex'), moves = moves + 1 WHERE id = 8`,
	"another workflow":          `UPDATE agent_operations SET workflow_id = 'x', moves = moves + 1 WHERE id = 2`,
	"another time of birth":     `UPDATE agent_operations SET created_at = to_timestamp(1), moves = moves + 1 WHERE id = 2`,
	"another fingerprint":       `UPDATE agent_operations SET payload_hash = decode(repeat('ab', 32), 'hex'), moves = moves + 1 WHERE id = 2`,
	"another content":           `UPDATE agent_operations SET content_hash = decode(repeat('ab', 32), 'hex'), moves = moves + 1 WHERE id = 2`,
	"other field hashes":        `UPDATE agent_operations SET field_hashes = '\x00', moves = moves + 1 WHERE id = 4`,
	"another provider key":      `UPDATE agent_operations SET provider_key = 'x', moves = moves + 1 WHERE id = 6`,
	"another scope":             `UPDATE agent_operations SET provider_scope = 'x', moves = moves + 1 WHERE id = 6`,
	"no scope, by the program":  `UPDATE agent_operations SET provider_scope = NULL, actor = 'sweep:x', moves = moves + 1 WHERE id = 6`,
	"new arguments after a try": `UPDATE agent_operations SET status = 'planned', payload_hash = decode(repeat('ab', 32), 'hex'), moves = moves + 1 WHERE id = 3`,
	"deleted":                   `DELETE FROM agent_operations WHERE id = 2`,

	// How it moves.
	"born finished":              `INSERT INTO agent_operations (idempotency_key, operation_id, action_type, status, moves, payload_hash, evidence_json, created_at, updated_at) VALUES ('v1:' || repeat('ab', 32), 'op_x', 'x', 'succeeded', 1, decode(repeat('ab', 32), 'hex'), '{}', to_timestamp(1), to_timestamp(1))`,
	"born with two moves":        `INSERT INTO agent_operations (idempotency_key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) VALUES ('v1:' || repeat('ab', 32), 'op_x', 'x', 'planned', 2, decode(repeat('ab', 32), 'hex'), to_timestamp(1), to_timestamp(1))`,
	"a short key":                `INSERT INTO agent_operations (idempotency_key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) VALUES ('v1:' || repeat('ab', 16), 'op_x', 'x', 'planned', 1, decode(repeat('ab', 32), 'hex'), to_timestamp(1), to_timestamp(1))`,
	"a text for a time":          `UPDATE agent_operations SET next_check_at = 'soon', moves = moves + 1 WHERE id = 6`,
	"a move without a number":    `UPDATE agent_operations SET status = 'succeeded', evidence_json = '{}', unsettled_since = NULL WHERE id = 6`,
	"a change without a move":    `UPDATE agent_operations SET result_json = '{}' WHERE id = 2`,
	"two moves in one":           `UPDATE agent_operations SET status = 'succeeded', evidence_json = '{}', unsettled_since = NULL, moves = moves + 2 WHERE id = 6`,
	"no such status":             `UPDATE agent_operations SET status = 'done', moves = moves + 1 WHERE id = 6`,
	"success undone":             `UPDATE agent_operations SET status = 'unknown', next_check_at = to_timestamp(1), moves = moves + 1 WHERE id = 2`,
	"success done again":         `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 1, lease_owner = 'x', lease_until = to_timestamp(1), first_sent_at = to_timestamp(1), moves = moves + 1 WHERE id = 2`,
	"success without evidence":   `UPDATE agent_operations SET status = 'succeeded', evidence_json = NULL, unsettled_since = NULL, moves = moves + 1 WHERE id = 6`,
	"failure tried again":        `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 1, lease_owner = 'x', lease_until = to_timestamp(1), first_sent_at = to_timestamp(1), moves = moves + 1 WHERE id = 3`,
	"failure planned again":      `UPDATE agent_operations SET status = 'planned', attempt_count = 0, moves = moves + 1 WHERE id = 3`,
	"planned, then succeeded":    `UPDATE agent_operations SET status = 'succeeded', evidence_json = '{}', moves = moves + 1 WHERE id = 4`,
	"planned, then unknown":      `UPDATE agent_operations SET status = 'unknown', next_check_at = to_timestamp(1), moves = moves + 1 WHERE id = 4`,
	"a claim without an attempt": `UPDATE agent_operations SET status = 'executing', lease_owner = 'x', lease_until = to_timestamp(1), first_sent_at = to_timestamp(1), moves = moves + 1 WHERE id = 6`,
	"a claim of two attempts":    `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 2, lease_owner = 'x', lease_until = to_timestamp(1), first_sent_at = to_timestamp(1), moves = moves + 1 WHERE id = 6`,
	"a claim without a lease":    `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 1, lease_until = NULL, moves = moves + 1 WHERE id = 6`,
	"an attempt taken back":      `UPDATE agent_operations SET attempt_count = attempt_count - 1, moves = moves + 1 WHERE id = 6`,
	"a failure without a code":   `UPDATE agent_operations SET status = 'failed_final', unsettled_since = NULL, last_error_code = NULL, moves = moves + 1 WHERE id = 6`,
	"unknown, and nobody looks":  `UPDATE agent_operations SET next_check_at = NULL, moves = moves + 1 WHERE id = 6`,
	"a generation that falls":    `UPDATE agent_operations SET status = 'executing', attempt_count = attempt_count + 1, lease_owner = 'x', lease_until = to_timestamp(1), key_generation = -1, moves = moves + 1 WHERE id = 6`,

	// What is not known.
	"a failure proves more than itself":      `UPDATE agent_operations SET status = 'failed_final', last_error_code = 'x', unsettled_since = NULL, moves = moves + 1 WHERE id = 1`,
	"a postponement proves more than itself": `UPDATE agent_operations SET status = 'failed_retryable', last_error_code = 'x', unsettled_since = NULL, moves = moves + 1 WHERE id = 1`,
	"a failure that is unsettled":            `UPDATE agent_operations SET status = 'failed_final', last_error_code = 'x', moves = moves + 1 WHERE id = 1`,
	"settled while executing":                `UPDATE agent_operations SET unsettled_since = NULL, moves = moves + 1 WHERE id = 1`,
	"settled by the program, still unknown":  `UPDATE agent_operations SET unsettled_since = NULL, actor = 'sweep:x', moves = moves + 1 WHERE id = 6`,
	"unsettled later than it was":            `UPDATE agent_operations SET unsettled_since = unsettled_since + interval '1 second', moves = moves + 1 WHERE id = 6`,
	"unsettled after success":                `UPDATE agent_operations SET unsettled_since = to_timestamp(1), moves = moves + 1 WHERE id = 2`,

	// Its history, and what it keeps.
	"a line changed":                `UPDATE history SET reason = 'x' WHERE operation = 2`,
	"a line deleted":                `DELETE FROM history WHERE operation = 2`,
	"a line made up":                `INSERT INTO history (operation, at, token, seq, attempt, to_status) VALUES (2, now(), 1, 99, 1, 'succeeded')`,
	"a transition changed":          `UPDATE transitions SET reason = 'x'`,
	"a transition deleted":          `DELETE FROM transitions`,
	"a payload changed":             `UPDATE sealed_payloads SET sealed = '\x00' WHERE operation = 6`,
	"a payload thrown away":         `DELETE FROM sealed_payloads WHERE operation = 6`,
	"a payload after the end":       `INSERT INTO sealed_payloads VALUES (2, '\x00')`,
	"a fact changed":                `UPDATE ledger_facts SET value = '\x00'`,
	"a fact forgotten":              `DELETE FROM ledger_facts`,
	"details dropped":               `UPDATE agent_operations SET workflow_id = NULL, moves = moves + 1 WHERE id = 2`,
	"an open operation pruned":      `UPDATE agent_operations SET pruned = moves, moves = moves + 1 WHERE id = 6`,
	"pruned to another status":      `UPDATE agent_operations SET pruned = moves, moves = moves + 1, status = 'planned', attempt_count = 0 WHERE id = 5`,
	"pruned with its provider's id": `UPDATE agent_operations SET pruned = moves, moves = moves + 1, provider_operation_id = NULL WHERE id = 2`,
	"pruned further than it moved":  `UPDATE agent_operations SET pruned = moves + 5, moves = moves + 1 WHERE id = 2`,
	"a tombstone raised":            `UPDATE agent_operations SET pruned = NULL, moves = moves + 1 WHERE id = 7`,
	"a tombstone's later line":      `DELETE FROM history WHERE operation = 7`,
	"a tombstone's content":         `UPDATE agent_operations SET content_hash = decode(repeat('ab', 32), 'hex'), moves = moves + 1 WHERE id = 7`,

	// As only PostgreSQL can.
	"all operations gone":     `TRUNCATE agent_operations`,
	"all payloads gone":       `TRUNCATE sealed_payloads`,
	"all of the history gone": `TRUNCATE history`,
	"all facts gone":          `TRUNCATE ledger_facts`,
	"everything gone":         `TRUNCATE agent_operations, sealed_payloads, history, ledger_facts, limit_usage CASCADE`,
	"all usage gone":          `TRUNCATE limit_usage`,
	"an id of one's own":      `INSERT INTO agent_operations (id, idempotency_key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) VALUES (99, 'v1:' || repeat('ab', 32), 'op_x', 'x', 'planned', 1, decode(repeat('ab', 32), 'hex'), now(), now())`,
	"a key in capitals":       `INSERT INTO agent_operations (idempotency_key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) VALUES ('v1:' || repeat('AB', 32), 'op_x', 'x', 'planned', 1, decode(repeat('ab', 32), 'hex'), now(), now())`,
	"an upsert":               `INSERT INTO agent_operations (idempotency_key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) SELECT idempotency_key, 'op_x', 'x', 'planned', 1, payload_hash, now(), now() FROM agent_operations WHERE id = 2 ON CONFLICT (idempotency_key) DO UPDATE SET status = 'planned'`,
	"another's name":          `INSERT INTO agent_operations (idempotency_key, operation_id, action_type, status, moves, payload_hash, created_at, updated_at) SELECT 'v1:' || repeat('ab', 32), operation_id, 'x', 'planned', 1, payload_hash, now(), now() FROM agent_operations WHERE id = 2`,
	"another's revision":      `INSERT INTO agent_operations (idempotency_key, operation_id, base_key, revision, action_type, status, moves, payload_hash, created_at, updated_at) SELECT 'v1:' || repeat('ab', 32), 'op_x', base_key, revision, 'x', 'planned', 1, payload_hash, now(), now() FROM agent_operations WHERE id = 8`,
	"a second payload":        `INSERT INTO sealed_payloads VALUES (6, '\x00')`,
	"a payload by an upsert":  `INSERT INTO sealed_payloads VALUES (6, '\x00') ON CONFLICT (operation) DO UPDATE SET sealed = '\x00'`,
	"a fact by an upsert":     `INSERT INTO ledger_facts VALUES ('check', '\x00') ON CONFLICT (name) DO UPDATE SET value = '\x00'`,
	"a line twice":            `INSERT INTO history SELECT * FROM history WHERE operation = 2`,
	"less than nothing taken": `UPDATE limit_usage SET used = -1`,
}

// refusals are the SQLSTATEs of a refusal: of a rule, a constraint, a column that is always
// generated, a view that can't be written, a value that is none.
var refusals = []string{"OW001", "23502", "23505", "23514", "428C9", "55000", "22007"}

func TestTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	populate(t, openStore(t, place))
	conn := connect(t, place)
	before := dump(t, conn)
	for name, query := range illegal {
		_, err := conn.Exec(t.Context(), query)
		refused, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || !slices.Contains(refusals, refused.Code) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		if diff := cmp.Diff(before, dump(t, conn)); diff != "" {
			t.Fatalf("%s changed the ledger (-before +after):\n%s", name, diff)
		}
	}
}

// A trigger touches the ledger that it belongs to, whatever tables the session sees first.
func TestTriggersStayInTheirLedger(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	s := openStore(t, place)
	populate(t, s)
	conn := connect(t, place)
	if _, err := conn.Exec(t.Context(), `CREATE TEMPORARY TABLE history (LIKE history); CREATE TEMPORARY TABLE sealed_payloads (LIKE sealed_payloads);
		UPDATE agent_operations SET status = 'succeeded', evidence_json = '{}', unsettled_since = NULL, moves = moves + 1 WHERE id = 6`); err != nil {
		t.Fatal(err)
	}
	id := benchOperation(6).ID
	h, err := s.History(t.Context(), id)
	if err != nil || len(h) != 3 {
		t.Errorf("the history has %d lines (%v), want 3", len(h), err)
	}
	if sealed, err := s.Sealed(t.Context(), id); sealed != nil || err != nil {
		t.Errorf("Sealed = %q, %v; want nothing", sealed, err)
	}
}

// dump is the content of all tables.
func dump(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	var lines []string
	for _, query := range []string{
		`SELECT o::text FROM agent_operations o ORDER BY id`, `SELECT h::text FROM history h ORDER BY operation, seq`,
		`SELECT p::text FROM sealed_payloads p ORDER BY operation`, `SELECT f::text FROM ledger_facts f ORDER BY name`, `SELECT u::text FROM limit_usage u ORDER BY bucket`,
	} {
		lines = append(lines, texts(t, conn, query)...)
	}
	return lines
}

// texts reads the only column of a query.
func texts(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// populate stores the operations that illegal speaks of.
func populate(t *testing.T, s *postgres.Store) {
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
	tomb := must(must(benchOperation(7).Insert(early, benchSeal, note)).Fail(benchTime.Add(-time.Hour), "declined", note))
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
	limited := claim
	limited.Takes = ledger.Allowance{Reserved: "run"}
	must(benchOperation(9).Insert(limited, benchSeal, note))
}
