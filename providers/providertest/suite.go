package providertest

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

// TestProvider tries a provider in every way in which requests and answers get lost:
// at its own functions, and through a ledger on a file.
func TestProvider(t *testing.T, h Harness) {
	t.Run("traits", h.testTraits)
	t.Run("prepare", h.testPrepare)
	t.Run("answers", h.testAnswers)
	t.Run("attempt", h.testAttempts)
	t.Run("look-up", h.testLookups)
	t.Run("ledger", h.testLedger)
}

// testAnswers asks the harness for the provider's word for what every provider says.
func (h Harness) testAnswers(t *testing.T) {
	for _, status := range requiredAnswers {
		if !slices.ContainsFunc(h.Answers, func(a Answer) bool { return a.Status == status }) {
			t.Errorf("the harness has no answer with status %d", status)
		}
	}
	if len(h.Private) == 0 || len(h.Secrets) == 0 {
		t.Error("the harness plants no secret or no personal data")
	}
}

// testLedger runs all that goes through a ledger: many operations in one file, which is
// read for planted data afterwards.
func (h Harness) testLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	log := &journal{}
	t.Run("run", func(t *testing.T) { h.testWorlds(t, store, log) })
	for _, file := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		h.wantNoLeak(t, filepath.Base(file), string(b))
	}
	if err := store.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	h.wantNoLeak(t, "the log", log.String())
	if log.String() == "" {
		t.Error("nothing was logged, so the search of the log proves nothing")
	}
}

// A journal is a log that is kept.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// scope is what every provider of a run says it is.
const scope = "providertest"

func newSealer(t *testing.T) *ledger.Sealer {
	t.Helper()
	sealer, err := ledger.NewSealer([]byte("a seal key for providertest"))
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}
