package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// A scene that acts twice, or is answered in another way, must not pass.
func TestDemoBrokenPromise(t *testing.T) {
	t.Setenv(asProgram, "1")
	twice := scene{title: "Acts twice", calls: 2, play: func(ctx context.Context, a *act) error {
		server, err := a.server(ctx)
		if err != nil {
			return err
		}
		for _, id := range []string{"refund_1", "refund_2"} {
			call := refundCall(id, "pay_"+id, "1.00")
			if err := a.call(ctx, server, call, told{Status: "succeeded", Replayed: id == "refund_2"}); err != nil {
				return err
			}
		}
		return nil
	}}
	var out, problems bytes.Buffer
	err := tell(t.Context(), streams{out: &out, err: &problems}, t.TempDir(), []scene{twice})
	if err == nil || exitCode(err) != exitRefused {
		t.Fatalf("error %v, want one with exit code %d", err, exitRefused)
	}
	for _, want := range []string{
		"Acts twice: 2 effects, promised is 1", "the answer to call 2 is", "the ledger has 2 operations for 1 business action",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error doesn't say %q:\n%v", want, err)
		}
	}
	if !strings.Contains(out.String(), "not as promised") || strings.Contains(out.String(), "exactly one effect") {
		t.Errorf("the output doesn't show that a promise was broken:\n%s", out.String())
	}
	if !strings.Contains(problems.String(), "msg=serves") {
		t.Errorf("the servers' log isn't shown:\n%s", problems.String())
	}
}

func TestDemoCheck(t *testing.T) {
	t.Parallel()
	good := tally{title: "S", calls: 2, planned: 2, effects: 1}
	done := row{IdempotencyKey: "v1:a", OperationID: "op_a", Status: ledger.Succeeded}
	other := row{IdempotencyKey: "v1:b", OperationID: "op_b", Status: ledger.Succeeded}
	for name, c := range map[string]struct {
		tallies    []tally
		operations []row
		want       []string
	}{
		"as promised":   {[]tally{good, good}, []row{done, other}, nil},
		"never acted":   {[]tally{{title: "S", calls: 2, planned: 2}}, []row{done}, []string{"S: 0 effects, promised is 1"}},
		"acted twice":   {[]tally{{title: "S", calls: 2, planned: 2, effects: 2}}, []row{done}, []string{"S: 2 effects, promised is 1"}},
		"a call less":   {[]tally{{title: "S", calls: 1, planned: 2, effects: 1}}, []row{done}, []string{"S: 1 call, the story has 2"}},
		"other promise": {[]tally{{title: "S", calls: 2, planned: 2, effects: 1, broken: []string{"b"}}}, []row{done}, []string{"S: b"}},
		"one operation too many": {
			[]tally{good}, []row{done, other}, []string{"the ledger has 2 operations for 1 business action"},
		},
		"same key twice": {[]tally{good, good}, []row{done, done}, []string{"operation op_a has another one's key"}},
		"still unknown": {
			[]tally{good}, []row{{IdempotencyKey: "v1:a", OperationID: "op_a", Status: ledger.Unknown}},
			[]string{"operation op_a is unknown at the end, promised is succeeded"},
		},
	} {
		if diff := cmp.Diff(c.want, checkDemo(c.tallies, c.operations)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The demo must not act on somebody's ledger.
func TestDemoNeedsEmptyDirectory(t *testing.T) {
	t.Setenv(asProgram, "1") // should it start a server after all
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ledger.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, problems := demo(t.Context(), "--data-dir", dir)
	if code != exitUsage || out != "" || !strings.Contains(problems, "is not empty") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, problems)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
		t.Errorf("the directory now holds %v, %v", found, err)
	}
}

// Interrupted in the middle of a call, the demo ends its server and leaves nothing.
func TestDemoInterrupted(t *testing.T) {
	t.Setenv(asProgram, "1")
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var server *demoClient
	story := scene{title: "Interrupted", calls: 1, play: func(ctx context.Context, a *act) (err error) {
		if server, err = a.server(ctx, "--sandbox-faults", "refund:hang"); err != nil {
			return err
		}
		go interruptOnceActed(ctx, a.stage, interrupt)
		return a.call(ctx, server, refundCall("refund_1", "pay_1", "1.00"), told{})
	}}
	var out, problems bytes.Buffer
	err := tell(ctx, streams{out: &out, err: &problems}, "", []scene{story})
	if err == nil || exitCode(err) != exitRefused || err.Error() != "the demo was interrupted" {
		t.Errorf("error %v", err)
	}
	if server.process.ProcessState == nil {
		t.Error("the server still runs")
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// interruptOnceActed waits for the effect; its call is answered much later.
func interruptOnceActed(ctx context.Context, st *stage, interrupt func()) {
	for range time.Tick(2 * time.Millisecond) {
		if found, err := st.effects(ctx); err != nil || len(found) > 0 {
			interrupt()
			return
		}
	}
}

func TestDemoColour(t *testing.T) {
	t.Parallel()
	if colourful(new(bytes.Buffer)) {
		t.Error("a buffer is no terminal")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if colourful(w) {
		t.Error("a pipe is no terminal")
	}
	for _, colour := range []bool{false, true} {
		var out bytes.Buffer
		(&narrator{&out, colour}).reply("reads", demoReply{told: told{Status: "succeeded"}})
		if strings.Contains(out.String(), "\x1b[32m") != colour {
			t.Errorf("colour %t printed %q", colour, out.String())
		}
	}
}

func TestWrapText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                 {""},
		"one two":          {"one two"},
		"one two three":    {"one two", "three"},
		"éàü öäü x":        {"éàü öäü", "x"},
		"averylongword on": {"averylongword", "on"},
		"aaaaaa  b":        {"aaaaaa", "b"},
	} {
		if diff := cmp.Diff(want, wrapText(text, 7)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
