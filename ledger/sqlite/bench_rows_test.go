package sqlite_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	driver "modernc.org/sqlite"

	"github.com/onceward/onceward/ledger"
)

var (
	benchCommits atomic.Int64 // of databases in a folder called counted
	benchDelay   atomic.Int64 // nanoseconds that each of them takes longer
)

func init() {
	driver.RegisterConnectionHook(func(conn driver.ExecQuerierContext, dsn string) error {
		if !strings.Contains(dsn, "/counted/") {
			return nil
		}
		hooks, ok := conn.(driver.HookRegisterer)
		if !ok {
			return errors.New("this driver has no commit hook")
		}
		hooks.RegisterCommitHook(func() int32 {
			benchCommits.Add(1)
			if d := benchDelay.Load(); d > 0 {
				time.Sleep(time.Duration(d))
			}
			return 0
		})
		return nil
	})
}

func countedPath(b *testing.B) string {
	dir := filepath.Join(b.TempDir(), "counted")
	if err := os.Mkdir(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	return filepath.Join(dir, "ledger.db")
}

// BenchmarkRows compares a ledger that holds many operations (ONCEWARD_BENCH_ROWS, such as
// 1000000; 20,000) with an empty one, 64 callers, side by side.
func BenchmarkRows(b *testing.B) {
	rows := 20000
	if v := os.Getenv("ONCEWARD_BENCH_ROWS"); v != "" {
		var err error
		if rows, err = strconv.Atoi(v); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	if v := os.Getenv("ONCEWARD_BENCH_DIR"); v != "" { // keeps the file, which takes long to fill
		dir = v
	}
	full, empty := openBench(b, filepath.Join(dir, "full.db")), openBench(b, filepath.Join(b.TempDir(), "empty.db"))
	if there, err := full.Find(b.Context(), ledger.Filter{ID: benchOperation(rows - 1).ID}); err != nil || len(there) == 0 {
		drive(64, rows, func(i int) { effect(b, full, i) })
	}
	b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
		const n = 64
		base := int(time.Now().UnixNano()) // ids that weren't there
		drive(n, 2000, func(i int) { effect(b, full, base-i-1) })
		var took, emptyTook, reads, emptyReads time.Duration
		var waits []time.Duration
		b.ResetTimer()
		for done := 0; done < b.N; {
			slice := min(b.N-done, max(b.N/5, 1))
			w, t := drive(n, slice, func(i int) { effect(b, full, base+done+i) })
			waits, took = append(waits, w...), took+t
			_, t = drive(n, slice, func(i int) { effect(b, empty, base+done+i) })
			emptyTook += t
			_, t = drive(n, slice, func(i int) { replay(b, full, (done*7919+i*104729)%rows) })
			reads += t
			_, t = drive(n, slice, func(i int) { replay(b, empty, base+(i*104729)%(done+slice)) })
			emptyReads, done = emptyReads+t, done+slice
		}
		b.ReportMetric(float64(b.N)/took.Seconds(), "effects/s")
		b.ReportMetric(emptyTook.Seconds()/took.Seconds(), "x-empty")
		b.ReportMetric(emptyReads.Seconds()/reads.Seconds(), "replays-x-empty")
		b.ReportMetric(float64(p99(waits).Microseconds())/1000, "p99-ms")
	})
}

// BenchmarkSlowCommits compares 64 callers who share commits with 64 who write one after the other,
// with a millisecond more for each commit.
func BenchmarkSlowCommits(b *testing.B) {
	const n = 64
	grouped, plain := openBench(b, countedPath(b)), openBench(b, countedPath(b))
	benchDelay.Store(int64(time.Millisecond))
	defer benchDelay.Store(0)
	turn := make(chan struct{}, 1)
	var took, plainTook time.Duration
	done, plainDone := 0, 0
	for range min(b.N, 3) {
		_, t := drive(n, 20*n, func(i int) { effect(b, grouped, done+i) })
		took, done = took+t, done+20*n
		_, t = drive(n, n, func(i int) {
			turn <- struct{}{}
			effect(b, plain, plainDone+i)
			<-turn
		})
		plainTook, plainDone = plainTook+t, plainDone+n
	}
	b.ReportMetric(float64(done)/took.Seconds()*plainTook.Seconds()/float64(plainDone), "x-plain")
}

// BenchmarkCommits says how many commits, each a flush to the disk, an effect takes.
func BenchmarkCommits(b *testing.B) {
	for _, n := range append(callers, 512) {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			s := openBench(b, countedPath(b))
			benchCommits.Store(0)
			waits, took := drive(n, b.N, func(i int) { effect(b, s, i) })
			b.ReportMetric(float64(benchCommits.Load())/float64(b.N), "commits/effect")
			b.ReportMetric(float64(b.N)/took.Seconds(), "effects/s")
			b.ReportMetric(float64(p99(waits).Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkArticle compares the longest waits of 64 callers with those of the way that articles
// describe: a pool of connections, BEGIN IMMEDIATE and a busy timeout.
func BenchmarkArticle(b *testing.B) {
	const n = 64
	s := openBench(b, filepath.Join(b.TempDir(), "ledger.db"))
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "article.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(60000)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE idempotency_keys (key BLOB PRIMARY KEY, status TEXT NOT NULL, response TEXT)`); err != nil {
		b.Fatal(err)
	}
	write := func(query string, args ...any) error {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(query, args...); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}
	var ours, theirs []time.Duration
	var took, theirTook time.Duration
	done := 0
	for range min(b.N, 3) {
		w, t := drive(n, 20*n, func(i int) { effect(b, s, done+i) })
		ours, took = append(ours, w...), took+t
		w, t = drive(n, 20*n, func(i int) {
			key := sha256.Sum256(fmt.Append(nil, "key", done+i))
			err := write(`INSERT INTO idempotency_keys (key, status) VALUES (?, 'started')`, key[:])
			if err == nil {
				err = write(`UPDATE idempotency_keys SET status = 'finished', response = ? WHERE key = ?`, `{"id":"re_123"}`, key[:])
			}
			if err != nil {
				b.Error(err)
			}
		})
		theirs, theirTook, done = append(theirs, w...), theirTook+t, done+20*n
	}
	b.ReportMetric(float64(p99(theirs))/float64(p99(ours)), "p99-x-ours")
	b.ReportMetric(theirTook.Seconds()/took.Seconds(), "speed-x-article")
}
