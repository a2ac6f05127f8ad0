package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/drill"
)

// runVerify runs the command as the command line does, and gives its exit code.
func runVerify(t *testing.T, args ...string) (stdout string, code int, err error) {
	t.Helper()
	var cli struct {
		Verify verifyCommand `cmd:""`
	}
	var out bytes.Buffer
	parser, err := kong.New(&cli, kong.BindTo(t.Context(), (*context.Context)(nil)), kong.Bind(streams{out: &out, err: &out}))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(append([]string{"verify"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.Run(); err != nil {
		return out.String(), exitCode(err), err
	}
	return out.String(), exitDone, nil
}

// TestVerify compares whole drills with what they are to show. The files were read line by line
// against the promises when they were made.
func TestVerify(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		breaks []string // what the error says
	}{
		{"sandbox", []string{"--action", "refund"}, exitDone, nil},
		{"webhook", []string{"--action", "refund", "--config", "testdata/verify/webhook.yaml"}, exitDone, nil},
		{"smtp", []string{"--action", "email.send", "--config", "testdata/verify/smtp.yaml"}, exitDone, nil},
		{"stripe", []string{"--action", "refund", "--config", "testdata/verify/stripe.yaml"}, exitDone, nil},
		// It promises to know keys, and doesn't.
		{
			"forgetful", []string{"--action", "refund", "--no-sandbox-lookup", "--sandbox-faults", "refund:key-ignored:always"}, exitRefused,
			[]string{"refund, the reply is lost: one action happened 2 times", "--sandbox-lookup=true"},
		},
	} {
		if raceDetector && test.name != "stripe" {
			continue // it has all that runs at once, and SQLite in Go is ten times slower there
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			said, code, err := runVerify(t, test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d: %v", code, test.code, err)
			}
			for _, text := range test.breaks {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("the error is %v, and doesn't say %q", err, text)
				}
			}
			golden := filepath.Join("testdata", "verify", test.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(said), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), said); diff != "" {
				t.Errorf("(-want +got; go test . -run Verify -update):\n%s", diff)
			}
		})
	}
}

// TestVerifyLeavesNothing: neither a file, nor a byte in the user's ledger.
func TestVerifyLeavesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("TestVerify has all that runs at once")
	}
	data, scratch, state := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", scratch)
	t.Setenv("XDG_STATE_HOME", state)
	ledgerFile := filepath.Join(data, "ledger.db")
	o, err := openOffice(t.Context(), officeFlags{dataFlags: dataFlags{DataDir: data}, sandboxFlags: defaultSandbox()}, slog.New(slog.DiscardHandler), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	before := everyFile(t, data)
	if len(before[ledgerFile]) == 0 {
		t.Fatal("the user has no ledger, so nothing could be written to it")
	}
	said, code, err := runVerify(t, "--data-dir", data, "--ledger", "sqlite:"+ledgerFile, "--action", "payment_order.create", "--json")
	if code != exitDone {
		t.Errorf("exit code %d: %v", code, err)
	}
	checkLines(t, said)
	if _, code, _ = runVerify(t, "--config", "testdata/verify/none.yaml"); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	if diff := cmp.Diff(before, everyFile(t, data)); diff != "" {
		t.Errorf("the user's data directory has changed (-before +after):\n%s", diff)
	}
	if left := len(everyFile(t, scratch)) + len(everyFile(t, state)); left > 0 {
		t.Errorf("%d files are left behind", left)
	}
}

// everyFile is what a directory holds, by path.
func everyFile(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// checkLines: a line for each scenario, and nothing else.
func checkLines(t *testing.T, said string) {
	t.Helper()
	names := map[string]bool{}
	for line := range strings.Lines(said) {
		var r struct {
			Action     string   `json:"action_type"`
			Provider   string   `json:"provider"`
			Scenario   string   `json:"scenario"`
			Happened   string   `json:"happened"`
			Effects    *int     `json:"effects"`
			Verdict    string   `json:"verdict"`
			KnownAfter *float64 `json:"known_after_seconds"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Action != "payment_order.create" || r.Provider != "sandbox" || r.Happened == "" || r.Effects == nil || r.KnownAfter == nil {
			t.Errorf("something is missing or wrong: %s", line)
		}
		switch drill.Verdict(r.Verdict) {
		case drill.Held, drill.PersonAsked, drill.DoesNotApply:
		default:
			t.Errorf("the verdict is %q: %s", r.Verdict, line)
		}
		names[r.Scenario] = true
	}
	if len(names) < 38 || len(names) != strings.Count(said, "\n") {
		t.Errorf("%d scenarios in %d lines", len(names), strings.Count(said, "\n"))
	}
}

// TestVerifyRefuses: what serve would refuse, it refuses, before it plays anything.
func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	unverifiable := filepath.Join(t.TempDir(), "never.yaml")
	text, err := os.ReadFile("testdata/verify/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unverifiable, bytes.Replace(text, []byte("provider: webhook"), []byte("provider: webhook, approval: never"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--config", unverifiable}, "never.yaml:2: tools.'refund'.approval"},
		{[]string{"--config", "testdata/verify/none.yaml"}, "--config"},
		{[]string{"--action", "wire"}, "--action wire"},
		{[]string{"--ledger", "mysql://here"}, "--ledger"},
		{[]string{"--sandbox-faults", "refund:boil"}, "--sandbox-faults"},
	} {
		said, code, err := runVerify(t, test.args...)
		if code != exitUsage || err == nil || !strings.Contains(err.Error(), test.says) || said != "" {
			t.Errorf("%v: exit code %d, %v, printed %q; want exit code %d and %q", test.args, code, err, said, exitUsage, test.says)
		}
	}
}

// TestVerifyPostgres: it is played in schemas of its own, which are gone afterwards.
func TestVerifyPostgres(t *testing.T) {
	url := os.Getenv("ONCEWARD_TEST_POSTGRES")
	if url == "" {
		t.Skip("ONCEWARD_TEST_POSTGRES names no PostgreSQL; .ci/postgres starts one")
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tables := func() (n int) {
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_class WHERE relname IN ('agent_operations', 'ledger_facts')").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := tables()
	said, code, err := runVerify(t, "--ledger", url, "--action", "refund")
	if code != exitDone {
		t.Errorf("exit code %d: %v", code, err)
	}
	want, err := os.ReadFile("testdata/verify/sandbox.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), said); diff != "" {
		t.Errorf("it differs from what is said with SQLite (-sqlite +postgres):\n%s", diff)
	}
	if after := tables(); after != before {
		t.Errorf("%d tables before, %d after", before, after)
	}
}

// TestVerifyInterrupted: it ends at once, and says so.
func TestVerifyInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := verifyCommand{sandboxFlags: defaultSandbox()}.Run(ctx, streams{out: new(bytes.Buffer)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
