package main

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
)

// copyLedger runs the command and returns what it says.
func copyLedger(ctx context.Context, from, to string) (code int, said, progress string) {
	var out, errs bytes.Buffer
	s := streams{strings.NewReader(""), &out, &errs}
	err := ledgerCopyCommand{From: from, To: to}.Run(ctx, s)
	if err == nil {
		return exitDone, out.String(), errs.String()
	}
	return exitCode(err), out.String() + err.Error(), errs.String()
}

func TestLedgerCopyBadInput(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), t.TempDir()
	file := "sqlite:" + filepath.Join(dir, "ledger.db")
	closed := "postgres://anna:hunter2@127.0.0.1:1/ledger?connect_timeout=1"
	for name, test := range map[string]struct {
		from, to string
		want     string
	}{
		"the same":             {file, file, "--from and --to are the same ledger"},
		"no scheme":            {filepath.Join(dir, "ledger.db"), closed, "--from is sqlite: and a path"},
		"no path":              {"sqlite:", closed, "--from is sqlite: and a path"},
		"from PostgreSQL":      {closed, closed + "&x", "use pg_dump and pg_restore"},
		"to SQLite":            {file, file + ".new", "moved by moving its file"},
		"to another database":  {file, "mysql://anna:hunter2@127.0.0.1/ledger", "--to is a URL like postgres://user@host:5432/database"},
		"a missing file":       {file, closed, "there is no such file"},
		"a folder":             {"sqlite:" + dir, closed, "it is a folder"},
		"a database of others": {"sqlite:" + foreign(t), closed, "it is a database of another program"},
		"no server there":      {"sqlite:" + servedLedger(t), closed, "the server can't be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			code, said, _ := copyLedger(ctx, test.from, test.to)
			if code != exitUsage || !strings.Contains(said, test.want) || strings.Contains(said, "hunter2") {
				t.Errorf("%d %q; want %d, %q and no password", code, said, exitUsage, test.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "ledger.db")); err == nil {
		t.Error("a missing ledger was made")
	}
}

// foreign is another program's database.
func foreign(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "theirs.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE theirs (a)`); err != nil {
		t.Fatal(err)
	}
	return path
}

// servedLedger is a ledger that a server has worked with.
func servedLedger(t *testing.T) string {
	t.Helper()
	ctx, dir := waiting(t), dataDir(t)
	box := defaultSandbox()
	box.SandboxFaults = "refund:lose-reply,email.send:refuse"
	box.SandboxIdempotent = false
	o, err := openOffice(ctx, officeFlags{dataFlags: dataFlags{DataDir: dir}, sandboxFlags: box}, slog.New(slog.DiscardHandler), true)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDeskOf(o)
	if err != nil {
		t.Fatal(err)
	}
	for tool, call := range map[string]toolCall{
		"refund":     with(refundIntent, refundArgs),
		"email_send": with(`{"business_operation_id":"mail-1"}`, `{"to":["anna@example.com"],"subject":"s","body":"b"}`),
	} {
		if _, err := d.call(ctx, tool, call); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	o.ledger.Now = func() time.Time { return time.Now().Add(3 * time.Hour) }
	if err := o.ledger.Seal(ctx); err != nil {
		t.Error(err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
	return filepath.Join(dir, "ledger.db")
}

// emptySchema is the URL of a schema of the test's own.
func emptySchema(t *testing.T) string {
	t.Helper()
	raw := os.Getenv("ONCEWARD_TEST_POSTGRES")
	if raw == "" && os.Getenv("CI") == "true" {
		t.Fatal("ONCEWARD_TEST_POSTGRES isn't set; source .ci/postgres and call postgres_start")
	}
	if raw == "" {
		t.Skip("ONCEWARD_TEST_POSTGRES isn't set; run .ci/postgres go test .")
	}
	db, err := sql.Open("pgx", raw)
	if err != nil {
		t.Fatal(err)
	}
	name := "copy_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), "DROP SCHEMA "+name+" CASCADE"); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// A server's ledger is copied, the copy's audit trail holds, and whoever does what the command says
// has the same secret.
func TestLedgerCopy(t *testing.T) {
	t.Parallel()
	ctx, to, path := waiting(t), emptySchema(t), servedLedger(t)
	code, said, progress := copyLedger(ctx, "sqlite:"+path, to)
	if code != exitDone || !strings.Contains(said, "Both sides are equal") || !strings.Contains(progress, "copied 2 operations") || !strings.Contains(progress, "verified 2 operations") {
		t.Fatalf("%d %q, progress %q", code, said, progress)
	}
	secret := givenSecret(ctx, t, said)
	store, err := postgres.Open(ctx, postgres.Options{URL: to})
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.CheckSecret(ctx, store, secret); err != nil {
		t.Errorf("with the secret that the command names: %v", err)
	}
	l := &ledger.Ledger{Store: store, Audit: ledger.NewAuditor(secret)}
	report, err := l.VerifyAudit(ctx, "")
	if err != nil || report.Operations != 2 || report.Checkpoints != 1 || len(report.Problems) > 0 {
		t.Errorf("audit of the copy: %+v, %v; want 2 operations, a checkpoint and no problem", report, err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if code, said, _ := copyLedger(ctx, "sqlite:"+path, to); code != exitDone {
		t.Errorf("again: %d %q", code, said)
	}
	code, said, _ = copyLedger(ctx, "sqlite:"+servedLedger(t), to)
	if code != exitRefused || !strings.Contains(said, "the target is another ledger") {
		t.Errorf("of another ledger: %d %q; want a refusal", code, said)
	}
}

// givenSecret does as the command says, in a shell.
func givenSecret(ctx context.Context, t *testing.T, said string) ledger.Secret {
	t.Helper()
	var script strings.Builder
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "  export ") {
			script.WriteString(line)
		}
	}
	shell := exec.CommandContext(ctx, "sh", "-c", script.String()+`printf '%s' "$ONCEWARD_SECRET"; test -n "$ONCEWARD_SEAL_KEY"`)
	value, err := shell.Output()
	if err != nil {
		t.Fatalf("%v of %q", err, script.String())
	}
	raw, err := ledger.ParseSecret(string(value))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(said, strings.TrimPrefix(string(value), "hex:")) {
		t.Error("the secret itself was printed")
	}
	secret, err := ledger.NewSecret(raw)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// Lines come at most once a second, besides the last one of each stage.
func TestCopyProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&out)
	p.now = func() time.Time { return now }
	for i := range 25 {
		p.show(ledger.Copying, 100*i)
		now = now.Add(100 * time.Millisecond)
	}
	p.show(ledger.Verifying, 2400)
	p.end()
	want := "copied 1000 operations (1000/s)\ncopied 2000 operations (1000/s)\ncopied 2400 operations (960/s)\nverified 2400 operations\n"
	if out.String() != want {
		t.Errorf("progress %q, want %q", out.String(), want)
	}
}
