package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

var exportedAt = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// anExecuting operation has a lease of a minute from exportedAt.
func anExecuting(t *testing.T, s ledger.Store, i int, payload []byte) ledger.Operation {
	t.Helper()
	op := ledger.Operation{
		ID: "op_" + string(rune('a'+i)), Key: ledger.Key{1, byte(i)}, Action: "refund",
		Intent: ledger.Intent{Identity: ledger.Strict}, Fingerprint: ledger.Hash{2},
	}
	m, err := op.Insert(ledger.Claim{Owner: "host-1", At: exportedAt, Lease: time.Minute, Provider: "sandbox", Settled: true}, payload, ledger.Note{Actor: "worker:test", Reason: "claimed"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(ledger.Found) (ledger.Move, error) { return m, nil }); err != nil {
		t.Fatal(err)
	}
	return m.To()
}

func openAt(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A ledger that is served isn't exported: what the server still writes would be lost, and a repeat
// of it would look new elsewhere.
func TestExportIsAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openAt(t, path)
	anExecuting(t, s, 0, nil)
	after := exportedAt.Add(time.Hour)
	wantCopyError := func(when, want string, now time.Time) {
		t.Helper()
		e, err := sqlite.OpenExport(t.Context(), path, now)
		if _, ok := errors.AsType[*ledger.CopyError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
		if err == nil {
			e.Close()
		}
	}
	wantCopyError("while an idle server has it open", "another program has it open", after)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantCopyError("while a lease runs", "operation op_a may still be under way until 2026-11-30T10:01:00Z", exportedAt.Add(time.Second))

	e, err := sqlite.OpenExport(t.Context(), path, after)
	if err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.QueryRowContext(t.Context(), `SELECT count(*) FROM agent_operations`).Scan(new(int)); err == nil {
		t.Error("another program could read the ledger while it is exported")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openAt(t, path).Close(); err != nil {
		t.Error(err)
	}
}

// Pages end early where payloads are large, and lose nothing.
func TestExportOfLargePayloads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openAt(t, path)
	sizes := []int{0, 7 << 20, 7 << 20, 7 << 20, 17 << 20, 1}
	var want []ledger.Operation
	for i, size := range sizes {
		want = append(want, anExecuting(t, s, i, bytes.Repeat([]byte{byte(i)}, size)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := sqlite.OpenExport(t.Context(), path, exportedAt.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var got []ledger.Operation
	var gotSizes, pages []int
	for after := ""; ; after = got[len(got)-1].ID {
		records, err := e.Records(t.Context(), after, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 {
			break
		}
		pages = append(pages, len(records))
		for _, r := range records {
			got, gotSizes = append(got, r.Operation), append(gotSizes, len(r.Sealed))
			if r.Sealed == nil || len(r.History) != 1 || r.History[0].Reason != "claimed" {
				t.Errorf("%s: sealed nil %v, history %v", r.Operation.ID, r.Sealed == nil, r.History)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int{sizes, {3, 1, 1, 1}}, [][]int{gotSizes, pages}); diff != "" {
		t.Errorf("sizes and pages (-want +got):\n%s", diff)
	}
}

func TestExportOfWhatIsNoLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, bytes.Repeat([]byte("no database\n"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.db"): "there is no such file",
		dir:                           "it is a folder",
		text:                          "it is not an SQLite database",
	} {
		_, err := sqlite.OpenExport(t.Context(), path, exportedAt)
		if _, ok := errors.AsType[*sqlite.OpenError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Error("the missing file was made")
	}
}
