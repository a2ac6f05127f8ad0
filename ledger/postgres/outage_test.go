package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
)

func TestTheFirstCallAfterAnOutageWorks(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, newSchema(t))
	s := openStore(t, through)
	op := claim(t, s, 1, "")
	both := make(chan struct{}) // two connections in the pool
	go func() { defer close(both); claim(t, s, 2, "") }()
	claim(t, s, 3, "")
	<-both

	address := p.listener.Addr().String()
	p.down()
	begin := func() error {
		return s.Begin(t.Context(), ledger.Sought{Key: benchOperation(4).Key}, func(ledger.Found) (ledger.Move, error) {
			return benchOperation(4).Insert(limitedClaim(""), nil, benchClaim)
		})
	}
	if err := begin(); err == nil || errors.Is(err, ledger.ErrCommitLost) {
		t.Errorf("Begin without a database = %v, want an error that says that nothing was written", err)
	}
	if err := s.Record(t.Context(), outcome(t, op)); err == nil || errors.Is(err, ledger.ErrCommitLost) {
		t.Errorf("Record without a database = %v, want an error that says that nothing was written", err)
	}
	p.up(address)
	if err := s.Record(t.Context(), outcome(t, op)); err != nil {
		t.Errorf("Record after the outage: %v", err)
	}
	if err := begin(); err != nil {
		t.Errorf("Begin after the outage: %v", err)
	}
}

// Connections that died unnoticed, as when the server was restarted, are found out about by using
// them. No call suffers.
func TestDeadConnectionsInThePoolHurtNobody(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, newSchema(t))
	s := openStore(t, through)
	op := claim(t, s, 1, "")
	for _, call := range map[string]func() error{
		"Find":   func() error { _, err := s.Find(t.Context(), ledger.Filter{}); return err },
		"Sealed": func() error { _, err := s.Sealed(t.Context(), op.ID); return err },
		"Record": func() error { return s.Record(t.Context(), outcome(t, op)) },
	} {
		address := p.listener.Addr().String()
		p.down()
		p.up(address)
		if err := call(); err != nil {
			t.Errorf("a call on a dead connection: %v", err)
		}
	}
}

// Two servers, many callers: for each key one claim, and everybody is told the truth.
func TestTwoServersRaceForTheSameKeys(t *testing.T) {
	t.Parallel()
	const keys, callers = 20, 6
	place := newSchema(t)
	servers := []*postgres.Store{openStore(t, place), openStore(t, place)}
	var claimed [keys]atomic.Int32
	var wg sync.WaitGroup
	for i := range keys * callers {
		wg.Go(func() {
			op, inserts := benchOperation(1000+i), false
			op.Key = benchOperation(i % keys).Key
			err := servers[i/keys%2].Begin(t.Context(), ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
				if inserts = f.Operation == nil; !inserts {
					return ledger.Move{}, nil
				}
				return op.Insert(limitedClaim("run"), benchSeal, benchClaim)
			})
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
			if inserts && err == nil {
				claimed[i%keys].Add(1)
			}
		})
	}
	wg.Wait()
	for i := range claimed {
		if n := claimed[i].Load(); n != 1 {
			t.Errorf("key %d was claimed %d times", i, n)
		}
	}
	used, err := servers[0].Usage(t.Context(), nil)
	if err != nil || len(used) != 1 {
		t.Fatalf("Usage = %v, %v", used, err)
	}
	for bucket, n := range used {
		if n != keys {
			t.Errorf("%s has %d, want %d", bucket, n, keys)
		}
	}
}

// What the database refuses fails its own caller, and not those who share the transaction.
func TestARefusalFailsAlone(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	s := openStore(t, place)
	execute(t, place, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE check_violation; END';
		CREATE TRIGGER no BEFORE INSERT ON agent_operations FOR EACH ROW WHEN (NEW.operation_id LIKE '%3') EXECUTE FUNCTION no()`)
	const n = 30
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			m, err := benchOperation(i).Insert(limitedClaim("run"), benchSeal, benchClaim)
			if err == nil {
				err = s.Record(t.Context(), m)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for i, err := range errs {
		refused, _ := errors.AsType[*pgconn.PgError](err)
		if i%10 == 3 && (refused == nil || refused.Code != "23514") || i%10 != 3 && err != nil {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	all, err := s.Find(t.Context(), ledger.Filter{})
	if err != nil || len(all) != n-3 {
		t.Errorf("there are %d operations (%v), want %d", len(all), err, n-3)
	}
}

func TestAServerThatHangsHoldsNobodyForLong(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	s := openWith(t, postgres.Options{URL: place, MaxConns: 6, StatementTimeout: 300 * time.Millisecond})
	op := claim(t, s, 1, "")
	conn := connect(t, place)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM agent_operations FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), outcome(t, op)); err == nil || errors.Is(err, ledger.ErrCommitLost) || errors.Is(err, ledger.ErrStale) {
		t.Errorf("Record of a locked row = %v, want an error that says that nothing was written", err)
	}
	if err := tx.Rollback(background); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), outcome(t, op)); err != nil {
		t.Errorf("Record after that: %v", err)
	}
}

func TestMovedTellsAtOnce(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	here, there := openStore(t, place), openStore(t, place)
	op := claim(t, there, 1, "")
	moved, stop := here.Moved(op.ID)
	defer stop()
	other, stopOther := here.Moved("op_other")
	defer stopOther()
	heard := func(c <-chan struct{}) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		select {
		case <-c:
			return true
		case <-ctx.Done():
			return false
		}
	}
	if !heard(moved) || !heard(other) {
		t.Fatal("nothing says that the listening has begun")
	}
	record(t, there, outcome(t, op))
	if !heard(moved) {
		t.Error("the move isn't heard of")
	}
	select {
	case <-other:
		t.Error("a waiter for another operation is told, too")
	default:
	}
}

func TestMovedAfterClose(t *testing.T) {
	t.Parallel()
	s := openStore(t, newSchema(t))
	_, stop := s.Moved("op_1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	stop()
	_, stop = s.Moved("op_2")
	stop()
}

func TestClockSkewIsSmallHere(t *testing.T) {
	t.Parallel()
	skew, err := openStore(t, newSchema(t)).ClockSkew(t.Context())
	if err != nil || skew.Abs() > time.Second {
		t.Errorf("ClockSkew = %v, %v; want about nothing on one machine", skew, err)
	}
}
