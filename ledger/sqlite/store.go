package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A Store is a ledger in one SQLite file. It is made by [Open].
type Store struct {
	queue   queue
	writer  *writer
	writing *sql.DB
	readers *readers

	closing  sync.Once
	closeErr error
}

var _ ledger.Store = (*Store)(nil)

// Sealed implements [ledger.Store]. It is nil for an operation that doesn't exist, too.
func (s *Store) Sealed(ctx context.Context, operationID string) (sealed []byte, err error) {
	err = s.readers.use(ctx, func(r *reader) error {
		err := r.sealed.QueryRowContext(context.Background(), operationID).Scan(&sealed)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, readError(err)
	}
	if len(sealed) == 0 {
		return nil, nil
	}
	return sealed, nil
}

// History implements [ledger.Store].
func (s *Store) History(ctx context.Context, operationID string) (history []ledger.Transition, err error) {
	err = s.readers.use(ctx, func(r *reader) error {
		rows, err := r.history.QueryContext(ctx, operationID)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			t, err := scanTransition(rows)
			if err != nil {
				return err
			}
			history = append(history, t)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, readError(err)
	}
	return history, nil
}

func scanTransition(rows *sql.Rows) (t ledger.Transition, err error) {
	var from, reason, evidence, actor sql.NullString
	var at int64
	err = rows.Scan(&t.Seq, &from, (*string)(&t.To), &t.Attempt, &reason, &evidence, &actor, &at)
	t.From, t.Reason, t.Actor, t.At = ledger.Status(from.String), reason.String, actor.String, time.UnixMicro(at).UTC()
	if evidence.Valid {
		t.Evidence = json.RawMessage(evidence.String)
	}
	return t, err
}

// Remember implements [ledger.Store].
func (s *Store) Remember(ctx context.Context, name string, value []byte) ([]byte, error) {
	f := &fact{name: name, value: keepEmpty(value)}
	if err := s.queue.write(ctx, f); err != nil {
		return nil, err
	}
	return f.value, nil
}

// A fact is kept once and never changes.
type fact struct {
	name  string
	value []byte
}

func (f *fact) do(w *writer) error {
	var kept []byte
	err := w.conn.QueryRowContext(context.Background(), `SELECT value FROM ledger_facts WHERE name = ?`, f.name).Scan(&kept)
	switch {
	case err == nil:
		f.value = keepEmpty(kept)
		return nil
	case !errors.Is(err, sql.ErrNoRows):
		return w.judge(err)
	}
	_, err = w.conn.ExecContext(context.Background(), `INSERT INTO ledger_facts (name, value) VALUES (?, ?)`, f.name, f.value)
	return w.judge(err)
}

// Recall implements [ledger.Store].
func (s *Store) Recall(ctx context.Context, name string) (value []byte, err error) {
	err = s.readers.use(ctx, func(r *reader) error {
		err := r.conn.QueryRowContext(ctx, `SELECT value FROM ledger_facts WHERE name = ?`, name).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		value = keepEmpty(value)
		return err
	})
	if err != nil {
		return nil, readError(err)
	}
	return value, nil
}

// Usage implements [ledger.Store].
func (s *Store) Usage(ctx context.Context, buckets []string) (used map[string]int64, err error) {
	err = s.readers.use(ctx, func(r *reader) error {
		if len(buckets) > 0 {
			used, err = r.read.usage(buckets)
			return err
		}
		rows, err := r.conn.QueryContext(ctx, `SELECT bucket, used FROM limit_usage ORDER BY used DESC LIMIT 1000`)
		if err != nil {
			return err
		}
		defer rows.Close()
		used = map[string]int64{}
		for rows.Next() {
			var bucket string
			var n int64
			if err := rows.Scan(&bucket, &n); err != nil {
				return err
			}
			used[bucket] = n
		}
		return rows.Err()
	})
	if err != nil {
		return nil, readError(err)
	}
	return used, nil
}

// Close implements [ledger.Store]. Closing twice is harmless.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.close()
		s.closeErr = errors.Join(s.readers.close(), s.writer.close(), s.writing.Close())
	})
	return s.closeErr
}
