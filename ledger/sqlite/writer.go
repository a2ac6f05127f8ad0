package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/onceward/onceward/ledger"
)

// A writer is the one connection that writes, with its prepared statements. Whoever leads
// the queue has it alone.
type writer struct {
	conn *sql.Conn
	turn *turn // held through each transaction

	begin, end, undo *sql.Stmt
	seal, sealAnew   *sql.Stmt
	take, give       *sql.Stmt
	read             reads
	moves            map[moveShape]*sql.Stmt
	made             []*sql.Stmt

	from, to ledger.Operation // of the Move that is carried out; kept, for they are large

	// broken is the error that ended the transaction: not a refusal of one
	// statement, but something after which SQLite may have rolled everything back.
	broken error
}

// A moveShape is which columns a Move writes: one bit each, in the order of columns.
// Operations move in a few ways only, so there are few shapes.
type moveShape struct {
	insert bool
	bits   uint64
}

// maxShapes bounds the statements kept.
const maxShapes = 256

func newWriter(ctx context.Context, conn *sql.Conn, turn *turn) (*writer, error) {
	w := &writer{conn: conn, turn: turn, moves: map[moveShape]*sql.Stmt{}}
	p := preparer{ctx: ctx, conn: conn}
	w.begin = p.prepare(`BEGIN IMMEDIATE`)
	w.end = p.prepare(`COMMIT`)
	w.undo = p.prepare(`ROLLBACK`)
	w.seal = p.prepare(`INSERT INTO sealed_payloads (operation, sealed) VALUES (last_insert_rowid(), ?)`)
	w.sealAnew = p.prepare(`INSERT INTO sealed_payloads (sealed, operation) VALUES (?, (SELECT id FROM agent_operations WHERE operation_id = ?))`)
	w.take = p.prepare(`INSERT INTO limit_usage (bucket, used) VALUES (?, ?) ON CONFLICT (bucket) DO UPDATE SET used = used + excluded.used`)
	w.give = p.prepare(`UPDATE limit_usage SET used = max(used - ?, 0) WHERE bucket = ?`)
	w.read.prepare(&p)
	w.made = p.made
	return w, p.err
}

// commit does the batch's work in one transaction: all of it is durable afterwards, or
// none. What the database refuses fails alone; any other error stops the batch and
// fails all of it, for even an answer like "nothing to do" may rest on what another
// task had written.
func (w *writer) commit(take func() []*task) {
	if err := w.turn.lock(); err != nil {
		fail(take(), fmt.Errorf("ledger/sqlite: nothing was written, the lock beside the database can't be taken: %w", err))
		return
	}
	defer w.release()
	w.broken = nil
	if err := w.exec(w.begin); err != nil {
		fail(take(), fmt.Errorf("ledger/sqlite: nothing was written, no transaction can begin: %w", err))
		return
	}
	ended := false
	defer func() {
		if !ended {
			w.rollback()
		}
	}()
	batch := take()
	for _, t := range batch {
		if t.err = t.work.do(w); w.broken != nil {
			fail(batch, fmt.Errorf("ledger/sqlite: nothing was written, the transaction broke: %w", w.broken))
			return
		}
	}
	if err := w.exec(w.end); err != nil {
		fail(batch, commitError(err))
		return
	}
	ended = true
}

// release gives others their turn. Failing that, they get it when this process ends.
func (w *writer) release() { _ = w.turn.unlock() }

func fail(batch []*task, err error) {
	for _, t := range batch {
		t.err = err
	}
}

// rollback may find that SQLite has rolled back already; that error says nothing new.
func (w *writer) rollback() { _ = w.exec(w.undo) }

// exec runs a statement on no caller's context: what has begun isn't abandoned half-way.
func (w *writer) exec(s *sql.Stmt, args ...any) error {
	_, err := w.change(s, args...)
	return err
}

// change runs a statement and says how many rows it changed.
func (w *writer) change(s *sql.Stmt, args ...any) (int64, error) {
	r, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, w.judge(err)
	}
	return r.RowsAffected()
}

// judge notes an error that ends the transaction.
func (w *writer) judge(err error) error {
	if err != nil && !isConstraint(err) {
		w.broken = err
	}
	return err
}

