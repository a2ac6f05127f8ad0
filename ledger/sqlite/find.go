package sqlite

import (
	"context"
	"strings"

	"github.com/onceward/onceward/ledger"
)

// defaultLimit is what a Filter without a limit gets.
const defaultLimit = 1000

// Find implements [ledger.Store]. The order is that of insertion.
func (s *Store) Find(ctx context.Context, f ledger.Filter) (found []ledger.Operation, err error) {
	query, args := findQuery(&f)
	err = s.readers.use(ctx, func(r *reader) error {
		rows, err := r.conn.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			op, err := r.read.row.scan(rows)
			if err != nil {
				return err
			}
			found = append(found, *op)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, readError(err)
	}
	return found, nil
}

// conditions are parts of a WHERE clause, and what they compare with.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts = append(c.parts, part)
	c.args = append(c.args, args...)
}

func findQuery(f *ledger.Filter) (string, []any) {
	var c conditions
	if f.ID != "" {
		c.add(`operation_id = ?`, f.ID)
	}
	if !f.Key.IsZero() {
		c.add(`key = ?`, f.Key[:])
	}
	if f.Tenant != nil {
		c.add(`tenant = ?`, *f.Tenant)
	}
	if f.Action != "" {
		c.add(`action_type = ?`, f.Action)
	}
	if f.WorkflowID != "" {
		c.add(`workflow_id = ?`, f.WorkflowID)
	}
	if f.RunID != "" {
		c.add(`run_id = ?`, f.RunID)
	}
	if f.Provider != "" {
		c.add(`provider = ?`, f.Provider)
	}
	if f.Review {
		c.add(`id IN (SELECT id FROM agent_operations WHERE review_opened_at IS NOT NULL)`)
	}
	if f.Approval {
		c.add(`id IN (SELECT operation FROM sealed_payloads) AND status = 'planned' AND approval_state = 'waiting'`)
	}
	if !f.Revised.IsZero() {
		c.add(`base_key = ?`, f.Revised[:])
	}
	if f.FromID != "" {
		c.add(`operation_id >= ?`, f.FromID)
	}
	if f.ToID != "" {
		c.add(`operation_id < ?`, f.ToID)
	}
	c.statuses(f.Statuses)
	if !f.Due.IsZero() {
		c.due(f.Due.UnixMicro())
	}
	order := `ASC`
	if f.Newest {
		order = `DESC`
	}
	if f.After != "" {
		c.add(`id `+map[bool]string{false: `>`, true: `<`}[f.Newest]+` (SELECT id FROM agent_operations WHERE operation_id = ?)`, f.After)
	}
	query := selectOperation
	if len(c.parts) > 0 {
		query += `WHERE ` + strings.Join(c.parts, ` AND `)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	return query + ` ORDER BY id ` + order + ` LIMIT ?`, append(c.args, limit)
}

// statuses restricts to some statuses. If all of them are open ones, the list of open
// operations spares the search through the finished.
func (c *conditions) statuses(wanted []ledger.Status) {
	if len(wanted) == 0 {
		return
	}
	open := true
	args := make([]any, len(wanted))
	for i, s := range wanted {
		open = open && !s.Final()
		args[i] = string(s)
	}
	if open {
		c.add(`id IN (SELECT operation FROM sealed_payloads)`)
	}
	c.add(`(status = ?`+strings.Repeat(` OR status = ?`, len(wanted)-1)+`)`, args...)
}

// due selects what Operation.Due says. The list of open operations and the index on
// next_check_at lead to them.
func (c *conditions) due(at int64) {
	c.add(`id IN (SELECT operation FROM sealed_payloads UNION ALL SELECT id FROM agent_operations WHERE next_check_at <= ?)`, at)
	c.add(`CASE status WHEN 'executing' THEN lease_until <= ?
		WHEN 'unknown' THEN next_check_at <= ? WHEN 'succeeded' THEN next_check_at <= ?
		WHEN 'planned' THEN expires_at <= ? OR next_check_at <= ? WHEN 'failed_retryable' THEN expires_at <= ? END`, at, at, at, at, at, at)
}
