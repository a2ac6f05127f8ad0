//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package sqlite

import (
	"os"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// A turn is the lock beside the database by which processes take turns to write. SQLite's own
// lock is polled by those who wait, and some of them never get it.
type turn struct {
	mutex   *lockedfile.Mutex
	release func()
}

func openTurn(path string) (*turn, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &turn{mutex: lockedfile.MutexAt(path)}, f.Close()
}

func (t *turn) lock() (err error) {
	t.release, err = t.mutex.Lock()
	return err
}

func (t *turn) unlock() error {
	t.release()
	t.release = nil
	return nil
}

func (t *turn) close() error {
	if t.release != nil {
		t.release()
		t.release = nil
	}
	return nil
}