// carry carries a Move out, and reports ErrStale if the operation isn't where the Move
// starts, or limits have no room for it. fresh says that it was decided on what this transaction
// has read.
func (w *writer) carry(m ledger.Move, fresh bool) error {
	reserve := m.Reserve()
	if !fresh {
		if room, err := w.room(reserve); err != nil || !room {
			return cmp.Or(w.judge(err), ledger.ErrStale)
		}
	}
	w.from, w.to = m.From(), m.To()
	shape, args := shapeOf(m.Inserts(), &w.from, &w.to)
	s, err := w.statement(shape)
	if err != nil {
		return w.judge(err)
	}
	if !m.Inserts() {
		args = append(args, w.to.ID, w.from.Moves)
	}
	n, err := w.change(s, args...)
	switch {
	case err != nil:
		return err
	case n == 0:
		return ledger.ErrStale
	}
	// Even an empty payload has its row: it says that the operation is open. The Move is
	// half done here, so that a refusal can't fail this task alone.
	switch payload := keepEmpty(m.Seal()); {
	case m.Inserts():
		w.broken = w.exec(w.seal, payload)
	case m.Replans():
		w.broken = w.exec(w.sealAnew, payload, w.to.ID)
	}
	for _, t := range reserve {
		w.broken = cmp.Or(w.broken, w.exec(w.take, t.Bucket, t.N))
	}
	for _, t := range m.Release() {
		w.broken = cmp.Or(w.broken, w.exec(w.give, t.N, t.Bucket))
	}
	return w.broken
}

// room reports whether limits leave room for what a Move takes. Nobody else writes meanwhile.
func (w *writer) room(takings []ledger.Taking) (bool, error) {
	for _, t := range takings {
		used, err := w.read.usage([]string{t.Bucket})
		if err != nil {
			return false, err
		}
		if t.Max > 0 && used[t.Bucket]+t.N > t.Max {
			return false, nil
		}
	}
	return true, nil
}

// shapeOf says which columns a Move writes, and what.
func shapeOf(insert bool, from, to *ledger.Operation) (moveShape, []any) {
	shape, args := moveShape{insert: insert}, make([]any, 0, len(columns)/2)
	for i, c := range columns {
		if insert {
			if v := c.value(to); !unset(v) {
				shape.bits |= 1 << i
				args = append(args, v)
			}
		} else if !c.same(from, to) {
			shape.bits |= 1 << i
			args = append(args, c.value(to))
		}
	}
	return shape, args
}

// statement prepares the statement for a shape, or finds it.
func (w *writer) statement(shape moveShape) (*sql.Stmt, error) {
	if s := w.moves[shape]; s != nil {
		return s, nil
	}
	if len(w.moves) >= maxShapes {
		for key, s := range w.moves {
			_ = s.Close()
			delete(w.moves, key)
		}
	}
	s, err := w.conn.PrepareContext(context.Background(), shape.sql())
	if err == nil {
		w.moves[shape] = s
	}
	return s, err
}

func (shape moveShape) sql() string {
	var names []string
	for i, c := range columns {
		if shape.bits&(1<<i) != 0 {
			names = append(names, c.name)
		}
	}
	if shape.insert {
		return `INSERT INTO agent_operations (` + strings.Join(names, ", ") + `) VALUES (?` + strings.Repeat(", ?", len(names)-1) + `)`
	}
	return `UPDATE agent_operations SET ` + strings.Join(names, " = ?, ") + ` = ? WHERE operation_id = ? AND moves = ?`
}

func keepEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (w *writer) close() error {
	var err error
	for _, s := range w.made {
		err = errors.Join(err, s.Close())
	}
	for _, s := range w.moves {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, w.conn.Close(), w.turn.close())
}

// A preparer prepares statements on one connection until one fails.
type preparer struct {
	ctx  context.Context
	conn *sql.Conn
	err  error
	made []*sql.Stmt // database/sql doesn't close those of a Conn with it
}

func (p *preparer) prepare(query string) *sql.Stmt {
	if p.err != nil {
		return nil
	}
	s, err := p.conn.PrepareContext(p.ctx, query)
	if err != nil {
		p.err = errors.Join(p.err, err)
		return s
	}
	p.made = append(p.made, s)
	return s
}
