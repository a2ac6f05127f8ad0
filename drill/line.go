package drill

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/onceward/onceward/ledger"
)

// A line is a server's connection to the ledger. It can be cut, and is, where a server dies.
type line struct {
	ledger.Store
	dead     atomic.Bool // nothing gets through
	noClaims atomic.Bool // nothing can be begun
	noMoves  atomic.Bool // no outcome can be written
}

var errCut = errors.New("the ledger doesn't answer")

func (l *line) broken(also ...*atomic.Bool) error {
	for _, cut := range append(also, &l.dead) {
		if cut.Load() {
			return errCut
		}
	}
	return nil
}

func (l *line) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	if err := l.broken(&l.noClaims); err != nil {
		return err
	}
	return l.Store.Begin(ctx, sought, decide)
}

func (l *line) Record(ctx context.Context, m ledger.Move) error {
	if err := l.broken(&l.noMoves); err != nil {
		return err
	}
	return l.Store.Record(ctx, m)
}

func (l *line) Find(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	if err := l.broken(); err != nil {
		return nil, err
	}
	return l.Store.Find(ctx, f)
}

func (l *line) Sealed(ctx context.Context, id string) ([]byte, error) {
	if err := l.broken(); err != nil {
		return nil, err
	}
	return l.Store.Sealed(ctx, id)
}
