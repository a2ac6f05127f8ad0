package ledger

import (
	"context"
	"errors"
	"time"
)

// ErrStale is returned by [Store.Record] when the operation has moved since it was
// read. Whoever gets it reads again and decides again.
var ErrStale = errors.New("ledger: the operation has moved meanwhile")

// A Store keeps operations durably. It decides nothing: decisions are this
// package's, and a Store carries them out so that they hold whatever crashes,
// and whoever else uses the same database.
//
// Every method returns only when what it wrote is durable. An error means that
// nothing was written, unless it wraps [ErrCommitLost]. Store methods are safe
// for concurrent use, by several processes too. Contexts bound waiting; a write
// that has begun isn't abandoned half-way.
type Store interface {
	// Begin reads what decide needs, lets it decide, and carries the Move out, as
	// one serializable transaction: no other write to the operation, or to
	// another revision of it, comes between the reading and the writing.
	// A zero Move writes nothing. Begin may call decide several times, with
	// fresher data each time, and carries out only what the last call returned; so
	// decide is pure and quick. decide's error is returned as it is, and nothing
	// is written.
	Begin(ctx context.Context, sought Sought, decide func(Found) (Move, error)) error

	// Record carries out m if the operation still has m.From().Moves transitions,
	// and returns ErrStale otherwise. The transition, the status, the sealed
	// payload and what m takes of limits or gives back (m.Reserve, m.Release) change in one commit.
	// A move that would pass a limit's bound is stale too.
	Record(ctx context.Context, m Move) error

	// Find returns the operations that match f.
	Find(ctx context.Context, f Filter) ([]Operation, error)

	// Sealed returns an operation's sealed payload, nil if it was erased.
	Sealed(ctx context.Context, operationID string) ([]byte, error)

	// History returns an operation's transitions, oldest first.
	History(ctx context.Context, operationID string) ([]Transition, error)

	// Prune makes tombstones of final operations, oldest first, and says how many it made: it writes what bury
	// makes of an operation and its history, and erases the history, in one commit. Operations that
	// still wait for the provider (NextCheckAt) or for a person (Review) stay whole. One that
	// moves meanwhile is left alone. bury is pure; see [Operation.Tombstone].
	Prune(ctx context.Context, what Prunable, bury func(Operation, []Transition) Operation) (int, error)

	// Remember keeps value under name if nothing is kept there yet, and returns what is.
	Remember(ctx context.Context, name string, value []byte) ([]byte, error)

	// Recall returns what is kept under name, nil if nothing is.
	Recall(ctx context.Context, name string) ([]byte, error)

	// Usage returns how much is taken of limits, by bucket; of the 1,000 that have taken most if
	// none is named.
	Usage(ctx context.Context, buckets []string) (map[string]int64, error)

	// Close waits for writes under way.
	Close() error
}

// ErrCommitLost is wrapped by a write's error when the write may be durable all
// the same: the answer to its COMMIT was lost.
var ErrCommitLost = errors.New("ledger: the commit's answer was lost")

// Sought says which operations a decision is about.
type Sought struct {
	Key     Key       // strict: the operation with this key
	BaseKey Key       // workflow: the operation's revisions; then Key isn't used
	Content Hash      // workflow: also the revision that has exactly this content
	Alike   FieldHash // also the newest operation with this in common under another key, or base key
	Tenant  string    // of Alike
	Since   time.Time // Alike counts only if it was created after that
	Buckets []string  // also how much is taken of these
}

// Found is what there is of what was [Sought]. A nil field means that there is
// none.
type Found struct {
	Operation   *Operation       // with the key, or the newest revision
	SameContent *Operation       // the newest revision whose content is the same
	Alike       *Operation       // need not be sought if there is an Operation under a strict key
	Used        map[string]int64 // of Buckets; 0 where there is no entry
}

// Prunable says which final operations are pruned.
type Prunable struct {
	Before time.Time // last moved before that
	Action string    // of this type; empty: of all
	Limit  int       // so many at most
}

// A Filter chooses operations. Zero fields don't restrict.
type Filter struct {
	ID         string
	Key        Key
	Tenant     *string
	Action     string
	WorkflowID string
	RunID      string
	Statuses   []Status
	Review     bool      // only those with an open review
	Approval   bool      // only those that wait for an approval
	Revised    Key       // only the revisions with this base key
	FromID     string    // ids from this one on ...
	ToID       string    // ... and before this one: ids are in the order of creation, to the millisecond
	Due        time.Time // only those that automation has to look at by then; see [Operation.Due]
	Provider   string
	Newest     bool   // newest first; otherwise oldest first
	After      string // only those that come after the operation with this id, in that order
	Limit      int    // 0: 1,000
}

// Due reports whether automation has something to do with op at a time: its lease
// is over, a look-up or the check of an accepted object is due, or what it waits for has
// lapsed. Stores select the same rows by SQL.
func (op Operation) Due(at time.Time) bool {
	reached := func(t time.Time) bool { return !t.IsZero() && !t.After(at) }
	switch op.Status {
	case Executing:
		return reached(op.LeaseUntil)
	case Unknown, Succeeded:
		return reached(op.NextCheckAt)
	case Planned:
		return reached(op.ExpiresAt) || reached(op.NextCheckAt)
	case FailedRetryable:
		return reached(op.ExpiresAt)
	case FailedFinal:
		return false
	}
	return false
}
