package torture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	began := time.Now()
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	if *schedules > 0 && os.Getenv(isMutant) == "" {
		fmt.Print(table())
	}
	if *update && code == 0 {
		if err := writeEvidence(time.Since(began)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// program builds the program once.
func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "torture-program-"); built.err != nil {
			return
		}
		said, err := exec.Command("go", "build", "-o", filepath.Join(built.dir, "onceward"), "..").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, said)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "onceward")
}

var built struct {
	sync.Once
	dir string
	err error
}

// skipInMutants skips what only a run of everything does.
func skipInMutants(t *testing.T) {
	t.Helper()
	if *seed != 0 || os.Getenv(isMutant) != "" {
		t.Skip("one schedule only")
	}
	if testing.Short() {
		t.Skip("real processes take a while")
	}
}
