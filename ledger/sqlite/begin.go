package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/onceward/onceward/ledger"
)

// Begin implements [ledger.Store]. It decides first on what a reader sees: a replay then
// costs one read. What it decides to write is checked again where nobody else
// can write: the insert by the unique key, the move by its number. Only if something came
// in between does it decide anew, there.
func (s *Store) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	if sought.Key.IsZero() && sought.BaseKey.IsZero() {
		return errors.New("ledger/sqlite: neither a key nor a base key is sought")
	}
	first := sought
	if sought.BaseKey.IsZero() {
		// A new operation's look-alikes and limits matter only inside; without them a decision lets
		// more through, never less.
		first.Alike, first.Buckets = ledger.FieldHash{}, nil
	}
	found, err := s.seek(ctx, &first)
	if err != nil {
		return err
	}
	m, err := decide(found)
	if err != nil || m.IsZero() {
		return err
	}
	b := &begin{sought: &sought, decide: decide, move: m}
	// What a workflow may do depends on other operations too, and so does whether a new operation
	// looks like another or has room in its limits. No key and no number guards those: the decision is made
	// once more, inside.
	b.stale = !sought.BaseKey.IsZero() || m.Inserts() && (sought.Alike != (ledger.FieldHash{}) || len(sought.Buckets) > 0)
	return s.queue.write(ctx, b)
}

// seek reads what was sought, outside of any transaction of the writer. While nobody writes,
// the writer's connection is the better one: it still has in memory what it wrote last, of which
// others have to read every page anew.
func (s *Store) seek(ctx context.Context, sought *ledger.Sought) (found ledger.Found, err error) {
	if err := ctx.Err(); err != nil {
		return found, err
	}
	if sought.BaseKey.IsZero() && s.queue.tryLead() {
		defer s.queue.yield()
		return s.writer.read.find(sought)
	}
	err = s.readers.use(ctx, func(r *reader) error {
		if sought.BaseKey.IsZero() {
			found, err = r.read.find(sought)
			return err
		}
		return r.snapshot(func() error {
			found, err = r.read.find(sought)
			return err
		})
	})
	if err != nil {
		return ledger.Found{}, readError(err)
	}
	return found, nil
}

// A begin is the writing part of Begin.
type begin struct {
	sought *ledger.Sought
	decide func(ledger.Found) (ledger.Move, error)
	move   ledger.Move
	stale  bool // move was decided on what may have changed
}

func (b *begin) do(w *writer) error {
	if !b.stale {
		err := w.carry(b.move, false)
		if !errors.Is(err, ledger.ErrStale) && !(b.move.Inserts() && isConstraint(err) && w.broken == nil) {
			return refused(err)
		}
	}
	found, err := w.read.find(b.sought)
	if err != nil {
		return w.judge(err)
	}
	m, err := b.again(found)
	if err != nil || m.IsZero() {
		return err
	}
	return refused(w.carry(m, true))
}

// again decides anew. The goroutine may be another caller's: a panic must not take that
// one down, nor leave the others without an answer.
func (b *begin) again(found ledger.Found) (m ledger.Move, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ledger/sqlite: nothing was written, the decision panicked: %v", p)
		}
	}()
	return b.decide(found)
}

// Record implements [ledger.Store].
func (s *Store) Record(ctx context.Context, m ledger.Move) error {
	if m.IsZero() {
		return nil
	}
	return s.queue.write(ctx, &record{m})
}

type record struct{ move ledger.Move }

func (r *record) do(w *writer) error {
	err := w.carry(r.move, false)
	if !r.move.Inserts() || !isConstraint(err) || w.broken != nil {
		return refused(err)
	}
	// An insert is stale if the key exists; then the operation has transitions.
	key := r.move.To().Key
	op, readErr := w.read.withKey(key[:])
	if readErr != nil {
		return w.judge(readErr)
	}
	if op != nil {
		return ledger.ErrStale
	}
	return refused(err)
}

// refused says that the database itself forbade what was to be written.
func refused(err error) error {
	if isConstraint(err) {
		return fmt.Errorf("ledger/sqlite: nothing was written, the database refuses this: %w", err)
	}
	return err
}

func readError(err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("ledger/sqlite: can't read: %w", err)
}
