package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A Move takes an operation from one state to the next: the state as it was read,
// the state as it shall be, and the line for its history. Only this package
// makes moves, and it makes legal ones only; a [Store] carries them out.
type Move struct {
	from, to Operation
	seal     []byte
	bounds   map[string]int64 // of the limits it takes of
}

// IsZero reports whether m moves nothing.
func (m Move) IsZero() bool { return m.to.ID == "" }

// Inserts reports whether the operation is new.
func (m Move) Inserts() bool { return m.from.ID == "" }

// Replans reports whether the operation gets new arguments: it was never
// attempted, and is planned again. Only then may its hashes change.
func (m Move) Replans() bool { return m.from.Status == FailedFinal && m.to.Status == Planned }

// From is the operation as it was read. A store compares From().Moves.
func (m Move) From() Operation { return m.from }

// To is the operation as it shall be, its history's new line in To().Last.
func (m Move) To() Operation { return m.to }

// Seal is the sealed payload to keep with the operation, or nil where there is
// none or it stays as it is.
func (m Move) Seal() []byte { return m.seal }

// Erases reports whether the sealed payload goes, in the same commit: the
// operation is final, and nobody needs it any more.
func (m Move) Erases() bool { return m.to.Status.Final() && !m.from.Status.Final() }

// An IllegalMoveError is a programming error, caught before the database has to.
type IllegalMoveError struct {
	OperationID string
	From, To    Status
	Problem     string
}

func (e *IllegalMoveError) Error() string {
	return fmt.Sprintf("ledger: operation %s can't move from %q to %q: %s", e.OperationID, e.From, e.To, e.Problem)
}

// step is the one way a Move is made.
func (op Operation) step(to Status, at time.Time, note Note, change func(*Operation)) (Move, error) {
	if !op.Status.CanBecome(to) {
		return Move{}, &IllegalMoveError{op.ID, op.Status, to, "there is no such move"}
	}
	next := op
	next.Status = to
	next.Moves++
	next.Last = note
	next.UpdatedAt = later(at, op.UpdatedAt) // also where another server's clock was ahead
	if change != nil {
		change(&next)
	}
	next.clean()
	if problem := next.problem(); problem != "" {
		return Move{}, &IllegalMoveError{op.ID, op.Status, to, problem}
	}
	if problem := op.changed(next); problem != "" {
		return Move{}, &IllegalMoveError{op.ID, op.Status, to, problem}
	}
	return Move{from: op, to: next}, nil
}

// clean makes of what a provider said text that every database takes: an outcome must not stay
// unrecorded for a NUL or a broken character in it.
func (op *Operation) clean() {
	for _, s := range []*string{&op.ProviderOperationID, &op.ProviderStatus, &op.ErrorCode} {
		*s = plain(*s)
	}
	for _, b := range []*json.RawMessage{&op.Reference, &op.Result, &op.Last.Evidence} {
		if !utf8.Valid(*b) || bytes.IndexByte(*b, 0) >= 0 {
			*b = json.RawMessage(plain(string(*b)))
		}
	}
}

func plain(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// problem says what is wrong with op by itself. The database's CHECKs say the
// same, for those who write past this package.
func (op Operation) problem() string {
	attempted := op.Attempts > 0
	switch op.Status {
	case Planned:
		if attempted {
			return "a planned operation has no attempts"
		}
	case Executing:
		if !attempted || op.LeaseOwner == "" || op.LeaseUntil.IsZero() || op.ProviderKey == "" || op.FirstSentAt.IsZero() {
			return "an executing operation has an attempt, a lease and a provider key"
		}
	case Succeeded:
		if len(op.Last.Evidence) == 0 {
			return "success needs evidence"
		}
	case FailedRetryable, FailedFinal:
		if op.ErrorCode == "" {
			return "a failure has a code"
		}
		if op.Status == FailedRetryable && !attempted {
			return "only an attempt can fail so"
		}
	case Unknown:
		if !op.Review.Open() && op.NextCheckAt.IsZero() {
			return "an unknown outcome has a review or a next look-up"
		}
	}
	if !op.UnsettledSince.IsZero() && op.Status != Executing && op.Status != Unknown {
		return "an unsettled operation is executing or unknown"
	}
	return ""
}

// changed says what the step from op to next may not have changed.
func (op Operation) changed(next Operation) string {
	claims := next.Status == Executing && op.Status != Executing
	if claims && next.Attempts != op.Attempts+1 || !claims && next.Attempts != op.Attempts {
		return "a claim adds one attempt, and nothing else does"
	}
	if op.ID == "" {
		return ""
	}
	if next.ID != op.ID || next.Key != op.Key || next.Tenant != op.Tenant || next.Action != op.Action {
		return "what an operation is never changes"
	}
	replans := op.Status == FailedFinal && next.Status == Planned
	if replans && op.Attempts > 0 {
		return "an operation that was attempted is never planned again"
	}
	if !replans && (next.Fingerprint != op.Fingerprint || next.Content != op.Content) {
		return "the arguments of an operation never change"
	}
	return ""
}
