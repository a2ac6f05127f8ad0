package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
)

// findPrunable searches in the order of insertion, which is nearly that of the last
// moves: an index for this alone would cost every effect, and pruning is rare.
var findPrunable = selectOperation + `WHERE id > (SELECT coalesce(max(id), 0) FROM agent_operations WHERE operation_id = $1)
   AND pruned IS NULL AND (status = 'succeeded' OR status = 'failed_final')
   AND updated_at < $2 AND ($3 = '' OR action_type = $3) AND next_check_at IS NULL AND review_opened_at IS NULL
 ORDER BY id LIMIT $4`

// pruneBatch is how many tombstones share a transaction, so that nobody waits long.
const pruneBatch = 100

// Prune implements [ledger.Store]. Oldest means: inserted first.
func (s *Store) Prune(ctx context.Context, what ledger.Prunable, bury func(ledger.Operation, []ledger.Transition) ledger.Operation) (int, error) {
	made, last := 0, ""
	for made < what.Limit {
		dead, err := s.prunable(ctx, last, what, min(pruneBatch, what.Limit-made))
		if err != nil || len(dead) == 0 {
			return made, err
		}
		last = dead[len(dead)-1].ID
		n, err := s.bury(ctx, dead, bury)
		made += n
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

func (s *Store) prunable(ctx context.Context, after string, what ledger.Prunable, limit int) (dead []ledger.Operation, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		dead = nil
		rows, err := conn.Query(ctx, findPrunable, after, what.Before, what.Action, limit)
		if err != nil {
			return err
		}
		return eachOperation(rows, 0, func(_ [][]byte, op *ledger.Operation) error {
			dead = append(dead, *op)
			return nil
		})
	})
	return dead, err
}

// bury writes the tombstones and says how many. A trigger drops the histories.
func (s *Store) bury(ctx context.Context, dead []ledger.Operation, bury func(ledger.Operation, []ledger.Transition) ledger.Operation) (int, error) {
	ids := make([]string, len(dead))
	for i := range dead {
		ids[i] = dead[i].ID
	}
	histories, err := s.histories(ctx, ids)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	batch := make([]*task, len(dead))
	for i, op := range dead {
		batch[i] = &task{change: change{from: op, to: bury(op, histories[op.ID])}}
	}
	s.carry(batch)
	made := 0
	for _, t := range batch {
		switch {
		case t.err == nil:
			made++
		case !errors.Is(t.err, ledger.ErrStale): // that one moved meanwhile
			err = t.err
		}
	}
	return made, err
}
