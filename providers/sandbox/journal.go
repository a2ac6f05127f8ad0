package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A journal is the file in which the provider remembers, apart from any ledger. Several
// processes may have it open at once.
type journal struct {
	id     string  // made with the file
	writer *sql.DB // one connection; nil if opened for reading only
	reader *sql.DB
}

const (
	schemaVersion = 1
	applicationID = 0x6f6e7362 // tells the file from a ledger
)

// busyMillis is how long SQLite itself waits for another process. It is short,
// because only between two waits can a call be given up.
const busyMillis = 100

func createJournal(ctx context.Context, path string) (*journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("the sandbox journal's directory can't be made: %w", err)
	}
	// Two first starts at once must not both create the tables, and SQLite's switch
	// to write-ahead logging doesn't wait for another process.
	unlock, err := lockedfile.MutexAt(path + ".lock").Lock()
	if err != nil {
		return nil, fmt.Errorf("the sandbox journal %s can't be locked: %w", path, err)
	}
	defer unlock()
	if err := touch(path); err != nil {
		return nil, fmt.Errorf("the sandbox journal %s can't be made: %w", path, err)
	}
	j := &journal{
		writer: connect(path, "rw", 1, "journal_mode(WAL)", "synchronous(FULL)", "fullfsync(1)"),
		reader: connect(path, "rw", 4, "query_only(1)"),
	}
	if err := j.prepare(ctx); err != nil {
		return nil, errors.Join(explain(path, err), j.close())
	}
	return j, nil
}

func readJournal(ctx context.Context, path string) (*journal, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no sandbox journal at %s: it is made by the first start of a server with this data directory: %w", path, err)
	}
	// Not mode=ro: a reader of a write-ahead log takes part in its locking.
	j := &journal{reader: connect(path, "rw", 4, "query_only(1)")}
	if err := j.read(ctx); err != nil {
		return nil, errors.Join(explain(path, err), j.close())
	}
	return j, nil
}

// touch makes the file with the mode that SQLite then gives to its companions too. A
// file that exists isn't opened: closing it would drop this process's locks on it.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func connect(path, mode string, connections int, pragmas ...string) *sql.DB {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	query := url.Values{"mode": {mode}, "_txlock": {"immediate"}}
	query.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyMillis))
	for _, p := range pragmas {
		query.Add("_pragma", p)
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		// Only an unregistered driver makes Open fail.
		panic(err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

// errForeign is a file that is somebody else's, or of another version.
type errForeign string

func (e errForeign) Error() string { return string(e) }

// prepare makes the tables in a new file, and checks an old one.
func (j *journal) prepare(ctx context.Context) error {
	tx, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.rollback()
	var tables, version int
	if err := tx.row("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if err := tx.row("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if tables == 0 && version == 0 {
		for _, statement := range []string{
			sqlSchema,
			fmt.Sprintf("PRAGMA application_id = %d", applicationID),
			fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
		} {
			if err := tx.exec(statement); err != nil {
				return err
			}
		}
		if err := tx.exec("INSERT INTO sandbox (only, id) VALUES (1, ?)", randomID("sb_")); err != nil {
			return err
		}
		if err := tx.commit(); err != nil {
			return err
		}
	}
	tx.rollback()
	return j.read(ctx)
}

// read checks that the file is a sandbox's and reads what it is called.
func (j *journal) read(ctx context.Context) error {
	var application, version int
	if err := j.reader.QueryRowContext(ctx, "PRAGMA application_id").Scan(&application); err != nil {
		return err
	}
	if err := j.reader.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch {
	case application != applicationID:
		return errForeign("is a database of something else")
	case version > schemaVersion:
		return errForeign("was made by a newer version of this program")
	case version < schemaVersion:
		return errForeign("isn't complete")
	}
	return j.reader.QueryRowContext(ctx, "SELECT id FROM sandbox").Scan(&j.id)
}

func (j *journal) close() error {
	var err error
	if j.writer != nil {
		err = j.writer.Close()
	}
	return errors.Join(err, j.reader.Close())
}

// explain turns a failure to open into what a person can act on.
func explain(path string, err error) error {
	const help = "move it away, or use another data directory"
	if foreign, ok := errors.AsType[errForeign](err); ok {
		return fmt.Errorf("the file %s %w: %s", path, foreign, help)
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_NOTADB {
		return fmt.Errorf("the file %s is no sandbox journal (%w): %s", path, err, help)
	}
	return fmt.Errorf("the sandbox journal %s can't be opened: %w", path, err)
}

func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
