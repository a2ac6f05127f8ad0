package sqlite

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// The queries that run all the time must find their rows by an index, whatever the
// ledger has grown to.
func TestQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	conn := openInside(t).writer.conn
	queries := map[string]string{
		"a move":             moveShape{bits: 1 << 6}.sql(),
		"the sealed payload": `SELECT sealed FROM sealed_payloads WHERE operation = (SELECT id FROM agent_operations WHERE operation_id = ?)`,
	}
	for name, query := range reading {
		queries[name] = query
	}
	for name, f := range map[string]ledger.Filter{
		"by id":         {ID: "op"},
		"by key":        {Key: ledger.Key{1}},
		"by workflow":   {WorkflowID: "case"},
		"due":           {Due: time.Unix(1, 0)},
		"open":          {Statuses: []ledger.Status{ledger.Unknown, ledger.Executing}},
		"reviews":       {Review: true},
		"newest review": {Review: true, Newest: true},
	} {
		queries["find "+name], _ = findQuery(&f)
	}
	for name, query := range queries {
		for _, line := range plan(t, conn, query) {
			if strings.HasPrefix(line, "SCAN agent_operations") && !strings.Contains(line, "COVERING INDEX operation_reviews") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func plan(t *testing.T, conn *sql.Conn, query string) []string {
	t.Helper()
	args := make([]any, strings.Count(query, "?"))
	rows, err := conn.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestTheWriterIsDurable(t *testing.T) {
	t.Parallel()
	conn := openInside(t).writer.conn
	got := map[string]string{}
	for _, pragma := range []string{"journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync"} {
		var value string
		if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&value); err != nil {
			t.Fatal(err)
		}
		got[pragma] = value
	}
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "checkpoint_fullfsync": "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func openInside(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
