package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
	"github.com/onceward/onceward/ledger/sqlite"
)

func TestStore(t *testing.T) {
	t.Parallel()
	ledgertest.TestStore(t, func(t *testing.T) func() ledger.Store {
		path := filepath.Join(t.TempDir(), "new", "ledger.db")
		return func() ledger.Store { return openStore(t, path) }
	})
}

func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}
