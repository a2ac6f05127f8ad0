package postgres_test

import (
	"flag"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

var copied = flag.Int("copied", 3000, "how many operations TestManyOperationsAreCopied copies")

// With -copied 100000 -v it says how long a large ledger takes.
func TestManyOperationsAreCopied(t *testing.T) {
	place, path := newSchema(t), many(t, *copied)
	source, err := sqlite.OpenExport(t.Context(), path, copiedAt.Add(1e6*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := openStore(t, place).Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close(background)
	begun := time.Now()
	var stages []ledger.CopyStage
	var took []time.Duration
	c := ledger.Copy{From: source, To: target, Progress: func(stage ledger.CopyStage, n int) {
		if n == *copied {
			stages, took = append(stages, stage), append(took, time.Since(begun).Round(time.Millisecond))
		}
	}}
	report, err := c.Run(t.Context())
	if err != nil || report.Copied != *copied || report.Source != report.Target || report.Target.Transitions != 2**copied {
		t.Fatalf("%+v, %v; want %d operations with two lines each", report, err, *copied)
	}
	t.Logf("%d operations: %v after %v; all in %v", report.Copied, stages, took, time.Since(begun).Round(time.Millisecond))
}

// many is the path of a ledger with n operations, made by many callers at once.
func many(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remember(t.Context(), "secret_check", make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	next := make(chan ledger.Operation)
	var callers sync.WaitGroup
	for range 512 {
		callers.Go(func() {
			for op := range next {
				m, err := op.Insert((&filler{}).claim(op), []byte("sealed"), lineOf("claimed", "worker:a"))
				if err == nil {
					err = s.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(ledger.Found) (ledger.Move, error) { return m, nil })
				}
				if err == nil {
					m, err = m.To().Succeed(op.CreatedAt.Add(time.Second), ledger.Receipt{ProviderOperationID: "re"}, time.Time{}, lineOf("provider_answered", "worker:a"))
				}
				if err == nil {
					err = s.Record(t.Context(), m)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	f := &filler{T: t}
	for range n {
		next <- f.fresh()
	}
	close(next)
	callers.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
