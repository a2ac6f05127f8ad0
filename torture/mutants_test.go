package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutant is one promise taken out of the program's own source.
type mutant struct {
	name string
	file string // from the module's root
	old  string // stands there exactly once
	new  string
}

var mutants = []mutant{
	{
		name: "an outcome isn't fenced by its attempt", file: "ledger/attempt.go",
		old: `if fresh.Status != Executing || fresh.Attempts != number {`, new: `if _ = number; fresh.Status != Executing {`,
	},
	{
		name: "an unmarked error is taken for a failure", file: "providers/actor.go",
		old: `return ledger.Finding{Verdict: ledger.Unclear, Code: unmarkedCode(err)}`, new: `return ledger.Finding{Verdict: ledger.Refused, Code: unmarkedCode(err)}`,
	},
	{
		name: "a lease is taken over without a look-up", file: "ledger/reconcile.go",
		old: `case op.UnsettledSince.IsZero():`, new: `case op.UnsettledSince.IsZero() || op.ErrorCode == CodeLeaseExpired:`,
	},
	{
		name: "fingerprints aren't compared", file: "ledger/decide.go",
		old: `if op.Fingerprint != d.request.Digest.Fingerprint {`, new: `if false {`,
	},
	{
		name: "limits are checked outside of the transaction", file: "ledger/sqlite/writer.go",
		old: `if t.Max > 0 && used[t.Bucket]+t.N > t.Max {`, new: `if _ = used; false {`,
	},
}

// mutantBudget is how long the explorer may take to find one.
const (
	mutantBudget    = 20 * time.Second
	mutantSchedules = "2000"
)

// TestMutants breaks the program's source in five ways, one at a time, and demands that the
// explorer finds each. The sources on the disk stay as they are.
func TestMutants(t *testing.T) {
	skipInMutants(t)
	if raceDetector {
		t.Skip("the mutants are built without the race detector; .ci/run does this without it")
	}
	t.Parallel()
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			program := m.build(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*mutantBudget)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, "-test.run=^(TestTakenOver|TestExplore)$", "-test.failfast", "-torture.schedules="+mutantSchedules, "-torture.budget="+mutantBudget.String())
			cmd.Args = append(cmd.Args, "-test.v")
			cmd.Env = append(os.Environ(), isMutant+"=1")
			began := time.Now()
			said, err := cmd.CombinedOutput()
			if err == nil || !bytes.Contains(said, []byte("a schedule breaks the promise")) {
				t.Fatalf("nothing was found in %v (%v), so the explorer doesn't test this:\n%s", time.Since(began), err, said)
			}
			noteMutant(m.name, seen(said, "breaks the promise: "), seen(said, "schedules by now: "), time.Since(began))
			t.Logf("found after %v, %s schedules: %s", time.Since(began).Round(time.Millisecond), seen(said, "schedules by now: "), seen(said, "breaks the promise: "))
		})
	}
}

// seen is what stands behind the last of a mark, to the end of its clause.
func seen(said []byte, mark string) string {
	at := bytes.LastIndex(said, []byte(mark))
	if at < 0 {
		return ""
	}
	rest := said[at+len(mark):]
	clause, _, _ := bytes.Cut(rest, []byte("\n"))
	for _, end := range []string{": [{", ", and there are the effects", " with evidence"} {
		clause, _, _ = bytes.Cut(clause, []byte(end))
	}
	return string(clause)
}

const isMutant = "ONCEWARD_TORTURE_MUTANT"

// build compiles this package with one file of the program replaced.
func (m mutant) build(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("%s holds %q %d times, want once: the mutant has to follow the source", m.file, m.old, n)
	}
	mutated := filepath.Join(dir, "mutated.go")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "torture.test")
	if said, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, said)
	}
	return program
}
