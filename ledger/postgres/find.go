package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
)

// defaultLimit is what a Filter without a limit gets.
const defaultLimit = 1000

// Find implements [ledger.Store]. The order is that of insertion.
func (s *Store) Find(ctx context.Context, f ledger.Filter) (found []ledger.Operation, err error) {
	query, args := findQuery(&f)
	err = s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		found = nil
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		return eachOperation(rows, 0, func(_ [][]byte, op *ledger.Operation) error {
			found = append(found, *op)
			return nil
		})
	})
	return found, err
}

// conditions are parts of a WHERE clause, and what they compare with.
type conditions struct {
	parts []string
	args  []any
}

// add adds a part in which each ? stands for the next argument.
func (c *conditions) add(part string, args ...any) {
	for _, arg := range args {
		c.args = append(c.args, arg)
		part = strings.Replace(part, "?", place(len(c.args)), 1)
	}
	c.parts = append(c.parts, part)
}

func findQuery(f *ledger.Filter) (string, []any) {
	var c conditions
	if f.ID != "" {
		c.add(`operation_id = ?`, f.ID)
	}
	if !f.Key.IsZero() {
		c.add(`idempotency_key = ?`, f.Key.String())
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
		c.add(`review_opened_at IS NOT NULL`)
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
		c.due(f.Due)
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
	return query + ` ORDER BY id ` + order + ` LIMIT ` + place(len(c.args)+1), append(c.args, limit)
}

// statuses restricts to some statuses. If all of them are open ones, the list of open
// operations spares the search through the finished.
func (c *conditions) statuses(wanted []ledger.Status) {
	if len(wanted) == 0 {
		return
	}
	open := true
	names := make([]string, len(wanted))
	for i, s := range wanted {
		open = open && !s.Final()
		names[i] = string(s)
	}
	if open {
		c.add(`id IN (SELECT operation FROM sealed_payloads)`)
	}
	c.add(`status = ANY(?)`, names)
}

// due selects what Operation.Due says. The list of open operations and the index on
// next_check_at lead to them.
func (c *conditions) due(at time.Time) {
	c.add(`id IN (SELECT operation FROM sealed_payloads UNION ALL SELECT id FROM agent_operations WHERE next_check_at <= ?)`, at)
	c.add(`CASE status WHEN 'executing' THEN lease_until <= ?
		WHEN 'unknown' THEN next_check_at <= ? WHEN 'succeeded' THEN next_check_at <= ?
		WHEN 'planned' THEN expires_at <= ? OR next_check_at <= ? WHEN 'failed_retryable' THEN expires_at <= ? END`, at, at, at, at, at, at)
}
