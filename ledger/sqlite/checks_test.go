package sqlite_test

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Rows that the table itself refuses, even with every trigger gone: what is said here
// differs from a row that is right.
var malformed = map[string]map[string]string{
	"a short key":                      {"key": `x'00'`},
	"a short fingerprint":              {"payload_hash": `x'00'`},
	"no fingerprint":                   {"payload_hash": `NULL`},
	"a short base key":                 {"base_key": `x'00'`, "revision": `1`},
	"a base key without a revision":    {"base_key": `randomblob(32)`},
	"a short content hash":             {"content_hash": `x'00'`},
	"a short alike hash":               {"alike": `x'00'`},
	"no id":                            {"operation_id": `''`},
	"no action":                        {"action_type": `''`},
	"no such identity":                 {"identity": `'other'`},
	"a negative number of attempts":    {"status": `'unknown'`, "next_check_at": `1`, "attempt_count": `-1`},
	"no moves":                         {"moves": `0`},
	"no such status":                   {"status": `'done'`},
	"no status":                        {"status": `NULL`},
	"planned after an attempt":         {"attempt_count": `1`},
	"executing without an attempt":     executing("attempt_count", `0`),
	"executing without an owner":       executing("lease_owner", `NULL`),
	"executing without a lease":        executing("lease_until", `NULL`),
	"executing without a provider key": executing("provider_key", `NULL`),
	"executing, sent never":            executing("first_sent_at", `NULL`),
	"success without evidence":         {"status": `'succeeded'`, "attempt_count": `1`},
	"a final failure without a code":   {"status": `'failed_final'`},
	"a failure for now without a code": {"status": `'failed_retryable'`, "attempt_count": `1`},
	"a failure for now, never tried":   {"status": `'failed_retryable'`, "last_error_code": `'x'`},
	"unknown, and nobody looks":        {"status": `'unknown'`, "attempt_count": `1`},
	"planned and unsettled":            {"unsettled_since": `1`},
	"succeeded and unsettled":          {"status": `'succeeded'`, "attempt_count": `1`, "evidence_json": `'{}'`, "unsettled_since": `1`},
	"no such approval":                 {"approval_state": `'other'`},
	"pruned before it was final":       {"pruned": `1`},
	"a number for a text":              {"step": `x'00'`},
}

func executing(column, value string) map[string]string {
	row := map[string]string{
		"status": `'executing'`, "attempt_count": `1`, "lease_owner": `'x'`, "lease_until": `1`, "provider_key": `'x'`, "first_sent_at": `1`,
	}
	if column != "" {
		row[column] = value
	}
	return row
}

func TestTheTableRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	openStore(t, path)
	db := openRaw(t, path)
	for _, name := range texts(t, db, `SELECT name FROM sqlite_schema WHERE type = 'trigger'`) {
		_, err := db.Exec(`DROP TRIGGER ` + name)
		check(t, err)
	}
	for name, row := range map[string]map[string]string{"planned": nil, "executing": executing("", "")} {
		if _, err := db.Exec(insertRow(row)); err != nil {
			t.Errorf("a row that is right (%s): %v", name, err)
		}
	}
	for name, row := range malformed {
		var refused *driver.Error
		if _, err := db.Exec(insertRow(row)); !errors.As(err, &refused) || refused.Code()&0xff != lib.SQLITE_CONSTRAINT {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

func insertRow(changed map[string]string) string {
	row := map[string]string{
		"key": `randomblob(32)`, "operation_id": `hex(randomblob(8))`, "action_type": `'refund'`, "status": `'planned'`, "moves": `1`,
		"payload_hash": `randomblob(32)`, "created_at": `1`, "updated_at": `1`,
	}
	maps.Copy(row, changed)
	names := slices.Sorted(maps.Keys(row))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = row[name]
	}
	return `INSERT INTO agent_operations (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(values, ", ") + `)`
}
