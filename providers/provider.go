// Package providers is the outside world: what a provider of mail or money has to
// offer so that the ledger can keep its promise with it, and how its answers
// are told apart.
package providers

import (
	"context"
	"errors"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A Provider does the real thing. It never retries, follows or repeats anything:
// one Apply is at most one request on the wire, and the ledger alone decides
// about another.
type Provider interface {
	// Traits says what may be concluded from this provider's answers for an
	// action type, and ok is false if it doesn't serve it.
	Traits(action string) (t Traits, ok bool)

	// Prepare renders what will be sent. It is pure: no clock, no network, no
	// randomness but what the Order brings. Its error says what can't be sent; an
	// *ArgumentError names the argument. The same bytes are sent by every attempt.
	Prepare(o Order) ([]byte, error)

	// Apply makes one attempt. Just before the first byte it calls a.MaySend and
	// returns its error if there is one. An error without a mark (see [Mark]) means
	// that it may have happened.
	Apply(ctx context.Context, action string, a ledger.Attempt) (ledger.Receipt, error)

	// Lookup asks what became of an operation and changes nothing. It returns
	// ErrAbsent if the provider answered that there is no such object, and any other
	// error if it learnt nothing. It is called only if the traits say so.
	Lookup(ctx context.Context, action string, q ledger.Question) (ledger.Receipt, error)
}

// ErrAbsent is a look-up's answer that there is no such object. What that proves,
// and when, is the ledger's to judge.
var ErrAbsent = errors.New("the provider has no such object")

// An Order is what a tool wants done.
type Order struct {
	OperationID string
	ProviderKey string    // of generation 0
	At          time.Time // when the operation was first called for; UTC, whole seconds
	Arguments   Arguments
}
