package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// maxReaders is how many connections read at the same time. Reading is work for the
// processor, and a connection costs memory.
const maxReaders = 4

// A reader is a connection that only reads, with its prepared statements.
type reader struct {
	conn            *sql.Conn
	begin, end      *sql.Stmt
	sealed, history *sql.Stmt
	read            reads
	made            []*sql.Stmt
}

// readers is a pool. A place in it is nil until somebody needs it.
type readers struct {
	db    *sql.DB
	free  chan *reader
	ended chan struct{}
}

func newReaders(db *sql.DB) *readers {
	p := &readers{db: db, free: make(chan *reader, maxReaders), ended: make(chan struct{})}
	for range maxReaders {
		p.free <- nil
	}
	return p
}

// use lends a reader to f. The context bounds the waiting for it.
func (p *readers) use(ctx context.Context, f func(*reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer func() { p.free <- r }()
	if r == nil {
		if r, err = p.open(); err != nil {
			return fmt.Errorf("ledger/sqlite: no connection to read: %w", err)
		}
	}
	return f(r)
}

func (p *readers) take(ctx context.Context) (*reader, error) {
	select {
	case <-p.ended:
		return nil, ErrClosed
	default:
	}
	select {
	case r := <-p.free:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ended:
		return nil, ErrClosed
	}
}

func (p *readers) open() (*reader, error) {
	ctx := context.Background()
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader{conn: conn}
	s := preparer{ctx: ctx, conn: conn}
	r.begin = s.prepare(`BEGIN`)
	r.end = s.prepare(`COMMIT`)
	r.sealed = s.prepare(`SELECT sealed FROM sealed_payloads WHERE operation = (SELECT id FROM agent_operations WHERE operation_id = ?)`)
	r.history = s.prepare(`SELECT h.seq, h.from_status, h.to_status, h.attempt, h.reason, h.evidence, h.actor, h.at
		FROM history h WHERE h.operation = (SELECT id FROM agent_operations WHERE operation_id = ?) ORDER BY h.seq`)
	r.read.prepare(&s)
	r.made = s.made
	if s.err != nil {
		_ = conn.Close()
		return nil, s.err
	}
	return r, nil
}

// snapshot lets f read several things as they were at one moment.
func (r *reader) snapshot(f func() error) error {
	if _, err := r.begin.ExecContext(context.Background()); err != nil {
		return err
	}
	err := f()
	if _, end := r.end.ExecContext(context.Background()); err == nil {
		err = end
	}
	return err
}

// close waits for all readers to come back. It is called once.
func (p *readers) close() error {
	close(p.ended)
	for range maxReaders {
		if r := <-p.free; r != nil {
			for _, s := range r.made {
				_ = s.Close()
			}
			_ = r.conn.Close()
		}
	}
	return p.db.Close()
}
