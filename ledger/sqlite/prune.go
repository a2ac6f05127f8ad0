package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/onceward/onceward/ledger"
)

// pruneBatch is how many tombstones are made in one go, so that nobody waits long.
const pruneBatch = 100

// findPrunable searches in the order of insertion, which is nearly that of the last
// moves: an index for this alone would cost every effect, and pruning is rare.
const findPrunable = `SELECT id, moves, action_type, field_hashes FROM agent_operations
 WHERE id > ? AND pruned IS NULL AND (status = 'succeeded' OR status = 'failed_final')
   AND updated_at < ? AND next_check_at IS NULL AND review_opened_at IS NULL
 ORDER BY id LIMIT ?`

// makeTombstone keeps what a replay needs. The workflow identity needs the content too: whether a
// call is a repeat or a change that a person must see depends on it. A trigger drops the history.
const makeTombstone = `UPDATE agent_operations SET pruned = moves, moves = moves + 1, field_hashes = ?,
  content_hash = CASE WHEN base_key IS NULL THEN NULL ELSE content_hash END, alike = NULL,
  workflow_id = NULL, step = NULL, business_object = NULL, business_operation_id = NULL, run_id = NULL,
  provider_scope = NULL, provider_key = NULL, lease_owner = NULL, lease_until = NULL, first_sent_at = NULL, checks = 0, expires_at = NULL,
  approval_state = NULL, approval_reason = NULL, repeat_until = NULL, repeat_same_content = 0,
  actor = NULL, reason = NULL, evidence_json = NULL, reference_json = NULL, result_json = NULL
 WHERE id = ? AND moves = ?`

// Prune implements [ledger.Store]. Oldest means: inserted first. Operations with an open review stay
// whole, too.
func (s *Store) Prune(ctx context.Context, before time.Time, critical map[string][]string, limit int) (int, error) {
	made, last := 0, int64(0)
	for made < limit {
		graves, err := s.prunable(ctx, last, before, min(pruneBatch, limit-made))
		if err != nil || len(graves) == 0 {
			return made, err
		}
		last = graves[len(graves)-1].id
		p := &pruning{graves: graves, critical: critical}
		if err := s.queue.write(ctx, p); err != nil {
			return made, err
		}
		made += p.made
	}
	return made, nil
}

// A grave is an operation of which a tombstone will stay.
type grave struct {
	id, moves int64
	action    string
	fields    ledger.FieldHashes
}

func (s *Store) prunable(ctx context.Context, after int64, before time.Time, limit int) (graves []grave, err error) {
	err = s.readers.use(ctx, func(r *reader) error {
		rows, err := r.conn.QueryContext(ctx, findPrunable, after, before.UnixMicro(), limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var g grave
			var fields []byte
			if err := rows.Scan(&g.id, &g.moves, &g.action, &fields); err != nil {
				return err
			}
			if g.fields, err = decodeFields(fields); err != nil {
				return err
			}
			graves = append(graves, g)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, readError(err)
	}
	return graves, nil
}

type pruning struct {
	graves   []grave
	critical map[string][]string
	made     int
}

func (p *pruning) do(w *writer) error {
	for _, g := range p.graves {
		kept := ledger.FieldHashes{}
		for _, name := range p.critical[g.action] {
			if h, ok := g.fields[name]; ok {
				kept[name] = h
			}
		}
		r, err := w.conn.ExecContext(context.Background(), makeTombstone, encodeFields(kept), g.id, g.moves)
		if err != nil {
			w.broken = err // some of the batch are tombstones already
			return err
		}
		n, err := r.RowsAffected()
		if err != nil {
			return errors.Join(err, w.judge(err))
		}
		p.made += int(n) // none if it moved meanwhile
	}
	return nil
}
