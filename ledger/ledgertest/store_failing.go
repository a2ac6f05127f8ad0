package ledgertest

import (
	"context"

	"github.com/onceward/onceward/ledger"
)

// A Failing store fails where its functions say, and else does what the [ledger.Store] in it
// does. Set the functions before it is used; a nil one never fails.
type Failing struct {
	ledger.Store
	// Before is asked before a call reaches the Store. If it returns an error, the call
	// fails with it, and nothing was written.
	Before func(c Call) error
	// After is asked once a write is durable. If it returns an error, that is what the caller
	// gets: the answer was lost. Such an error should wrap [ledger.ErrCommitLost], as a
	// Store's would.
	After func(c Call) error
}

// A Call is what a [Failing] store is asked about.
type Call struct {
	Method string      // "Begin", "Record", "Find", "Sealed", "History", "Prune", "Remember", "Recall", "Usage"
	Move   ledger.Move // of Record; of Begin, what was decided last (After only)
}

var _ ledger.Store = (*Failing)(nil)

// Begin implements [ledger.Store].
func (f *Failing) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	c := Call{Method: "Begin"}
	return f.write(&c, func() error {
		return f.Store.Begin(ctx, sought, func(found ledger.Found) (ledger.Move, error) {
			m, err := decide(found)
			c.Move = m
			return m, err
		})
	})
}

// Record implements [ledger.Store].
func (f *Failing) Record(ctx context.Context, m ledger.Move) error {
	return f.write(&Call{Method: "Record", Move: m}, func() error { return f.Store.Record(ctx, m) })
}

// Find implements [ledger.Store].
func (f *Failing) Find(ctx context.Context, filter ledger.Filter) ([]ledger.Operation, error) {
	if err := f.before(Call{Method: "Find"}); err != nil {
		return nil, err
	}
	return f.Store.Find(ctx, filter)
}

// Sealed implements [ledger.Store].
func (f *Failing) Sealed(ctx context.Context, operationID string) ([]byte, error) {
	if err := f.before(Call{Method: "Sealed"}); err != nil {
		return nil, err
	}
	return f.Store.Sealed(ctx, operationID)
}

// History implements [ledger.Store].
func (f *Failing) History(ctx context.Context, operationID string) ([]ledger.Transition, error) {
	if err := f.before(Call{Method: "History"}); err != nil {
		return nil, err
	}
	return f.Store.History(ctx, operationID)
}

// Prune implements [ledger.Store].
func (f *Failing) Prune(ctx context.Context, what ledger.Prunable, bury func(ledger.Operation, []ledger.Transition) ledger.Operation) (n int, err error) {
	err = f.write(&Call{Method: "Prune"}, func() error {
		n, err = f.Store.Prune(ctx, what, bury)
		return err
	})
	return n, err
}

// Remember implements [ledger.Store].
func (f *Failing) Remember(ctx context.Context, name string, value []byte) (kept []byte, err error) {
	err = f.write(&Call{Method: "Remember"}, func() error {
		kept, err = f.Store.Remember(ctx, name, value)
		return err
	})
	return kept, err
}

// Recall implements [ledger.Store].
func (f *Failing) Recall(ctx context.Context, name string) ([]byte, error) {
	if err := f.before(Call{Method: "Recall"}); err != nil {
		return nil, err
	}
	return f.Store.Recall(ctx, name)
}

// Usage implements [ledger.Store].
func (f *Failing) Usage(ctx context.Context, buckets []string) (map[string]int64, error) {
	if err := f.before(Call{Method: "Usage"}); err != nil {
		return nil, err
	}
	return f.Store.Usage(ctx, buckets)
}

func (f *Failing) before(c Call) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(c)
}

func (f *Failing) write(c *Call, do func() error) error {
	if err := f.before(*c); err != nil {
		return err
	}
	if err := do(); err != nil || f.After == nil {
		return err
	}
	return f.After(*c)
}
