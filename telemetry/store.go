package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/onceward/onceward/ledger"
)

// What kind of error a store's method ended with.
const (
	errorFailed     = "failed"      // nothing was written
	errorCommitLost = "commit_lost" // it may be durable all the same
)

// Store wraps a ledger's store: every move that it carries out is counted, every method is
// timed, and all else passes through unchanged, the optional interfaces ([ledger.Waiter],
// [ledger.Clocked]) too. Without metrics it returns s itself.
func (t *Telemetry) Store(s ledger.Store) ledger.Store {
	if t == nil || t.metrics == nil {
		return s
	}
	w := &store{s, t.metrics}
	waiter, waits := s.(ledger.Waiter)
	clocked, tells := s.(ledger.Clocked)
	switch {
	case waits && tells:
		return struct {
			*store
			ledger.Waiter
			ledger.Clocked
		}{w, waiter, clocked}
	case waits:
		return struct {
			*store
			ledger.Waiter
		}{w, waiter}
	case tells:
		return struct {
			*store
			ledger.Clocked
		}{w, clocked}
	}
	return w
}

type store struct {
	inner ledger.Store
	m     *metrics
}

// Begin implements [ledger.Store]. The move that counts is the one decided last.
func (s *store) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	var decided step // not the Move: that is large, and would go to the heap
	var refused error
	start := time.Now()
	err := s.inner.Begin(ctx, sought, func(found ledger.Found) (ledger.Move, error) {
		m, err := decide(found)
		decided, refused = stepOf(&m), err
		return m, err
	})
	if err != nil && refused != nil && errors.Is(err, refused) {
		s.timed(ctx, "Begin", start, nil) // the decision's error isn't the store's
		return err
	}
	s.timed(ctx, "Begin", start, err)
	if err == nil {
		s.moved(decided)
	}
	return err
}

// Record implements [ledger.Store].
func (s *store) Record(ctx context.Context, m ledger.Move) error {
	start := time.Now()
	err := s.inner.Record(ctx, m)
	if s.timed(ctx, "Record", start, err); err == nil {
		s.moved(stepOf(&m))
	}
	return err
}

// A step is what counts of a move.
type step struct {
	action   string
	from, to ledger.Status
}

func stepOf(m *ledger.Move) step {
	if m.IsZero() {
		return step{}
	}
	return step{m.To().Action, m.From().Status, m.To().Status}
}

// moved counts a move that is durable, if it led to another status.
func (s *store) moved(m step) {
	if m.from != m.to {
		s.m.operations.inc(m.action, string(m.to))
	}
}

// Find implements [ledger.Store].
func (s *store) Find(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	start := time.Now()
	found, err := s.inner.Find(ctx, f)
	s.timed(ctx, "Find", start, err)
	return found, err
}

// Sealed implements [ledger.Store].
func (s *store) Sealed(ctx context.Context, operationID string) ([]byte, error) {
	start := time.Now()
	sealed, err := s.inner.Sealed(ctx, operationID)
	s.timed(ctx, "Sealed", start, err)
	return sealed, err
}

// History implements [ledger.Store].
func (s *store) History(ctx context.Context, operationID string) ([]ledger.Transition, error) {
	start := time.Now()
	history, err := s.inner.History(ctx, operationID)
	s.timed(ctx, "History", start, err)
	return history, err
}

// Prune implements [ledger.Store].
func (s *store) Prune(ctx context.Context, what ledger.Prunable, bury func(ledger.Operation, []ledger.Transition) ledger.Operation) (int, error) {
	start := time.Now()
	n, err := s.inner.Prune(ctx, what, bury)
	s.timed(ctx, "Prune", start, err)
	return n, err
}

// Remember implements [ledger.Store].
func (s *store) Remember(ctx context.Context, name string, value []byte) ([]byte, error) {
	start := time.Now()
	kept, err := s.inner.Remember(ctx, name, value)
	s.timed(ctx, "Remember", start, err)
	return kept, err
}

// Recall implements [ledger.Store].
func (s *store) Recall(ctx context.Context, name string) ([]byte, error) {
	start := time.Now()
	kept, err := s.inner.Recall(ctx, name)
	s.timed(ctx, "Recall", start, err)
	return kept, err
}

// Usage implements [ledger.Store].
func (s *store) Usage(ctx context.Context, buckets []string) (map[string]int64, error) {
	start := time.Now()
	used, err := s.inner.Usage(ctx, buckets)
	s.timed(ctx, "Usage", start, err)
	return used, err
}

// Close implements [ledger.Store].
func (s *store) Close() error { return s.inner.Close() }

// timed notes how long a method took, and whether it failed. That somebody else was first is
// no failure, nor is that its caller went away.
func (s *store) timed(ctx context.Context, method string, start time.Time, err error) {
	s.m.ledgerTime.record(ctx, time.Since(start).Seconds(), method)
	switch {
	case err == nil || errors.Is(err, ledger.ErrStale):
	case errors.Is(err, ledger.ErrCommitLost):
		s.m.ledgerErrors.inc(method, errorCommitLost)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
	default:
		s.m.ledgerErrors.inc(method, errorFailed)
	}
}
