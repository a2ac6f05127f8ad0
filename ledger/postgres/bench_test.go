package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
)

var callers = []int{1, 8, 64, 512}

// benchConns is how many connections both the ledger and what it is compared with may have.
const benchConns = 10

// BenchmarkEffects measures whole effects, a claim and its outcome, in effects a second, and
// compares them with the floor taken in the same run: the same two statements, each a
// transaction of its own, by pgx on a table without guards, history, payloads or second indexes.
func BenchmarkEffects(b *testing.B) {
	for _, n := range callers {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			place := newSchema(b)
			s := openWith(b, postgres.Options{URL: place, MaxConns: benchConns})
			floor := newFloor(b, place)
			b.ResetTimer()
			compare(b, n, "effects/s", func(i int) { effect(b, s, i) }, func(i int) { floor.effect(b, i) })
		})
	}
}

// BenchmarkReplays measures calls that find a success, against the same prepared read of the same
// rows by pgx.
func BenchmarkReplays(b *testing.B) {
	for _, n := range callers {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			const rows = 2000
			place := newSchema(b)
			s := openWith(b, postgres.Options{URL: place, MaxConns: benchConns})
			drive(64, rows, func(i int) { effect(b, s, i) })
			floor := newFloor(b, place)
			b.ResetTimer()
			compare(b, n, "replays/s", func(i int) { replay(b, s, i%rows) }, func(i int) { floor.read(b, i%rows) })
		})
	}
}

// compare drives both in slices, so that both see the same weather.
func compare(b *testing.B, n int, unit string, ours, floor func(i int)) {
	var took, floorTook time.Duration
	var waits []time.Duration
	for done := 0; done < b.N; {
		slice := min(b.N-done, max(b.N/5, 1))
		w, t := drive(n, slice, func(i int) { ours(done + i) })
		waits, took = append(waits, w...), took+t
		b.StopTimer()
		_, t = drive(n, slice, func(i int) { floor(done + i) })
		floorTook += t
		done += slice
		b.StartTimer()
	}
	b.StopTimer()
	slices.Sort(waits)
	b.ReportMetric(float64(b.N)/took.Seconds(), unit)
	b.ReportMetric(float64(b.N)/floorTook.Seconds(), "floor/s")
	b.ReportMetric(floorTook.Seconds()/took.Seconds(), "x-floor")
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkSize reports bytes of all tables and indexes, per finished operation with its
// transitions, and per tombstone, after VACUUM FULL.
func BenchmarkSize(b *testing.B) {
	const rows = 20000
	for range min(b.N, 1) { // the answer doesn't change with repetition
		place := newSchema(b)
		s := openWith(b, postgres.Options{URL: place, MaxConns: benchConns})
		drive(64, rows, func(i int) { effect(b, s, i) })
		b.ReportMetric(size(b, place)/rows, "B/operation-as-written")
		execute(b, place, `VACUUM FULL`)
		b.ReportMetric(size(b, place)/rows, "B/operation")
		n, err := s.Prune(b.Context(), ledger.Prunable{Before: benchTime.Add(time.Hour), Limit: rows}, func(op ledger.Operation, _ []ledger.Transition) ledger.Operation {
			stone := op.Tombstone([]string{"payment_id", "amount", "currency"})
			stone.Chain = op.Chain
			return stone
		})
		if err != nil || n != rows {
			b.Fatalf("Prune = %d, %v", n, err)
		}
		execute(b, place, `VACUUM FULL`)
		b.ReportMetric(size(b, place)/rows, "B/tombstone")
	}
}

func size(b *testing.B, place string) (bytes float64) {
	err := connect(b, place).QueryRow(b.Context(), `SELECT sum(pg_total_relation_size(c.oid))::float8 FROM pg_class c
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'`).Scan(&bytes)
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}

// drive has n callers do total things, and says how long each took and all of it.
func drive(n, total int, do func(i int)) ([]time.Duration, time.Duration) {
	var next atomic.Int64
	var wg sync.WaitGroup
	waits := make([]time.Duration, total)
	start := time.Now()
	for range n {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < total; i = int(next.Add(1)) - 1 {
				begun := time.Now()
				do(i)
				waits[i] = time.Since(begun)
			}
		})
	}
	wg.Wait()
	return waits, time.Since(start)
}

