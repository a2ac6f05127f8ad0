package sqlite_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

var callers = []int{1, 8, 64}

// BenchmarkEffects measures whole effects, a claim and its outcome, in effects a second, and
// compares them with the floor taken in the same run: the least that two durable
// writes one after the other can cost SQLite.
func BenchmarkEffects(b *testing.B) {
	for _, n := range callers {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			s := openBench(b, filepath.Join(b.TempDir(), "ledger.db"))
			floor := newFloor(b)
			b.ResetTimer()
			var took time.Duration
			var waits []time.Duration
			var floors, floorTook = 0, time.Duration(0)
			for done := 0; done < b.N; { // in slices, so that both see the same weather
				slice := min(b.N-done, max(b.N/5, 1))
				w, t := drive(n, slice, func(i int) { effect(b, s, done+i) })
				waits, took, done = append(waits, w...), took+t, done+slice
				b.StopTimer()
				k := min(max(slice/n, 1), 4000)
				floorTook += floor.run(b, k)
				floors += k
				b.StartTimer()
			}
			b.StopTimer()
			rate, floorRate := float64(b.N)/took.Seconds(), float64(floors)/floorTook.Seconds()
			b.ReportMetric(rate, "effects/s")
			b.ReportMetric(floorRate, "floor/s")
			b.ReportMetric(rate/floorRate, "x-floor")
			b.ReportMetric(float64(p99(waits).Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkGrouping compares 64 callers who share commits with 64 who write one after the
// other.
func BenchmarkGrouping(b *testing.B) {
	const n = 64
	grouped := openBench(b, filepath.Join(b.TempDir(), "ledger.db"))
	plain := openBench(b, filepath.Join(b.TempDir(), "ledger.db"))
	var turn sync.Mutex
	var took, plainTook time.Duration
	done, plainDone := 0, 0
	for range min(b.N, 5) { // a round is many effects
		_, t := drive(n, 10*n, func(i int) { effect(b, grouped, done+i) })
		took, done = took+t, done+10*n
		_, t = drive(n, n, func(i int) {
			turn.Lock()
			defer turn.Unlock()
			effect(b, plain, plainDone+i)
		})
		plainTook, plainDone = plainTook+t, plainDone+n
	}
	b.ReportMetric(float64(done)/took.Seconds()*plainTook.Seconds()/float64(plainDone), "x-plain")
}

// BenchmarkReplays measures calls that find a success, against a bare prepared read of
// the same columns of the same rows.
func BenchmarkReplays(b *testing.B) {
	for _, n := range callers {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			const rows = 2000
			path := filepath.Join(b.TempDir(), "ledger.db")
			s := openBench(b, path)
			drive(64, rows, func(i int) { effect(b, s, i) })
			bare := newBareRead(b, path)
			b.ResetTimer()
			var took, bareTook time.Duration
			bares := 0
			for done := 0; done < b.N; {
				slice := min(b.N-done, max(b.N/5, 1))
				_, t := drive(n, slice, func(i int) { replay(b, s, (done+i)%rows) })
				took, done = took+t, done+slice
				b.StopTimer()
				k := min(slice, 20000)
				bareTook += bare.run(b, k, rows)
				bares += k
				b.StartTimer()
			}
			b.StopTimer()
			rate, bareRate := float64(b.N)/took.Seconds(), float64(bares)/bareTook.Seconds()
			b.ReportMetric(rate, "replays/s")
			b.ReportMetric(bareRate, "bare/s")
			b.ReportMetric(rate/bareRate, "x-bare")
		})
	}
}

// BenchmarkSize reports bytes in the file, per finished operation with its transitions and per
// tombstone, after VACUUM.
func BenchmarkSize(b *testing.B) {
	const rows = 20000
	for range min(b.N, 1) { // the answer doesn't change with repetition
		path := filepath.Join(b.TempDir(), "ledger.db")
		s := openBench(b, path)
		drive(64, rows, func(i int) { effect(b, s, i) })
		whole := sizeOf(b, s, path)
		s = openBench(b, path)
		n, err := s.Prune(b.Context(), ledger.Prunable{Before: benchTime.Add(time.Hour), Limit: rows}, func(op ledger.Operation, _ []ledger.Transition) ledger.Operation {
			stone := op.Tombstone([]string{"payment_id", "amount", "currency"})
			stone.Chain = op.Chain
			return stone
		})
		if err != nil || n != rows {
			b.Fatalf("Prune = %d, %v", n, err)
		}
		b.ReportMetric(float64(whole)/rows, "B/operation")
		b.ReportMetric(float64(sizeOf(b, s, path))/rows, "B/tombstone")
	}
}

func sizeOf(b *testing.B, s *sqlite.Store, path string) int64 {
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	db := openRaw(b, path)
	if _, err := db.Exec(`VACUUM`); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

func openBench(b *testing.B, path string) *sqlite.Store {
	s, err := sqlite.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
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

func p99(waits []time.Duration) time.Duration {
	slices.Sort(waits)
	return waits[len(waits)*99/100]
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
		Fingerprint: ledger.Hash(key), Content: ledger.Hash(key), Fields: benchFields, Chain: ledger.Chain(key),
	}
}

func effect(b *testing.B, s *sqlite.Store, i int) {
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

func replay(b *testing.B, s *sqlite.Store, i int) {
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

// A floor writes a row and changes it, each durable by itself, with nothing around it.
type floor struct {
	insert, update *sql.Stmt
	n              int
}

func newFloor(b *testing.B) *floor {
	db := openRaw(b, filepath.Join(b.TempDir(), "floor.db"), "journal_mode(WAL)", "synchronous(FULL)", "fullfsync(1)")
	if _, err := db.Exec(`CREATE TABLE effects (id INTEGER PRIMARY KEY, key BLOB, status TEXT, details TEXT)`); err != nil {
		b.Fatal(err)
	}
	return &floor{insert: prepare(b, db, `INSERT INTO effects VALUES (?, ?, 'executing', ?)`), update: prepare(b, db, `UPDATE effects SET status = 'succeeded' WHERE id = ?`)}
}

func (f *floor) run(b *testing.B, n int) time.Duration {
	key, details, start := make([]byte, 32), strings.Repeat("d", 300), time.Now()
	for range n {
		f.n++
		if _, err := f.insert.Exec(f.n, key, details); err != nil {
			b.Fatal(err)
		}
		if _, err := f.update.Exec(f.n); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

// A bareRead reads a row by its key and does nothing with it.
type bareRead struct {
	read  *sql.Stmt
	cells []any
}

func newBareRead(b *testing.B, path string) *bareRead {
	db := openRaw(b, path, "query_only(1)", "mmap_size(268435456)")
	rows, err := db.Query(`SELECT name FROM pragma_table_info('agent_operations') WHERE name <> 'id' AND name <> 'idempotency_key'`)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	var names []string
	r := &bareRead{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			b.Fatal(err)
		}
		names, r.cells = append(names, name), append(r.cells, new(any))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		b.Fatal(err)
	}
	r.read = prepare(b, db, `SELECT `+strings.Join(names, ", ")+` FROM agent_operations WHERE key = ?`)
	return r
}

func (r *bareRead) run(b *testing.B, n, rows int) time.Duration {
	start := time.Now()
	for i := range n {
		key := sha256.Sum256(fmt.Append(nil, "key", i%rows))
		if err := r.read.QueryRow(key[:]).Scan(r.cells...); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

// openRaw opens one bare connection to a database file.
func openRaw(t testing.TB, path string, pragmas ...string) *sql.DB {
	t.Helper()
	dsn := "file:" + path + "?"
	for _, p := range pragmas {
		dsn += "&_pragma=" + p
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func prepare(t testing.TB, db *sql.DB, query string) *sql.Stmt {
	t.Helper()
	s, err := db.PrepareContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
