package sqlite

import (
	"context"

	"github.com/onceward/onceward/ledger"
)

// pruneBatch is how many tombstones are made in one go, so that nobody waits long.
const pruneBatch = 100

// findPrunable searches in the order of insertion, which is nearly that of the last
// moves: an index for this alone would cost every effect, and pruning is rare.
var findPrunable = selectOperation + `WHERE id > (SELECT coalesce(max(id), 0) FROM agent_operations WHERE operation_id = ?)
   AND pruned IS NULL AND (status = 'succeeded' OR status = 'failed_final')
   AND updated_at < ? AND (?3 = '' OR action_type = ?3) AND next_check_at IS NULL AND review_opened_at IS NULL
 ORDER BY id LIMIT ?`

// Prune implements [ledger.Store]. Oldest means: inserted first.
func (s *Store) Prune(ctx context.Context, what ledger.Prunable, bury func(ledger.Operation, []ledger.Transition) ledger.Operation) (int, error) {
	made, last := 0, ""
	for made < what.Limit {
		dead, err := s.prunable(ctx, last, what, min(pruneBatch, what.Limit-made))
		if err != nil || len(dead) == 0 {
			return made, err
		}
		last = dead[len(dead)-1].ID
		p := &pruning{}
		for _, op := range dead {
			history, err := s.History(ctx, op.ID)
			if err != nil {
				return made, err
			}
			p.graves = append(p.graves, grave{op, bury(op, history)})
		}
		if err := s.queue.write(ctx, p); err != nil {
			return made, err
		}
		made += p.made
	}
	return made, nil
}

func (s *Store) prunable(ctx context.Context, after string, what ledger.Prunable, limit int) (dead []ledger.Operation, err error) {
	err = s.readers.use(ctx, func(r *reader) error {
		rows, err := r.conn.QueryContext(ctx, findPrunable, after, what.Before.UnixMicro(), what.Action, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			op, err := r.read.row.scan(rows)
			if err != nil {
				return err
			}
			dead = append(dead, *op)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, readError(err)
	}
	return dead, nil
}

// A grave is an operation, and what stays of it.
type grave struct{ op, stone ledger.Operation }

type pruning struct {
	graves []grave
	made   int
}

// do writes the tombstones. A trigger drops the histories.
func (p *pruning) do(w *writer) error {
	for i := range p.graves {
		g := &p.graves[i]
		shape, args := shapeOf(false, &g.op, &g.stone)
		s, err := w.statement(shape)
		if err == nil {
			var n int64
			n, err = w.change(s, append(args, g.op.ID, g.op.Moves)...)
			p.made += int(n) // none if it moved meanwhile
		}
		if err != nil {
			w.broken = err // some of the batch are tombstones already
			return err
		}
	}
	return nil
}
