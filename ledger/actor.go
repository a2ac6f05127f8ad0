package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// An Actor is how the ledger reaches the outside world for one action type. The
// ledger knows no provider: it takes two functions, and data about what they
// can be trusted with.
type Actor struct {
	Provider string  // its name
	Scope    string  // endpoint, account and mode, hashed; see Operation.Scope
	Promise  Promise // what may be concluded from its answers
	// Apply makes one attempt, one request on the wire. It calls a.MaySend just
	// before the first byte and sends nothing if that fails.
	Apply func(ctx context.Context, a Attempt) Finding
	// Lookup asks what became of an operation and changes nothing. It is nil
	// where the provider can't be asked.
	Lookup func(ctx context.Context, q Question) Finding
}

// A Promise is what a provider guarantees, as far as the ledger's decisions
// depend on it.
type Promise struct {
	Deadline time.Duration // how long one attempt may take
	Lease    time.Duration // how long its worker is presumed alive; longer than Deadline
	Settle   time.Duration // how long a request may go on running at the provider after we gave up

	// Idempotent: the same key within Window of the first request does nothing a
	// second time. Margin is taken off the window. A Window of 0 never ends.
	Idempotent bool
	Window     time.Duration
	Margin     time.Duration
	// CachesErrors: an error is kept under its key, so that the same key can't
	// succeed any more.
	CachesErrors bool

	// LookupLag is how long an effect may stay invisible to a look-up.
	LookupLag time.Duration
	// ProvesAbsence: a look-up that finds nothing, begun late enough, proves that
	// nothing happened.
	ProvesAbsence bool
}

// An Attempt is one try to have the provider do it.
type Attempt struct {
	OperationID string
	Number      int
	ProviderKey string
	Payload     Payload
	// MaySend fails when too little of the lease is left: a worker that slept has
	// lost its turn. See [ErrTooLate].
	MaySend func() error
}

// A Payload is what an attempt needs and the ledger keeps sealed: made once,
// before the first claim, and the same bytes for every attempt.
type Payload struct {
	Arguments json.RawMessage // normalised, as the tool took them
	Request   []byte          // rendered by the provider
}

// A Question is what a look-up is about.
type Question struct {
	OperationID         string
	ProviderKey         string
	EarlierKeys         []string // of lower generations
	ProviderOperationID string   // where an earlier answer told it
	Reference           json.RawMessage
	FirstSentAt         time.Time
	// Payload is what was sent. It is empty once the operation is final.
	Payload Payload
}

// ErrTooLate is what an [Attempt]'s MaySend returns when too little of the lease is
// left. Nothing was sent then.
var ErrTooLate = errors.New("ledger: too little of the lease is left to send anything")
