package sandbox

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	o := with(t, "refund:lose-reply:2,refund:refuse")
	var scopes []string
	for _, want := range []string{lost, lost, "refused:sandbox_refused", settled} {
		s, err := Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		scopes = append(scopes, s.Scope())
		r, err := refundOnce(t, s, "k1")
		wantSaid(t, "answer", said(r, err), want)
		wantEffects(t, s, 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, scope := range scopes {
		if scope != scopes[0] || len(scope) != 32 {
			t.Errorf("scopes %q, want one of 32 digits", scopes)
		}
	}
	if other := open(t, fresh(t), o).Scope(); other == scopes[0] {
		t.Error("two journals have one scope")
	}
}

func TestFirstStartsAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := fresh(t)
		scopes := make(chan string)
		const starts = 6
		for range starts {
			go func() {
				s, err := Open(t.Context(), path, DefaultOptions())
				if err != nil {
					t.Error(err)
					scopes <- ""
					return
				}
				scopes <- s.Scope()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
		}
		seen := map[string]bool{}
		for range starts {
			seen[<-scopes] = true
		}
		if len(seen) != 1 {
			t.Errorf("scopes %v, want one", seen)
		}
	}
}

func TestAnotherListStartsAfresh(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	for _, step := range []struct{ faults, want string }{
		{"refund:refuse", "refused:sandbox_refused"},
		{"refund:refuse", settled},
		{"refund:refuse:2", "refused:sandbox_refused"},               // another text
		{"email.send:hang,refund:refuse", "refused:sandbox_refused"}, // another place
		{"email_send:hang,refund:refuse:1", settled},                 // the same list in other words
	} {
		r, err := refundOnce(t, open(t, path, with(t, step.faults)), "k1")
		wantSaid(t, step.faults, said(r, err), step.want)
	}
}

func TestAlwaysNeverEnds(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), with(t, "refund:refuse:always,refund:lose-reply"))
	for range 5 {
		r, err := refundOnce(t, s, "k1")
		wantSaid(t, "answer", said(r, err), "refused:sandbox_refused")
	}
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no such modes")
	}
	path := fresh(t)
	s := open(t, path, DefaultOptions())
	if _, err := refundOnce(t, s, "k1"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want fs.FileMode
	}{{filepath.Dir(path), 0o700}, {path, 0o600}, {path + "-wal", 0o600}, {path + "-shm", 0o600}} {
		info, err := os.Stat(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != tt.want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(tt.path), got, tt.want)
		}
	}
}

func TestJournalIsDurable(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), DefaultOptions())
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "fullfsync": "1"} {
		var got string
		if err := s.journal.writer.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s = %q, want %q", pragma, got, want)
		}
	}
}

func TestAwkwardPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "a?mode=memory", "a#b", "a%41b", "ä"} {
		path := filepath.Join(t.TempDir(), name, "sandbox.db")
		open(t, path, DefaultOptions())
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("nothing at %q: %v", path, err)
		}
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	_, err := Inspect(t.Context(), path)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no sandbox journal at "+path) {
		t.Errorf("error = %v, want one that says that there is none", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("looking made something")
	}
	s := open(t, path, DefaultOptions())
	if _, err := refundOnce(t, s, "k1"); err != nil {
		t.Fatal(err)
	}
	reader, err := Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if reader.Scope() != s.Scope() {
		t.Error("another scope")
	}
	wantEffects(t, reader, 1)
	r, err := refundOnce(t, reader, "k2")
	wantSaid(t, "an act", said(r, err), "not_sent:unavailable")
	wantEffects(t, s, 1)
}

func TestForeignFiles(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "ledger.db")
	statement(t, foreign, "CREATE TABLE agent_operations (id INTEGER)")
	newer := fresh(t)
	if s, err := Open(t.Context(), newer, DefaultOptions()); err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	statement(t, newer, "PRAGMA user_version = 2")
	for path, want := range map[string]string{
		text:        "is no sandbox journal",
		foreign:     "is a database of something else",
		newer:       "was made by a newer version",
		t.TempDir(): "can't be opened",
	} {
		_, err := Open(t.Context(), path, DefaultOptions())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("Open: %v; want that %s %s", err, path, want)
		}
		_, err = Inspect(t.Context(), path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Inspect: %v; want that %s %s", err, path, want)
		}
	}
}

func statement(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