var (
	benchTime    = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	benchSeal    = []byte(strings.Repeat("s", 300))
	benchFields  = ledger.FieldHashes{"payment_id": {1}, "amount": {2}, "currency": {3}, "reason": {4}, "note": {5}}
	benchClaim   = ledger.Note{Actor: "worker:host-4711", Reason: "claimed"}
	benchOutcome = ledger.Note{Actor: "worker:host-4711", Reason: "provider_answered", Evidence: json.RawMessage(`{"id":"re_123","status":"accepted"}`)}
)

func benchOperation(i int) ledger.Operation {
	key := ledger.Key(sha256.Sum256(fmt.Append(nil, "key", i)))
	return ledger.Operation{
		ID: fmt.Sprintf("op_01930000-0000-7000-8000-%012d", i), Key: key, Action: "refund",
		Intent:      ledger.Intent{Identity: ledger.Strict, WorkflowID: fmt.Sprintf("case-%d", i/5), Step: "refund_customer", BusinessObject: "order-731", Revision: 1, RunID: "run-77"},
		Fingerprint: ledger.Hash(key), Content: ledger.Hash(key), Fields: benchFields,
	}
}

func effect(b *testing.B, s *postgres.Store, i int) {
	op := benchOperation(i)
	err := s.Begin(b.Context(), ledger.Sought{Key: op.Key}, func(f ledger.Found) (m ledger.Move, err error) {
		if f.Operation != nil {
			return m, fmt.Errorf("operation %d exists", i)
		}
		m, err = op.Insert(ledger.Claim{Owner: "host-4711", At: benchTime, Lease: 10 * time.Second, Provider: "sandbox", Scope: "0123456789abcdef"}, benchSeal, benchClaim)
		op = m.To()
		return m, err
	})
	if err != nil {
		b.Error(err)
		return
	}
	m, err := op.Succeed(benchTime.Add(time.Second), ledger.Receipt{
		ProviderOperationID: "re_0123456789", ProviderStatus: "accepted", Result: json.RawMessage(`{"payment_id":"pay_8812","amount":"100.00","currency":"USD"}`),
	}, time.Time{}, benchOutcome)
	if err == nil {
		err = s.Record(b.Context(), m)
	}
	if err != nil {
		b.Error(err)
	}
}

func replay(b *testing.B, s *postgres.Store, i int) {
	key := ledger.Key(sha256.Sum256(fmt.Append(nil, "key", i)))
	err := s.Begin(b.Context(), ledger.Sought{Key: key}, func(f ledger.Found) (m ledger.Move, err error) {
		if f.Operation == nil || f.Operation.Status != ledger.Succeeded {
			return m, fmt.Errorf("operation %d has not succeeded", i)
		}
		return m, nil
	})
	if err != nil {
		b.Error(err)
	}
}

// A floor does the least that the same effect can cost.
type floor struct{ pool *pgxpool.Pool }

func newFloor(b *testing.B, place string) *floor {
	execute(b, place, `CREATE TABLE floor (LIKE agent_operations INCLUDING DEFAULTS); ALTER TABLE floor DROP COLUMN id, ADD PRIMARY KEY (operation_id), ADD UNIQUE (idempotency_key), SET (fillfactor = 80)`)
	config, err := pgxpool.ParseConfig(place)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = benchConns
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return &floor{pool}
}

func (f *floor) effect(b *testing.B, i int) {
	op := benchOperation(i)
	m, err := op.Insert(limitedClaim(""), benchSeal, benchClaim)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range []ledger.Move{m, outcome(b, m.To())} {
		query, args := postgres.StatementOf(m)
		if _, err := f.pool.Exec(b.Context(), strings.Replace(query, "agent_operations", "floor", 1), args...); err != nil {
			b.Error(err)
		}
	}
}

func (f *floor) read(b *testing.B, i int) {
	rows, err := f.pool.Query(b.Context(), postgres.SelectByKey, benchOperation(i).Key.String())
	if err != nil {
		b.Error(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		if _, err := rows.Values(); err != nil {
			b.Error(err)
		}
	}
}
