package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrClosed is returned by every method of a [Store] that was closed.
var ErrClosed = errors.New("ledger/postgres: the store is closed")

// An unreachableError says that there was no connection, so nothing was sent.
type unreachableError struct{ cause error }

func (e *unreachableError) Error() string {
	return "no connection to PostgreSQL: " + publicText(e.cause)
}
func (e *unreachableError) Unwrap() error { return e.cause }

// A brokenError says that the connection ended while an answer was awaited.
type brokenError struct{ cause error }

func (e *brokenError) Error() string {
	return "the connection to PostgreSQL broke: " + publicText(e.cause)
}
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

// An OpenError says why a ledger can't be opened, and what to do about it. It shows no password.
type OpenError struct {
	Server string // host, port and database, where known
	Hint   string // what is wrong, and what to do
	Cause  error  // don't print it: a driver's error may hold the URL
}

func (e *OpenError) Error() string {
	text := "can't open the ledger"
	if e.Server != "" {
		text += " " + e.Server
	}
	text += ": " + e.Hint
	if e.Cause != nil {
		text += " (" + publicText(e.Cause) + ")"
	}
	return text
}

// Unwrap gives the cause.
func (e *OpenError) Unwrap() error { return e.Cause }

// openError finds the words for what kept a ledger from opening.
func openError(config *pgx.ConnConfig, err error) error {
	server := fmt.Sprintf("postgres://%s/%s", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database)
	if known, ok := errors.AsType[*OpenError](err); ok {
		known.Server = server
		return known
	}
	e := &OpenError{Server: server, Cause: err}
	var code string
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		code = p.Code
	}
	var dns *net.DNSError
	switch {
	case code == "28P01" || code == "28000":
		e.Hint = "the server doesn't let this user in; look at user and password in the URL, and at the server's pg_hba.conf"
	case code == "3D000":
		e.Hint = "there is no such database; create it (CREATE DATABASE), or name another one in the URL"
	case code == "53300":
		e.Hint = "the server has no connection left; lower pool_max_conns, or raise its max_connections"
	case code == "57P03":
		e.Hint = "the server is starting or stopping; try again"
	case code == "42501":
		e.Hint = "the user lacks a right"
	case code == "42704" || code == "22023":
		e.Hint = "a parameter of the URL is unknown to the server, or has a value that it doesn't take"
	case errors.Is(err, errReadOnly), code == "25006":
		e.Hint = "this server is read-only, most likely a replica; name the primary, or all of them separated by commas"
		e.Cause = nil
	case errors.As(err, &dns):
		e.Hint = "the host's name is unknown; look at the URL"
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		e.Hint = "the server doesn't answer; look at host and port in the URL, and at firewalls"
	case code == "":
		e.Hint = "the server can't be reached; look at host, port and sslmode in the URL, and whether it runs"
	default:
		e.Hint = "look at the cause"
	}
	return e
}
