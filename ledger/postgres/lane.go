package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward/ledger"
)

const (
	// settleWithin bounds how long a write whose answer was lost is asked about.
	settleWithin = 20 * time.Second
	// maxTries bounds how often a write is tried again that certainly did nothing.
	maxTries = 4
)

// carry carries a batch out, and sets the err of every task in it.
//
// What the server refuses undoes the transaction; then each change gets one of its own, so that
// a refusal fails its own caller alone. Where the connection breaks, the server may have
// committed, or may still be about to. Then the same is written once more, under another token:
// if that finds the operation where the move starts, it is the move, and the first try, should it
// still come, will not find it there any more; if it doesn't, the history tells whose the move
// was. So a lost answer is never guessed.
func (s *Store) carry(batch []*task) {
	slices.SortFunc(batch, byKey)
	lost := earlierLoss(batch)
	deadline := time.Now().Add(s.settleWithin)
	for try := 1; ; try++ {
		moved, err := s.try(batch)
		if err == nil {
			s.settle(batch, moved)
			return
		}
		switch k := kindOf(err); {
		case k == isLost:
			lost = err
		case k == isUnsent || k == isUnreachable:
			if lost == nil && (k == isUnreachable || try == maxTries) {
				fail(batch, writeError(err))
				return
			}
		case len(batch) > 1:
			for _, t := range batch {
				s.carry([]*task{t})
			}
			return
		case k == isStale:
			s.settle(batch, []bool{false})
			return
		case lost == nil && (k == isRefusal || try == maxTries):
			fail(batch, writeError(err))
			return
		}
		if lost != nil && time.Now().After(deadline) {
			fail(batch, fmt.Errorf("ledger/postgres: %w: %w", ledger.ErrCommitLost, lost))
			return
		}
		s.pause(try)
	}
}

// earlierLoss is set if a try for one of the batch was lost already.
func earlierLoss(batch []*task) error {
	for _, t := range batch {
		if len(t.tokens) > 0 {
			return errLost
		}
	}
	return nil
}

var errLost = errors.New("the connection broke")

// try sends the batch once, on a connection of the pool.
func (s *Store) try(batch []*task) (moved []bool, err error) {
	tokens := make([]int64, len(batch))
	for i := range tokens {
		tokens[i] = newToken()
	}
	err = s.with(context.Background(), func(ctx context.Context, conn *pgx.Conn) error {
		moved, err = send(ctx, conn, batch, tokens)
		return err
	})
	if err != nil && kindOf(err) == isLost {
		for i, t := range batch {
			t.tokens = append(t.tokens, tokens[i])
		}
	}
	return moved, err
}

// settle tells each task what has become of its change.
func (s *Store) settle(batch []*task, moved []bool) {
	for i, t := range batch {
		switch {
		case moved[i]:
			t.err = nil
		case len(t.tokens) == 0:
			t.err = ledger.ErrStale
		default:
			t.err = s.whose(t)
		}
	}
}

// whose looks in the history whether a try whose answer was lost has made the move after all.
func (s *Store) whose(t *task) error {
	var token int64
	for try := 1; ; try++ {
		err := s.with(context.Background(), func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, `SELECT h.token FROM history h JOIN agent_operations o ON o.id = h.operation WHERE o.operation_id = $1 AND h.seq = $2`,
				t.to.ID, t.to.Moves).Scan(&token)
		})
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ledger.ErrStale
		case err == nil && slices.Contains(t.tokens, token):
			return nil
		case err == nil:
			return ledger.ErrStale
		case try == maxTries:
			return fmt.Errorf("ledger/postgres: %w: %w", ledger.ErrCommitLost, err)
		}
		s.pause(try)
	}
}

// with lends a connection to f, with a context that ends the round trip when it takes too long. ctx
// bounds the waiting for the connection, and nothing else.
func (s *Store) with(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.roundTrip)
	defer cancel()
	err = f(bounded, conn.Conn())
	if err != nil && conn.Conn().IsClosed() {
		s.pool.Reset() // whatever broke it has most likely broken the idle ones too
		if k := kindOf(err); k != isLost && k != isUnsent {
			return &brokenError{err}
		}
	}
	return err
}

func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.connect)
	defer cancel()
	conn, err := s.pool.Acquire(bounded)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.isClosed():
		return nil, ErrClosed
	}
	return nil, &unreachableError{err}
}

// pause spaces tries: nothing is gained by asking a server that restarts a thousand times.
func (s *Store) pause(try int) {
	time.Sleep(min(time.Millisecond<<(2*try), 500*time.Millisecond))
}
