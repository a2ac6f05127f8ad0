package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// A Ledger lets every business action happen at most once. Its exported fields are
// set before first use and not changed after.
type Ledger struct {
	Store  Store
	Sealer *Sealer
	Actors map[string]Actor // by action type
	Policy Policy
	Rules  map[string]Rules // by action type
	Audit  *Auditor         // nil: nothing proves the history

	Owner string           // names this process in leases; made up if empty
	Now   func() time.Time // nil: time.Now
	NewID func() string    // nil: "op_" and a UUIDv7
	Log   *slog.Logger     // nil: slog.Default
	Alarm func(Alarm)      // nil: alarms are logged only

	once    sync.Once
	flights flights
	finals  finals
	held    held
	works   works
	skew    skew

	sealing sync.Mutex
	sealed  Checkpoint             // the newest one seen
	newFrom atomic.Pointer[string] // ids from here on aren't sealed
}

// An Alarm is something a person should hear of although the ledger copes.
type Alarm struct {
	Kind        string // "operation_conflict", "late_success", "review_opened", "rejected_later", ...
	OperationID string
	Action      string
	Status      Status
	Moves       int // tells one alarm of a kind from the next
	At          time.Time
}

// ErrSecretMismatch is returned by [CheckSecret] for a secret that isn't the one the
// ledger was made with.
var ErrSecretMismatch = errors.New("the secret is not the one this ledger was made with: its keys would differ, and every repeat would look new; start with the right secret")

// CheckSecret ties a store to its secret for ever.
func CheckSecret(ctx context.Context, s Store, secret Secret) error {
	check := secret.Check()
	kept, err := s.Remember(ctx, "secret_check", check[:])
	if err != nil {
		return fmt.Errorf("check the secret: %w", err)
	}
	if Hash(kept) != check {
		return ErrSecretMismatch
	}
	return nil
}

// HasOperations reports whether a store holds any operation, of the given tenant if
// tenant isn't nil.
func HasOperations(ctx context.Context, s Store, tenant *string) (bool, error) {
	found, err := s.Find(ctx, Filter{Tenant: tenant, Limit: 1})
	return len(found) > 0, err
}

func (l *Ledger) init() {
	l.once.Do(func() {
		l.Policy = l.Policy.withDefaults()
		if l.Owner == "" {
			l.Owner = "w-" + uuid.NewString()[:8]
		}
		if l.Now == nil {
			l.Now = time.Now
		}
		if l.NewID == nil {
			l.NewID = func() string { return "op_" + uuid.Must(uuid.NewV7()).String() }
		}
		if l.Log == nil {
			l.Log = slog.Default()
		}
	})
}

// now is the time as stores keep it: UTC, to the microsecond.
func (l *Ledger) now() time.Time { return l.Now().UTC().Truncate(time.Microsecond) }

func (l *Ledger) alarm(ctx context.Context, kind string, op Operation) {
	l.Log.WarnContext(ctx, "alarm", "kind", kind, "operation_id", op.ID, "action_type", op.Action, "status", op.Status)
	if l.Alarm != nil {
		l.Alarm(Alarm{Kind: kind, OperationID: op.ID, Action: op.Action, Status: op.Status, Moves: op.Moves, At: l.now()})
	}
}

// Get returns a tenant's operation, by operation id or by key in its text form.
func (l *Ledger) Get(ctx context.Context, tenant, name string) (Answer, error) {
	l.init()
	op, err := l.find(ctx, name)
	if err != nil {
		return Answer{}, err
	}
	if op.Tenant != tenant {
		return Answer{}, notFound()
	}
	return answer(op, true), nil
}

// List returns the operations that match f.
func (l *Ledger) List(ctx context.Context, f Filter) ([]Operation, error) {
	found, err := l.Store.Find(ctx, f)
	if err != nil {
		return nil, unavailable(err)
	}
	return found, nil
}

// find reads an operation by id or by key.
func (l *Ledger) find(ctx context.Context, name string) (Operation, error) {
	filter := Filter{ID: name, Limit: 1}
	if key, err := ParseKey(name); err == nil {
		filter = Filter{Key: key, Limit: 1}
	}
	found, err := l.Store.Find(ctx, filter)
	if err != nil {
		return Operation{}, unavailable(err)
	}
	if len(found) == 0 || name == "" {
		return Operation{}, notFound()
	}
	return found[0], nil
}

func notFound() *Refusal {
	return &Refusal{Code: NotFound, Fields: []string{"operation_id"}, Message: "There is no operation with this name."}
}

func unavailable(err error) *Refusal {
	return &Refusal{Code: LedgerUnavailable, Cause: err, RetryAfter: 5 * time.Second,
		Message: "The ledger can't be reached, so nothing was done. The same call can be made again."}
}

// Drain starts nothing new from now on and waits for what is under way, at most until
// ctx is done; then it returns ctx's error. What is still under way then is left to
// the next server: its lease ends, and it is looked up.
func (l *Ledger) Drain(ctx context.Context) error {
	select {
	case <-l.works.close():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close starts nothing new from now on and waits for nothing; see Drain.
func (l *Ledger) Close() { l.works.close() }

// History returns an operation, by id or key, with its transitions, oldest first.
func (l *Ledger) History(ctx context.Context, name string) (Operation, []Transition, error) {
	l.init()
	op, err := l.find(ctx, name)
	if err != nil {
		return Operation{}, nil, err
	}
	history, err := l.Store.History(ctx, op.ID)
	if err != nil {
		return Operation{}, nil, unavailable(err)
	}
	return op, history, nil
}
