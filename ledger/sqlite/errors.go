package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/onceward/onceward/ledger"
)

// ErrClosed is returned by every method of a [Store] that was closed.
var ErrClosed = errors.New("ledger/sqlite: the store is closed")

// An OpenError says why a ledger can't be opened, and what to do about it.
type OpenError struct {
	Path  string
	Hint  string // what is wrong, and what to do
	Cause error
}

func (e *OpenError) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("can't open the ledger %s: %s", e.Path, e.Hint)
	}
	return fmt.Sprintf("can't open the ledger %s: %s (%v)", e.Path, e.Hint, e.Cause)
}

// Unwrap gives the cause.
func (e *OpenError) Unwrap() error { return e.Cause }

// openError finds the words for what kept a ledger from opening.
func openError(path string, err error) error {
	var known *OpenError
	if errors.As(err, &known) {
		return err
	}
	e := &OpenError{Path: path, Cause: err}
	switch code := code(err); {
	case errors.Is(err, fs.ErrPermission), code == lib.SQLITE_READONLY, code == lib.SQLITE_PERM:
		e.Hint = "this user may not write there; give it the rights to the folder and its files, or choose another data directory"
	case code == lib.SQLITE_NOTADB:
		e.Hint = "it is not an SQLite database; choose another data directory, or put the file's backup in its place"
	case code == lib.SQLITE_CORRUPT:
		e.Hint = "the database is damaged; put its backup in its place"
	case code == lib.SQLITE_CANTOPEN:
		e.Hint = "the file or its folder can't be opened; look at their rights and at the number of open files"
	case code == lib.SQLITE_BUSY:
		e.Hint = "another program holds it; end that program, or wait for it"
	case code == lib.SQLITE_FULL:
		e.Hint = "the disk is full; make room"
	default:
		e.Hint = "look at the cause"
	}
	return e
}

// code is the primary result code of an SQLite error, or 0.
func code(err error) int { return extendedCode(err) & 0xff }

func extendedCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// isConstraint reports whether the database refused one statement. SQLite then undid
// that statement alone, and the transaction goes on.
func isConstraint(err error) bool { return code(err) == lib.SQLITE_CONSTRAINT }

// commitError tells a COMMIT that certainly failed from one that may yet be durable:
// after a failed write or flush the frames may lie in the log, complete, and a
// recovery after a crash would find them.
func commitError(err error) error {
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_CONSTRAINT:
		return fmt.Errorf("ledger/sqlite: nothing was written, the commit was refused: %w", err)
	}
	return fmt.Errorf("%w: %w", ledger.ErrCommitLost, err)
}
