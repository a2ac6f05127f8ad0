package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks a file as a ledger of ours, so that another program's database is
// never migrated. It is "Once" in ASCII.
const applicationID = 0x4F6E6365

// Settings of every connection. FULL flushes the log at each commit; on macOS only
// fullfsync reaches the disk. The wait for a busy database, in milliseconds, is a backstop: the
// lock beside it makes ours take turns. The writer keeps up to 16 MiB of pages in memory.
const (
	everyConnection = `_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)&_pragma=fullfsync(1)&_pragma=checkpoint_fullfsync(1)`
	readConnection  = everyConnection + `&_pragma=query_only(1)`
	writeConnection = everyConnection + `&_pragma=cache_size(-16384)`
)

// Open opens the ledger in the file at path. It makes the folder (for this user alone), the
// file and its tables where they don't exist yet, and brings an older schema up to date.
// Several processes may do so at the same time. Beside the file stand SQLite's own "-wal" and
// "-shm", and ".lock", by which processes take turns. Its errors are [*OpenError]. The context
// bounds opening only.
func Open(ctx context.Context, path string) (*Store, error) {
	s, err := open(ctx, path)
	if err != nil {
		return nil, openError(path, err)
	}
	return s, nil
}

func open(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	turn, err := openTurn(path + ".lock")
	if err != nil {
		return nil, err
	}
	if err := turn.lock(); err != nil {
		return nil, errors.Join(err, turn.close())
	}
	s, err := openLocked(ctx, path, turn)
	if err != nil {
		return nil, errors.Join(err, turn.close()) // which unlocks it
	}
	return s, turn.unlock()
}

// openLocked opens the ledger while nobody else does.
func openLocked(ctx context.Context, path string, turn *turn) (*Store, error) {
	if err := create(path); err != nil {
		return nil, err
	}
	writing, err := sql.Open("sqlite", source(path, writeConnection))
	if err != nil {
		return nil, err
	}
	writing.SetMaxOpenConns(1)
	s, err := start(ctx, path, writing, turn)
	if err != nil {
		return nil, errors.Join(err, writing.Close())
	}
	return s, nil
}

// create makes the file if there is none. It never opens one that exists: closing it
// would drop the locks that another Store of this process has on it.
func create(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return &OpenError{Path: path, Hint: "it is a folder; give the name of a file"}
	case err == nil && !info.Mode().IsRegular():
		return &OpenError{Path: path, Hint: "it is not a regular file; give the name of a file on a local disk"}
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// source is path as a data source name; a path may hold what ends one.
func source(path, settings string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: settings}).String()
}

func start(ctx context.Context, path string, writing *sql.DB, turn *turn) (*Store, error) {
	if err := examine(ctx, path, writing); err != nil {
		return nil, err
	}
	if err := migrate(ctx, path, writing); err != nil {
		return nil, err
	}
	conn, err := writing.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(ctx, conn, turn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	reading, err := sql.Open("sqlite", source(path, readConnection))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	reading.SetMaxOpenConns(maxReaders)
	reading.SetMaxIdleConns(maxReaders)
	s := &Store{writer: w, writing: writing, readers: newReaders(reading)}
	s.queue.commit = w.commit
	s.queue.idle.L = &s.queue.mu
	return s, nil
}

// examine refuses a file that isn't a ledger, before anything is changed in it, and
// switches to the write-ahead log.
func examine(ctx context.Context, path string, db *sql.DB) error {
	var id, tables int
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return err
	}
	if tables > 0 && id != applicationID {
		return &OpenError{Path: path, Hint: "it is a database of another program; choose another data directory"}
	}
	// The mark comes before any table: who is killed in between leaves a file that is ours.
	if _, err := db.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID)); err != nil {
		return err
	}
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return &OpenError{Path: path, Hint: "this file system has no shared memory; choose a data directory on a local disk"}
	}
	return nil
}

// migrate brings the schema up to date. The caller holds the lock.
func migrate(ctx context.Context, path string, db *sql.DB) error {
	scripts, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, scripts, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return &OpenError{Path: path, Hint: fmt.Sprintf(
			"its schema has version %d and this program knows versions up to %d; use the newer program that wrote it", current, target)}
	}
	if current == target {
		return nil
	}
	_, err = p.Up(ctx)
	return err
}
