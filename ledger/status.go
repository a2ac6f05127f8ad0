package ledger

import "slices"

// A Status says where an operation stands. Each comment tells who sets it, what
// a crash leaves, and what a duplicate call gets.
type Status string

const (
	// Planned waits for a person or for its turn; nothing was sent. A crash
	// changes nothing. A duplicate gets "awaiting approval", or, once a person
	// has let it go, claims it.
	Planned Status = "planned"

	// Executing is set by the claim, in the same commit that numbers the
	// attempt. A crash leaves a request that may have been sent: after
	// lease_until it becomes Unknown, never a new attempt by itself. A
	// duplicate waits for the result.
	Executing Status = "executing"

	// Succeeded is set on evidence only: the provider's answer, a look-up, a
	// statement or a person. It is final. A duplicate gets the first result,
	// as success.
	Succeeded Status = "succeeded"

	// FailedRetryable means that the attempt was provably not sent and no
	// earlier one is unsettled. A crash changes nothing. A duplicate gets the
	// same answer until next_check_at, and then makes the next attempt.
	FailedRetryable Status = "failed_retryable"

	// FailedFinal means that nothing happened and nothing will: the provider
	// refused it without effect, a person denied or dropped it, or its time was
	// over. A duplicate gets the saved failure. Only a late proof of success
	// can still change it, with an alarm.
	FailedFinal Status = "failed_final"

	// Unknown means that it may have happened. It stays so until evidence comes:
	// a look-up, the provider's own guarantee for the key, or a person. A
	// duplicate makes the ledger look again and else gets "unknown", which is
	// not a failure.
	Unknown Status = "unknown"
)

// Statuses lists every status, in the order of an operation's life.
func Statuses() []Status {
	return []Status{Planned, Executing, Succeeded, FailedRetryable, FailedFinal, Unknown}
}

// Known reports whether s is a status.
func (s Status) Known() bool { return slices.Contains(Statuses(), s) }

// moves holds every legal change of status. Staying in a status while something
// is noted (a look-up, a conflict, a person's permission) is legal everywhere.
// The two ways out of a failure into Succeeded keep the rule that a success is
// never dropped, however late it is and whoever brings it.
var moves = map[Status][]Status{
	"":              {Planned, Executing},
	Planned:         {Executing, FailedFinal},
	Executing:       {Succeeded, FailedFinal, FailedRetryable, Unknown},
	Succeeded:       {},
	FailedRetryable: {Executing, FailedFinal, Succeeded},
	FailedFinal:     {Planned, Succeeded},
	Unknown:         {Succeeded, FailedFinal, Executing},
}

// CanBecome reports whether a move from s to next is legal. The empty status
// stands for an operation that doesn't exist yet.
func (s Status) CanBecome(next Status) bool {
	if s == next {
		return s != ""
	}
	return slices.Contains(moves[s], next)
}

// Final reports whether no call and no automation moves the operation any more.
func (s Status) Final() bool { return s == Succeeded || s == FailedFinal }
