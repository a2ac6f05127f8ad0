package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward/ledger"
)

// A Store is a ledger in a PostgreSQL database. It is made by [Open].
type Store struct {
	pool         *pgxpool.Pool
	queue        queue
	listener     *listener
	roundTrip    time.Duration // how long a round trip may take at most
	connect      time.Duration // how long getting a connection may take
	settleWithin time.Duration

	closing sync.Once
}

var _ interface {
	ledger.Store
	ledger.Clocked
	ledger.Waiter
} = (*Store)(nil)

// Sealed implements [ledger.Store]. It is nil for an operation that doesn't exist, too.
func (s *Store) Sealed(ctx context.Context, operationID string) (sealed []byte, err error) {
	sealed, err = s.bytes(ctx, `SELECT p.sealed FROM sealed_payloads p JOIN agent_operations o ON o.id = p.operation WHERE o.operation_id = $1`, operationID)
	if len(sealed) == 0 {
		return nil, err
	}
	return sealed, err
}

// bytes reads the only value there may be, nil if there is none.
func (s *Store) bytes(ctx context.Context, query string, args ...any) (value []byte, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, query, args...).Scan(&value)
		if errors.Is(err, pgx.ErrNoRows) {
			value = nil
			return nil
		}
		return err
	})
	return value, err
}

const selectHistory = `SELECT o.operation_id, h.seq, coalesce(h.from_status, ''), h.to_status, h.attempt, coalesce(h.reason, ''), h.evidence, coalesce(h.actor, ''), h.at
	FROM history h JOIN agent_operations o ON o.id = h.operation WHERE o.operation_id = ANY($1) ORDER BY h.operation, h.seq`

// History implements [ledger.Store].
func (s *Store) History(ctx context.Context, operationID string) ([]ledger.Transition, error) {
	histories, err := s.histories(ctx, []string{operationID})
	return histories[operationID], err
}

func (s *Store) histories(ctx context.Context, ids []string) (map[string][]ledger.Transition, error) {
	var histories map[string][]ledger.Transition
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		histories = map[string][]ledger.Transition{}
		rows, err := conn.Query(ctx, selectHistory, ids)
		if err != nil {
			return err
		}
		var id string
		var from, to string
		var evidence *string
		var t ledger.Transition
		_, err = pgx.ForEachRow(rows, []any{&id, &t.Seq, &from, &to, &t.Attempt, &t.Reason, &evidence, &t.Actor, &t.At}, func() error {
			line := t
			line.From, line.To, line.At = ledger.Status(from), ledger.Status(to), t.At.UTC()
			if evidence != nil {
				line.Evidence = json.RawMessage(*evidence)
			}
			histories[id] = append(histories[id], line)
			return nil
		})
		return err
	})
	return histories, err
}

// Remember implements [ledger.Store].
func (s *Store) Remember(ctx context.Context, name string, value []byte) (kept []byte, err error) {
	// Doing it twice changes nothing, so that it may be repeated like a reading. The second statement
	// sees what another transaction has written that made the first do nothing.
	err = s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var b pgx.Batch
		b.Queue(`INSERT INTO ledger_facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, name, keepEmpty(value))
		b.Queue(`SELECT value FROM ledger_facts WHERE name = $1`, name).QueryRow(func(row pgx.Row) error { return row.Scan(&kept) })
		return conn.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// Recall implements [ledger.Store].
func (s *Store) Recall(ctx context.Context, name string) ([]byte, error) {
	return s.bytes(ctx, `SELECT value FROM ledger_facts WHERE name = $1`, name)
}

// Usage implements [ledger.Store].
func (s *Store) Usage(ctx context.Context, buckets []string) (used map[string]int64, err error) {
	query, args := `SELECT bucket, used FROM limit_usage ORDER BY used DESC LIMIT 1000`, []any(nil)
	if len(buckets) > 0 {
		query, args = reading["used"], []any{buckets}
	}
	err = s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		used, err = taken(rows, buckets)
		return err
	})
	return used, err
}

// ClockSkew implements [ledger.Clocked]. The database's clock is read in the middle of a round
// trip; of three, the shortest counts, and half of it is how wrong the answer can be.
func (s *Store) ClockSkew(ctx context.Context) (skew time.Duration, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		shortest := time.Duration(-1)
		for range 3 {
			var theirs time.Time
			begun := time.Now()
			if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
				return err
			}
			if took := time.Since(begun); shortest < 0 || took < shortest {
				shortest, skew = took, theirs.Sub(begun.Add(took/2))
			}
		}
		return nil
	})
	return skew, err
}

// Close implements [ledger.Store]. Closing twice is harmless.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.close()
		s.listener.close()
		s.pool.Close() // waits for all connections to come back
	})
	return nil
}

func (s *Store) isClosed() bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.closed
}
