package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/onceward/onceward/ledger"
)

// exportBytes bounds the payloads of one page.
const exportBytes = 16 << 20

// An Export is a ledger that is read whole, and that nobody else has open.
type Export struct {
	db   *sql.DB
	conn *sql.Conn
	row  *row
}

var _ ledger.Archive = (*Export)(nil)

// OpenExport opens the ledger in the file at path for itself alone, so that it can be moved elsewhere. Until
// Close no other program can open it, and while another one has it open, a server that runs on it for
// one, it isn't opened. An operation whose lease isn't over is in the way too: its attempt may still
// come to an end that has to be recorded. now is for that comparison. Either is a [*ledger.CopyError], any other
// error an [*OpenError]. An older schema is brought up to date; nothing else is changed.
func OpenExport(ctx context.Context, path string, now time.Time) (*Export, error) {
	e, err := openExport(ctx, path, now)
	if busy, ok := errors.AsType[*ledger.CopyError](err); ok {
		return nil, busy
	}
	if err != nil {
		return nil, openError(path, err)
	}
	return e, nil
}

func openExport(ctx context.Context, path string, now time.Time) (*Export, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &OpenError{Path: path, Hint: "there is no such file; name the ledger.db in your server's data directory"}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	busy := &ledger.CopyError{Where: path, What: "another program has it open, most likely a server that runs on it; end that (and SQLite shells), then copy"}
	s, err := Open(ctx, path)
	if err == nil {
		err = s.Close()
	}
	if code(err) == lib.SQLITE_BUSY {
		return nil, busy
	}
	if err != nil {
		return nil, err
	}
	// A connection keeps a shared lock on the file as long as it is open, even when it does nothing. With
	// exclusive locking this one asks for all of it at its first access, and keeps that.
	db, err := sql.Open("sqlite", source(path, `_pragma=busy_timeout(3000)&_pragma=locking_mode(EXCLUSIVE)&_pragma=synchronous(FULL)`))
	if err != nil {
		return nil, err
	}
	e := &Export{db: db, row: newRow(columns)}
	err = e.start(ctx, path, now)
	if code(err) == lib.SQLITE_BUSY {
		err = busy
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Export) start(ctx context.Context, path string, now time.Time) (err error) {
	if e.conn, err = e.db.Conn(ctx); err != nil {
		return err
	}
	var id string
	var until int64
	err = e.conn.QueryRowContext(ctx, `SELECT operation_id, lease_until FROM agent_operations
		WHERE id IN (SELECT operation FROM sealed_payloads) AND status = 'executing' AND lease_until > ? ORDER BY lease_until DESC LIMIT 1`, now.UnixMicro()).Scan(&id, &until)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return &ledger.CopyError{Where: path, What: fmt.Sprintf("operation %s may still be under way until %s; start a server on this ledger once more after that, let it settle what is open, end it, and copy",
		id, time.UnixMicro(until).UTC().Format(time.RFC3339))}
}

// Records implements [ledger.Archive].
func (e *Export) Records(ctx context.Context, after string, limit int) (records []ledger.Record, err error) {
	var ids []int64
	err = e.each(ctx, func(rows *sql.Rows) error {
		var id int64
		op, err := e.row.scan(scanAfter{rows, &id})
		if err == nil {
			ids, records = append(ids, id), append(records, ledger.Record{Operation: *op})
		}
		return err
	}, `SELECT id, `+list(columns)+` FROM agent_operations WHERE id > (SELECT coalesce(max(id), 0) FROM agent_operations WHERE operation_id = ?) ORDER BY id LIMIT ?`, after, limit)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	n, err := e.room(ctx, ids)
	if err != nil {
		return nil, err
	}
	records, ids = records[:n], ids[:n]
	at := make(map[int64]*ledger.Record, n)
	for i, id := range ids {
		at[id] = &records[i]
	}
	return records, errors.Join(e.payloads(ctx, at, ids[0], ids[n-1]), e.histories(ctx, at, ids[0], ids[n-1]))
}

// room is how many of the operations fit on a page with their payloads: at least one.
func (e *Export) room(ctx context.Context, ids []int64) (n int, err error) {
	n, size := len(ids), int64(0)
	err = e.each(ctx, func(rows *sql.Rows) error {
		var id, length int64
		if err := rows.Scan(&id, &length); err != nil {
			return err
		}
		if size += length; size > exportBytes {
			n = min(n, max(sort.Search(len(ids), func(i int) bool { return ids[i] >= id }), 1))
		}
		return nil
	}, `SELECT operation, length(sealed) FROM sealed_payloads WHERE operation BETWEEN ? AND ? ORDER BY operation`, ids[0], ids[len(ids)-1])
	return n, err
}

func (e *Export) payloads(ctx context.Context, at map[int64]*ledger.Record, first, last int64) error {
	return e.each(ctx, func(rows *sql.Rows) error {
		var id int64
		var sealed []byte
		err := rows.Scan(&id, &sealed)
		if r := at[id]; r != nil {
			r.Sealed = keepEmpty(sealed)
		}
		return err
	}, `SELECT operation, sealed FROM sealed_payloads WHERE operation BETWEEN ? AND ?`, first, last)
}

func (e *Export) histories(ctx context.Context, at map[int64]*ledger.Record, first, last int64) error {
	return e.each(ctx, func(rows *sql.Rows) error {
		var id, when int64
		var t ledger.Transition
		var from, reason, evidence, actor sql.NullString
		if err := rows.Scan(&id, &t.Seq, &from, (*string)(&t.To), &t.Attempt, &reason, &evidence, &actor, &when); err != nil {
			return err
		}
		t.From, t.Reason, t.Actor, t.At = ledger.Status(from.String), reason.String, actor.String, time.UnixMicro(when).UTC()
		if evidence.Valid {
			t.Evidence = json.RawMessage(evidence.String)
		}
		if r := at[id]; r != nil {
			r.History = append(r.History, t)
		}
		return nil
	}, `SELECT operation, seq, from_status, to_status, attempt, reason, evidence, actor, at FROM history WHERE operation BETWEEN ? AND ? ORDER BY operation, seq`, first, last)
}

// Facts implements [ledger.Archive].
func (e *Export) Facts(ctx context.Context) (map[string][]byte, error) {
	facts := map[string][]byte{}
	return facts, e.each(ctx, func(rows *sql.Rows) error {
		var name string
		var value []byte
		err := rows.Scan(&name, &value)
		facts[name] = keepEmpty(value)
		return err
	}, `SELECT name, value FROM ledger_facts`)
}

// AllUsage implements [ledger.Archive].
func (e *Export) AllUsage(ctx context.Context) (map[string]int64, error) {
	usage := map[string]int64{}
	return usage, e.each(ctx, func(rows *sql.Rows) error {
		var bucket string
		var used int64
		err := rows.Scan(&bucket, &used)
		usage[bucket] = used
		return err
	}, `SELECT bucket, used FROM limit_usage`)
}

// each calls f for every row that the query finds.
func (e *Export) each(ctx context.Context, f func(*sql.Rows) error, query string, args ...any) error {
	rows, err := e.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return readError(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return readError(err)
		}
	}
	if err := rows.Err(); err != nil {
		return readError(err)
	}
	return nil
}

// Close lets others open the ledger again.
func (e *Export) Close() error {
	if e.conn == nil {
		return e.db.Close()
	}
	return errors.Join(e.conn.Close(), e.db.Close())
}

// scanAfter scans a column that stands before an operation's.
type scanAfter struct {
	rows *sql.Rows
	id   *int64
}

func (s scanAfter) Scan(cells ...any) error { return s.rows.Scan(append([]any{s.id}, cells...)...) }
