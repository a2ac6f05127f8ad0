package ledger_test

import (
	"database/sql"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

func auditor(t *testing.T, secret string) *ledger.Auditor {
	t.Helper()
	s, err := ledger.NewSecret([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return ledger.NewAuditor(s)
}

// aWholeLife fills a ledger with operations of all kinds, over several hours, seals them, and prunes some.
func aWholeLife(t *world) *server {
	t.audit = auditor(t.T, "a secret for tests")
	t.policy.ReviewOverdue = time.Hour
	s := t.start()
	s.NewID = idNow
	t.provider.will(losesReply, refuses, isUnreachable)
	s.call(strictly("a", theArgs))
	s.call(strictly("b", theArgs))
	s.call(strictly("c", theArgs))
	s.refused(strictly("a", args{"900.00", "sorry"}))
	waits := s.call(needing("d", theArgs)).Operation
	t.seal(s, 2*time.Hour)
	t.approve(s, waits.ID)
	s.call(needing("d", theArgs))
	s.call(strictly("c", theArgs)) // after the checkpoint that seals it
	s.call(strictly("e", theArgs))
	t.seal(s, 3*time.Hour)
	if n, err := s.Prune(t.Context(), ledger.Prunable{Before: time.Now().Add(-4 * time.Hour), Limit: 100}, nil); err != nil || n == 0 {
		t.Fatalf("Prune = %d, %v", n, err)
	}
	s.call(strictly("a", theArgs)) // a replay of a tombstone
	s.call(strictly("f", theArgs))
	s.call(strictly("g", theArgs))
	t.seal(s, 2*time.Hour)
	s.call(strictly("h", theArgs)) // not sealed yet
	return s
}

// idNow is an id of the bubble's time: the uuid package's only go forward, over all bubbles.
func idNow() string {
	id := uuid.New()
	binary.BigEndian.PutUint64(id[:8], uint64(time.Now().UnixMilli())<<16|0x7000|uint64(id[7]))
	return "op_" + id.String()
}

func (w *world) seal(s *server, after time.Duration) {
	w.Helper()
	pass(after)
	if err := s.Seal(w.Context()); err != nil {
		w.Fatalf("Seal: %v", err)
	}
}

func TestAuditOfAnHonestLedger(t *testing.T) {
	inWorld(t, func(t *world) {
		s := aWholeLife(t)
		report, err := s.VerifyAudit(t.Context(), "")
		if err != nil || len(report.Problems) != 0 {
			t.Fatalf("%v, %v; want nothing", report.Problems, err)
		}
		if report.Checkpoints != 3 || report.Operations == 0 || report.Tombstones == 0 || report.Transitions < 2*report.Operations-2 || report.LastProof == "" {
			t.Errorf("the report is %+v", report)
		}
		other := t.start() // seals nothing twice
		if err := other.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again, err := other.VerifyAudit(t.Context(), ""); err != nil || again.Checkpoints != 3 {
			t.Errorf("after another server's Seal: %+v, %v", again, err)
		}
	})
}

// TestAuditFindsEdits: whatever somebody with the database file, and without the secret, changes,
// removes or puts in.
func TestAuditFindsEdits(t *testing.T) {
	for name, edit := range map[string]string{
		"a line's reason":            `UPDATE history SET reason = 'other' WHERE rowid_of('e', operation) AND seq = 1`,
		"a line's actor":             `UPDATE history SET actor = 'person:eve' WHERE rowid_of('e', operation) AND seq = 2`,
		"a line's evidence":          `UPDATE history SET evidence = '{}' WHERE rowid_of('e', operation) AND seq = 2`,
		"a line's time":              `UPDATE history SET at = at + 1 WHERE rowid_of('e', operation) AND seq = 2`,
		"a line's status":            `UPDATE history SET to_status = 'failed_final' WHERE rowid_of('e', operation) AND seq = 2`,
		"a line's attempt":           `UPDATE history SET attempt = 9 WHERE rowid_of('e', operation) AND seq = 2`,
		"a line removed":             `DELETE FROM history WHERE rowid_of('e', operation) AND seq = 2`,
		"all lines removed":          `DELETE FROM history WHERE rowid_of('e', operation)`,
		"a line put in":              `INSERT INTO history SELECT operation, 3, to_status, to_status, attempt, reason, evidence, actor, at FROM history WHERE rowid_of('e', operation) AND seq = 2`,
		"two lines exchanged":        `UPDATE history SET seq = 3 - seq + 100 WHERE rowid_of('e', operation); UPDATE history SET seq = seq - 100 WHERE rowid_of('e', operation)`,
		"an operation's provider id": `UPDATE agent_operations SET provider_operation_id = 're_other' WHERE step = 'e'`,
		"an operation's status":      `UPDATE agent_operations SET status = 'failed_final', last_error_code = 'x' WHERE step = 'e'`,
		"an operation's result":      `UPDATE agent_operations SET result_json = '{"amount":"1.00"}' WHERE step = 'e'`,
		"an operation's workflow":    `UPDATE agent_operations SET workflow_id = 'other' WHERE step = 'e'`,
		"an operation's approval":    `UPDATE agent_operations SET approval_state = 'approved' WHERE step = 'd'`,
		"an operation's limits":      `UPDATE agent_operations SET reserved = 'run' WHERE step = 'e'`,
		"an operation's fingerprint": `UPDATE agent_operations SET payload_hash = randomblob(32) WHERE step = 'e'`,
		"an operation's chain":       `UPDATE agent_operations SET chain = randomblob(32) WHERE step = 'e'`,
		"no chain":                   `UPDATE agent_operations SET chain = NULL WHERE step = 'e'`,
		"another one's chain":        `UPDATE agent_operations SET chain = (SELECT chain FROM agent_operations WHERE step = 'f') WHERE step = 'e'`,
		"a tombstone's status":       `UPDATE agent_operations SET status = CASE status WHEN 'succeeded' THEN 'failed_final' ELSE 'succeeded' END, last_error_code = 'x' WHERE pruned IS NOT NULL`,
		"a tombstone's provider id":  `UPDATE agent_operations SET provider_operation_id = 're_other' WHERE pruned IS NOT NULL`,
		"a tombstone removed":        `DELETE FROM agent_operations WHERE pruned IS NOT NULL`,
		"a tombstone made by hand":   `UPDATE agent_operations SET pruned = moves, moves = moves + 1 WHERE step = 'e'`,
		"an operation removed":       `DELETE FROM history WHERE rowid_of('e', operation); DELETE FROM agent_operations WHERE step = 'e'`,
		"an operation put in":        `INSERT INTO agent_operations (key, operation_id, action_type, status, attempt_count, moves, payload_hash, lease_owner, lease_until, provider_key, first_sent_at, created_at, updated_at) SELECT randomblob(32), substr(operation_id, 1, 30) || '000000001', action_type, 'executing', 1, 1, payload_hash, 'x', lease_until, provider_key, first_sent_at, created_at, updated_at FROM agent_operations WHERE step = 'e'`,
		"a checkpoint changed":       `UPDATE ledger_facts SET value = CAST(replace(value, '"operations":', '"operations":1') AS BLOB) WHERE name = 'checkpoint:2'`,
		"a checkpoint emptied":       `UPDATE ledger_facts SET value = x'' WHERE name = 'checkpoint:2'`,
		"a checkpoint taken out":     `DELETE FROM ledger_facts WHERE name = 'checkpoint:1'; UPDATE ledger_facts SET name = 'checkpoint:1' WHERE name = 'checkpoint:2'`,
		"an operation and its checkpoint's count": `DELETE FROM history WHERE rowid_of('e', operation); DELETE FROM agent_operations WHERE step = 'e';
			UPDATE ledger_facts SET value = CAST(replace(value, '"operations":2', '"operations":1') AS BLOB) WHERE name = 'checkpoint:2'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "ledger.db")
			synctest.Test(t, func(t *testing.T) {
				store, err := sqlite.Open(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				w := &world{T: t, store: store, provider: newProvider(bothTraits())}
				defer w.provider.letGo()
				aWholeLife(w)
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				forge(t, path, edit)
				if w.store, err = sqlite.Open(t.Context(), path); err != nil {
					t.Fatal(err)
				}
				defer w.store.Close()
				report, err := w.start().VerifyAudit(t.Context(), "")
				if err != nil || len(report.Problems) == 0 {
					t.Errorf("nothing found, %v", err)
				}
				for _, p := range report.Problems {
					if p.Where == "" || p.What == "" {
						t.Errorf("a problem that says nothing: %+v", p)
					}
				}
			})
		})
	}
}

// forge edits the database with its guards taken off, as somebody would who knows them.
func forge(t *testing.T, path, edit string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var triggers []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		triggers = append(triggers, name)
	}
	if err := rows.Err(); err != nil || len(triggers) == 0 {
		t.Fatalf("%d triggers, %v", len(triggers), err)
	}
	for _, name := range triggers {
		if _, err := db.Exec(`DROP TRIGGER ` + name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`PRAGMA ignore_check_constraints = ON`); err != nil {
		t.Fatal(err)
	}
	changed := int64(0)
	for _, statement := range strings.Split(edit, ";") {
		for _, step := range []string{"d", "e"} {
			statement = strings.ReplaceAll(statement, "rowid_of('"+step+"', operation)", "operation = (SELECT id FROM agent_operations WHERE step = '"+step+"')")
		}
		r, err := db.Exec(statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		n, _ := r.RowsAffected()
		changed += n
	}
	if changed == 0 {
		t.Fatal("the edit changed nothing")
	}
}

// TestAuditNeedsItsSecret: with another secret nothing proves to be genuine.
func TestAuditNeedsItsSecret(t *testing.T) {
	inWorld(t, func(t *world) {
		s := aWholeLife(t)
		s.Audit = auditor(t.T, "another secret, as long")
		report, err := s.VerifyAudit(t.Context(), "")
		if err != nil || len(report.Problems) < report.Operations {
			t.Errorf("%d problems with %d operations, %v", len(report.Problems), report.Operations, err)
		}
	})
}

func TestOverdueReviewsAreCalledOutAgain(t *testing.T) {
	inWorld(t, func(t *world) {
		t.policy.ReviewOverdue = time.Hour
		s := t.start()
		op := t.inReview(s, losesRequest)
		go s.Run(t.Context(), time.Minute)
		pass(59 * time.Minute)
		if got := t.alarmed("review_overdue"); got != 0 {
			t.Errorf("%d alarms before it is overdue", got)
		}
		pass(2 * time.Minute)
		pass(time.Hour)
		if got := t.alarmed("review_overdue"); got != 2 {
			t.Errorf("%d alarms after two hours, want 2", got)
		}
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Drop, "", 1, anna); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Hour)
		if got := t.alarmed("review_overdue"); got != 2 {
			t.Errorf("%d alarms, some after it was settled", got)
		}
	})
}
