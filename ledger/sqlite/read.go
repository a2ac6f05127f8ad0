package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/onceward/onceward/ledger"
)

// selectOperation begins every query that reads whole operations.
var selectOperation = `SELECT ` + list(columns) + ` FROM agent_operations `

// selectCommon reads the common columns, and whether any other is set.
var selectCommon = func() string {
	set := make([]string, len(rare))
	for i, c := range rare {
		set[i] = c.name + ` IS NOT NULL`
		switch c.kind.(type) {
		case number, flag:
			set[i] = c.name + ` <> 0`
		}
	}
	return `SELECT ` + list(common) + `, (` + strings.Join(set, ` OR `) + `) FROM agent_operations `
}()

// list names columns to be read. The driver asks for the name and the declared type of
// each of them at every execution: an expression has no type, and a short name costs
// less. That is a fifth of the time.
func list(columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = `+` + c.name + ` AS c`
	}
	return strings.Join(names, `, `)
}

// reads are the prepared queries for what a decision needs.
type reads struct {
	common                            *sql.Stmt // by key; enough for most operations
	byKey, newest, sameContent, alike *sql.Stmt
	lookAlike, used                   *sql.Stmt
	short, row                        *row
}

// reading are the queries of reads.
var reading = map[string]string{
	"common":       selectCommon + `WHERE key = ?`,
	"key":          selectOperation + `WHERE key = ?`,
	"newest":       selectOperation + `WHERE base_key = ? ORDER BY revision DESC LIMIT 1`,
	"same content": selectOperation + `WHERE base_key = ? AND content_hash = ? ORDER BY revision DESC LIMIT 1`,
	"alike": selectOperation + `WHERE alike = ? AND created_at > ? AND tenant = ? AND base_key <> ?
		ORDER BY created_at DESC, id DESC LIMIT 1`,
	"look-alike": selectOperation + `WHERE alike = ? AND created_at > ? AND tenant = ? AND key <> ?
		ORDER BY created_at DESC, id DESC LIMIT 1`,
	"used": `SELECT used FROM limit_usage WHERE bucket = ?`,
}

func (r *reads) prepare(p *preparer) {
	r.common = p.prepare(reading["common"])
	r.byKey = p.prepare(reading["key"])
	r.newest = p.prepare(reading["newest"])
	r.sameContent = p.prepare(reading["same content"])
	r.alike = p.prepare(reading["alike"])
	r.lookAlike = p.prepare(reading["look-alike"])
	r.used = p.prepare(reading["used"])
	r.short, r.row = newRow(common), newRow(columns)
	r.short.cells = append(r.short.cells, &r.short.more)
}

// find reads what was sought.
func (r *reads) find(sought *ledger.Sought) (found ledger.Found, err error) {
	if found.Used, err = r.usage(sought.Buckets); err != nil {
		return found, err
	}
	if sought.BaseKey.IsZero() {
		found.Operation, err = r.withKey(sought.Key[:])
		if err == nil && found.Operation == nil && sought.Alike != (ledger.FieldHash{}) {
			found.Alike, err = r.one(r.lookAlike, sought.Alike[:], sought.Since.UnixMicro(), sought.Tenant, sought.Key[:])
		}
		return found, err
	}
	if found.Operation, err = r.one(r.newest, sought.BaseKey[:]); err != nil {
		return found, err
	}
	if !sought.Content.IsZero() {
		if found.SameContent, err = r.one(r.sameContent, sought.BaseKey[:], sought.Content[:]); err != nil {
			return found, err
		}
	}
	if sought.Alike != (ledger.FieldHash{}) {
		found.Alike, err = r.one(r.alike, sought.Alike[:], sought.Since.UnixMicro(), sought.Tenant, sought.BaseKey[:])
	}
	return found, err
}

// usage reads how much is taken of limits.
func (r *reads) usage(buckets []string) (map[string]int64, error) {
	if len(buckets) == 0 {
		return nil, nil
	}
	used := make(map[string]int64, len(buckets))
	for _, bucket := range buckets {
		var n int64
		err := r.used.QueryRowContext(context.Background(), bucket).Scan(&n)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		used[bucket] = n
	}
	return used, nil
}

// withKey reads the operation with a key, or nil.
func (r *reads) withKey(key []byte) (*ledger.Operation, error) {
	op, err := r.short.scan(r.common.QueryRowContext(context.Background(), key))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err == nil && r.short.more:
		return r.one(r.byKey, key)
	}
	return op, err
}

// one reads the operation that the query finds, or nil. It looks at no context: one
// row takes microseconds, and the driver watches a context with a goroutine.
func (r *reads) one(s *sql.Stmt, args ...any) (*ledger.Operation, error) {
	op, err := r.row.scan(s.QueryRowContext(context.Background(), args...))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return op, err
}

// A row is what operations are scanned through, one after the other.
type row struct {
	op    *ledger.Operation
	cells []any
	more  bool // there are rare columns to be read
}

func newRow(columns []column) *row {
	r := &row{cells: make([]any, len(columns))}
	for i, c := range columns {
		r.cells[i] = &cell{r, c.kind}
	}
	return r
}

func (r *row) scan(from interface{ Scan(...any) error }) (*ledger.Operation, error) {
	r.op = new(ledger.Operation)
	if err := from.Scan(r.cells...); err != nil {
		return nil, err
	}
	return r.op, nil
}

// A cell takes one column's value to its field.
type cell struct {
	row  *row
	kind kind
}

// Scan implements [sql.Scanner].
func (c *cell) Scan(v any) error { return c.kind.set(c.row.op, v) }
