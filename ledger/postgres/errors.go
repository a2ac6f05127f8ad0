package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

)

// ErrClosed is returned by every method of a [Store] that was closed.
var ErrClosed = errors.New("ledger/postgres: the store is closed")

// An unreachableError says that there was no connection, so nothing was sent.
type unreachableError struct{ cause error }

func (e *unreachableError) Error() string { return "no connection to PostgreSQL: " + publicText(e.cause) }
func (e *unreachableError) Unwrap() error { return e.cause }

// A brokenError says that the connection ended while an answer was awaited.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return "the connection to PostgreSQL broke: " + publicText(e.cause) }
func (e *brokenError) Unwrap() error { return e.cause }

// A verdict is what an error says about what was to be written.
type verdict int

const (
	isRefusal     verdict = iota // certainly nothing, and a repeat won't help
	isTransient                  // certainly nothing, and a repeat may help
	isStale                      // certainly nothing, for it was decided on what is no longer so
	isUnreachable                // certainly nothing: there was no connection
	isUnsent                     // certainly nothing: the connection was dead before anything was sent
	isLost                       // it can't be told: the answer got lost
)

// kindOf is the one place where PostgreSQL's and the driver's errors are told apart. Only an
// answer of the server's that leaves the connection alive proves that nothing was written: one that
// ends it may come after the commit.
func kindOf(err error) verdict {
	if _, ok := errors.AsType[*brokenError](err); ok {
		return isLost
	}
	if _, ok := errors.AsType[*unreachableError](err); ok || errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		return isUnreachable
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok && pgconn.SafeToRetry(err):
		return isUnsent
	case !ok || e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC":
		return isLost
	}
	switch e.Code {
	case "OW002":
		return isStale
	case "40001", "40P01", // serialization_failure, deadlock_detected
		"23505",          // unique_violation: of an index other than the key's; a second look tells a race from a clash
		"0A000", "26000": // a prepared statement from before a migration, or lost by a proxy
		return isTransient
	}
	return isRefusal
}

// writeError finds the words for a write that certainly did nothing.
func writeError(err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case e.Code == "OW001" || e.Code[:2] == "23":
			return fmt.Errorf("ledger/postgres: nothing was written, the database refuses this: %w", err)
		case e.Code == "25006":
			return fmt.Errorf("ledger/postgres: nothing was written, this server is read-only; is it a replica?: %w", err)
		case e.Code == "42501":
			return fmt.Errorf("ledger/postgres: nothing was written, the user lacks a right: %w", err)
		case e.Code == "55P03" || e.Code == "57014":
			return fmt.Errorf("ledger/postgres: nothing was written, it took too long; does another transaction hold the rows?: %w", err)
		}
	}
	return fmt.Errorf("ledger/postgres: nothing was written: %w", err)
}

func readError(err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("ledger/postgres: can't read: %w", err)
}

// publicText is what may be shown of an error: no part of a URL, which holds the password.
func publicText(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Error()
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it took too long"
	}
	return fmt.Sprintf("%T", err)
}

