package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		prepare func(t *testing.T, path string)
		hint    string
	}{
		"a folder": {func(t *testing.T, path string) { check(t, os.Mkdir(path, 0o700)) }, "it is a folder"},
		"a file that isn't SQLite": {func(t *testing.T, path string) {
			check(t, os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600))
		}, "not an SQLite database"},
		"another program's database": {func(t *testing.T, path string) {
			_, err := openRaw(t, path).Exec(`CREATE TABLE theirs (x)`)
			check(t, err)
		}, "another program"},
		"a ledger of a newer program": {func(t *testing.T, path string) {
			check(t, openStore(t, path).Close())
			_, err := openRaw(t, path).Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`)
			check(t, err)
		}, "version 999"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "ledger.db")
			c.prepare(t, path)
			s, err := sqlite.Open(t.Context(), path)
			if err == nil {
				s.Close()
			}
			var refused *sqlite.OpenError
			if !errors.As(err, &refused) || !strings.Contains(refused.Hint, c.hint) || refused.Path != path {
				t.Errorf("Open = %v, want an OpenError that says %q", err, c.hint)
			}
		})
	}
}

func TestOpenLeavesAnotherProgramsDatabaseAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "theirs.db")
	db := openRaw(t, path)
	_, err := db.Exec(`CREATE TABLE theirs (x)`)
	check(t, err)
	_, err = sqlite.Open(t.Context(), path)
	if err == nil {
		t.Fatal("Open took another program's database")
	}
	if diff := cmp.Diff([]string{"theirs"}, texts(t, db, `SELECT name FROM sqlite_schema`)); diff != "" {
		t.Errorf("its schema (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"delete"}, texts(t, db, `PRAGMA journal_mode`)); diff != "" {
		t.Errorf("its journal mode (-want +got):\n%s", diff)
	}
}

func TestOpenWithoutTheRight(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("this user may write everywhere")
	}
	dir := filepath.Join(t.TempDir(), "closed")
	check(t, os.Mkdir(dir, 0o500))
	_, err := sqlite.Open(t.Context(), filepath.Join(dir, "ledger.db"))
	var refused *sqlite.OpenError
	if !errors.As(err, &refused) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Open = %v, want an OpenError about rights", err)
	}
}

func TestOpenWithAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if s, err := sqlite.Open(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v, %v, want context.Canceled", s, err)
	}
	openStore(t, path) // nothing is left in the way
}

func TestOnlyThisUserReadsTheFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("rights are inherited there")
	}
	dir := filepath.Join(t.TempDir(), "data")
	s := openStore(t, filepath.Join(dir, "ledger.db"))
	if err := insertErr(t, s, 1); err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	for _, name := range []string{"", "ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.lock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		check(t, err)
		got[name] = info.Mode().Perm()
	}
	want := map[string]fs.FileMode{"": 0o700, "ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600, "ledger.db.lock": 0o600}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%20é&_pragma=x", "ledger.db")
	s := openStore(t, path)
	if err := insertErr(t, s, 1); err != nil {
		t.Fatal(err)
	}
	check(t, s.Close())
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		t.Errorf("the ledger is not at its path: %v", err)
	}
}

func TestThePublishedQueriesRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openStore(t, path)
	populate(t, s)
	db := openRaw(t, path)
	rows, err := db.Query(`SELECT idempotency_key, action_type, status, attempt_count, provider_operation_id, created_at, updated_at
FROM agent_operations WHERE workflow_id = 'case-0' ORDER BY created_at;`)
	check(t, err)
	defer rows.Close()
	var got []string
	for rows.Next() {
		var key, action, status string
		var attempts, created, updated int64
		var providers *string
		check(t, rows.Scan(&key, &action, &status, &attempts, &providers, &created, &updated))
		got = append(got, key+" "+status)
	}
	check(t, rows.Err())
	want := []string{
		benchOperation(1).Key.String() + " executing", benchOperation(2).Key.String() + " succeeded",
		benchOperation(3).Key.String() + " failed_final", benchOperation(4).Key.String() + " planned",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations of the workflow (-want +got):\n%s", diff)
	}
	if got := texts(t, db, `SELECT idempotency_key FROM (SELECT idempotency_key, count(*) AS rows_per_key FROM agent_operations GROUP BY idempotency_key HAVING count(*) > 1)`); len(got) != 0 {
		t.Errorf("keys with several rows: %v, want none", got)
	}
	if got := texts(t, db, `SELECT operation_id || ' ' || seq || ' ' || coalesce(from_status, '-') || ' ' || to_status || ' ' || attempt || ' ' || reason || ' ' || evidence || ' ' || actor || ' ' || at FROM transitions WHERE operation_id = '`+benchOperation(2).ID+`' ORDER BY seq`); len(got) != 2 {
		t.Errorf("transitions: %v, want two", got)
	}
}

func TestFieldHashesAnyName(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "ledger.db"))
	op := benchOperation(1)
	op.Fields = ledger.FieldHashes{`a"b\c`: {1}, "ä": {2}, "": {3}, `":"`: {4}, "line\n": {5}, "plain": {255, 254, 253}}
	if err := beginErr(t, s, op); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(op.Fields, find(t, s, ledger.Filter{})[0].Fields); diff != "" {
		t.Errorf("field hashes (-want +got):\n%s", diff)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
