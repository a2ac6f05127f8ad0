package postgres

import (
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
)

// SelectByKey is what a replay costs.
var SelectByKey = reading["key"]

// StatementOf is the one statement that writes a move.
func StatementOf(m ledger.Move) (query string, args []any) { return changeOf(m).statement(newToken()) }

// SetSettleWithin makes a Store give up a lost answer sooner.
func SetSettleWithin(s *Store, d time.Duration) { s.settleWithin = d }

// Setting is what a setting is in a Store's sessions.
func Setting(t *testing.T, s *Store, name string) (value string) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
