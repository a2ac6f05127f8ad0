package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	driver "modernc.org/sqlite"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

// commitsFail makes the COMMITs of databases in a folder named "failing" fail.
var commitsFail atomic.Bool

func init() {
	driver.RegisterConnectionHook(func(conn driver.ExecQuerierContext, dsn string) error {
		if !strings.Contains(dsn, "/failing/") {
			return nil
		}
		hooks, ok := conn.(driver.HookRegisterer)
		if !ok {
			return errors.New("this driver has no commit hook")
		}
		hooks.RegisterCommitHook(func() int32 {
			if commitsFail.Load() {
				return 1
			}
			return 0
		})
		return nil
	})
}

func TestAFailingCommitIsToldAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "failing", "ledger.db"))
	commitsFail.Store(true)
	if err := insertErr(t, s, 1); err == nil {
		t.Error("Begin = nil, want the failure of its COMMIT")
	}
	commitsFail.Store(false)
	if found := find(t, s, ledger.Filter{}); len(found) != 0 {
		t.Errorf("%d operations were written, want none", len(found))
	}
	if err := insertErr(t, s, 1); err != nil {
		t.Errorf("the next Begin = %v, want nil", err)
	}
}

func TestAFailingTriggerIsToldAndLeavesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openStore(t, path)
	if err := insertErr(t, s, 1); err != nil {
		t.Fatal(err)
	}
	db := openRaw(t, path)
	if _, err := db.Exec(`CREATE TRIGGER no_outcome BEFORE UPDATE OF status ON agent_operations WHEN NEW.status = 'succeeded' BEGIN SELECT RAISE(ABORT, 'no'); END`); err != nil {
		t.Fatal(err)
	}
	before := dump(t, db)
	op := find(t, s, ledger.Filter{})[0]
	m, err := op.Succeed(benchTime, ledger.Receipt{}, op.ExpiresAt, benchOutcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), m); err == nil || errors.Is(err, ledger.ErrStale) || errors.Is(err, ledger.ErrCommitLost) {
		t.Errorf("Record = %v, want the trigger's refusal", err)
	}
	if diff := cmp.Diff(before, dump(t, db)); diff != "" {
		t.Errorf("a refused outcome changed the ledger (-before +after):\n%s", diff)
	}
	if _, err := db.Exec(`DROP TRIGGER no_outcome`); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), m); err != nil {
		t.Errorf("the next Record = %v, want nil", err)
	}
}

// Many writes share transactions here, and every third of them is one that the
// database refuses.
func TestARefusedWriteFailsAlone(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "ledger.db"))
	const n = 60
	errs := make([]error, n)
	drive(n, n, func(i int) {
		if i%3 != 0 {
			errs[i] = insertErr(t, s, i)
			return
		}
		op := benchOperation(i)
		op.Action = "" // the program lets it pass, the database doesn't
		errs[i] = beginErr(t, s, op)
	})
	for i, err := range errs {
		if (err != nil) != (i%3 == 0) {
			t.Errorf("write %d = %v", i, err)
		}
	}
	if got := len(find(t, s, ledger.Filter{})); got != n*2/3 {
		t.Errorf("%d operations are stored, want %d", got, n*2/3)
	}
}

func TestAPanickingDecisionIsAnError(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "ledger.db"))
	calls := 0
	op := benchOperation(1)
	op.BaseKey = op.Key
	err := s.Begin(t.Context(), ledger.Sought{BaseKey: op.Key}, func(ledger.Found) (ledger.Move, error) {
		if calls++; calls > 1 {
			panic("inside the transaction")
		}
		return op.Insert(ledger.Claim{Owner: "host", At: benchTime}, nil, benchClaim)
	})
	if err == nil {
		t.Error("Begin = nil, want an error")
	}
	if err := insertErr(t, s, 2); err != nil {
		t.Errorf("the next Begin = %v, want nil", err)
	}
	if got := len(find(t, s, ledger.Filter{})); got != 1 {
		t.Errorf("%d operations are stored, want 1", got)
	}
}

func insertErr(t *testing.T, s *sqlite.Store, i int) error { return beginErr(t, s, benchOperation(i)) }

func beginErr(t *testing.T, s *sqlite.Store, op ledger.Operation) error {
	return s.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
		if f.Operation != nil {
			return ledger.Move{}, fmt.Errorf("%s is there already", op.ID)
		}
		return op.Insert(ledger.Claim{Owner: "host", At: benchTime, Provider: "sandbox"}, benchSeal, benchClaim)
	})
}

func find(t *testing.T, s *sqlite.Store, f ledger.Filter) []ledger.Operation {
	t.Helper()
	found, err := s.Find(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
