package providers

import (
	"errors"
	"time"
)

// A Mark says what an error proves. An error without one proves nothing: it may
// have happened.
type Mark string

const (
	// NotSent: not a byte of the request left. It may be tried again.
	NotSent Mark = "not_sent"
	// Refused: a definite no, and nothing happened.
	Refused Mark = "refused"
	// InFlight: the provider says that a request with this key is still running.
	InFlight Mark = "in_flight"
	// KeyReused: the provider says that the key belongs to another request.
	KeyReused Mark = "key_reused"
	// Contradiction (look-up): two objects, or one that isn't what was asked for.
	Contradiction Mark = "contradiction"
)

// An Error is an error that proves something, or whose code is worth keeping. Code
// is a short word for the ledger and for people, such as "timeout" or the
// provider's own code; it never holds personal data, nor does Alarm.
type Error struct {
	Mark       Mark // empty: proves nothing
	Code       string
	RetryAfter time.Duration // the provider's wish
	Alarm      string        // why a person should hear of it, such as "credentials_refused"
	Err        error         // for the log at debug level only: it may quote the provider
}

func (e *Error) Error() string {
	if e.Mark == "" {
		return e.Code
	}
	return string(e.Mark) + ": " + e.Code
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// MarkOf returns what err proves; it is empty if err proves nothing.
func MarkOf(err error) Mark {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Mark
	}
	return ""
}
