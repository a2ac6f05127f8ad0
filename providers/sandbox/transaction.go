package sandbox

import (
	"context"
	"database/sql"
	"errors"
)

// errReadOnly is a write to a journal that was opened for reading.
var errReadOnly = errors.New("the sandbox journal is open for reading only")

// A transaction is the only writer of the journal, in this and all processes.
type transaction struct {
	ctx  context.Context // never ends
	conn *sql.Conn
	tx   *sql.Tx
}

// begin waits for its turn until ctx is done. What then runs isn't bound to ctx:
// whether it commits must never be a race with a timer.
func (j *journal) begin(ctx context.Context) (*transaction, error) {
	if j.writer == nil {
		return nil, errReadOnly
	}
	conn, err := j.writer.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for {
		tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
		if err == nil {
			return &transaction{ctx: context.WithoutCancel(ctx), conn: conn, tx: tx}, nil
		}
		if busy(err) && ctx.Err() == nil {
			continue // SQLite has waited already
		}
		return nil, errors.Join(err, ctx.Err(), conn.Close())
	}
}

func (t *transaction) exec(query string, args ...any) error {
	_, err := t.tx.ExecContext(t.ctx, query, args...)
	return err
}

func (t *transaction) row(query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(t.ctx, query, args...)
}

func (t *transaction) commit() error {
	return errors.Join(t.tx.Commit(), t.conn.Close())
}

// rollback does nothing after commit.
func (t *transaction) rollback() {
	_ = t.tx.Rollback()
	_ = t.conn.Close()
}
