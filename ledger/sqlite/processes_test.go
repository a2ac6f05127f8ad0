package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

// childLedger is set in the environment of a process that this test binary starts of
// itself: the ledger that it shall write to.
const childLedger = "ONCEWARD_TEST_LEDGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(childLedger); path != "" {
		if err := child(path, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child opens the ledger at the first line that it is sent, writes from the second on, and at
// the end of its input says how many operations it wrote.
func child(path string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	fmt.Fprintln(out, "ready")
	lines.Scan()
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "open")
	lines.Scan()
	over := make(chan struct{})
	go func() { lines.Scan(); close(over) }()
	for n := 0; ; n++ {
		select {
		case <-over:
			fmt.Fprintln(out, n)
			return s.Close()
		default:
		}
		op := benchOperation(os.Getpid()*1_000_000 + n)
		err := s.Begin(context.Background(), ledger.Sought{Key: op.Key}, func(ledger.Found) (ledger.Move, error) {
			return op.Insert(ledger.Claim{Owner: "host", At: benchTime, Provider: "sandbox"}, benchSeal, benchClaim)
		})
		if err != nil {
			return err
		}
	}
}

// A process is a child, seen by its parent.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startProcess(t *testing.T, path string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childLedger+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{cmd, in, bufio.NewScanner(out)}
}

func (p *process) hears(t *testing.T, want string) {
	t.Helper()
	if !p.out.Scan() || p.out.Text() != want {
		t.Fatalf("the process said %q, want %q", p.out.Text(), want)
	}
}

func (p *process) tell(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		t.Fatal(err)
	}
}

// Several processes open one new ledger at the same moment, write at the same time, and
// one of them is killed on the way.
func TestSeveralProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "ledger.db")
	const processes, enough = 4, 400
	var all []*process
	for range processes {
		all = append(all, startProcess(t, path))
	}
	for _, p := range all {
		p.hears(t, "ready")
	}
	for _, p := range all {
		p.tell(t)
	}
	for _, p := range all {
		p.hears(t, "open")
	}
	for _, p := range all {
		p.tell(t)
	}
	s := openStore(t, path)
	count := func() int { return len(find(t, s, ledger.Filter{Limit: 1_000_000})) }
	for n := count(); n < enough; n = count() {
	}
	victim := all[processes-1]
	if err := victim.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.cmd.Wait()
	atKill := count()
	for n := atKill; n < atKill+enough; n = count() {
	}
	least, most := 1<<30, 0
	for _, p := range all[:processes-1] {
		if err := p.in.Close(); err != nil {
			t.Fatal(err)
		}
		var n int
		if !p.out.Scan() {
			t.Fatal("a process said nothing at its end")
		}
		if _, err := fmt.Sscan(p.out.Text(), &n); err != nil {
			t.Fatalf("a process said %q at its end", p.out.Text())
		}
		if err := p.cmd.Wait(); err != nil {
			t.Fatalf("a process failed: %v", err)
		}
		least, most = min(least, n), max(most, n)
	}
	if least*4 < most {
		t.Errorf("one process wrote %d operations while another wrote %d, want at least a quarter", least, most)
	}
	if err := insertErr(t, s, 1); err != nil {
		t.Errorf("writing after all: %v", err)
	}
	if got := texts(t, openRaw(t, path), `PRAGMA integrity_check`); len(got) != 1 || got[0] != "ok" {
		t.Errorf("integrity_check = %v", got)
	}
}
