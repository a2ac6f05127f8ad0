//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// A turn is the lock beside the database by which processes take turns to write. SQLite's own
// lock is polled by those who wait, and some of them never get it. The file stays open:
// opening it each time takes longer than locking. The system drops the lock of a
// process that dies.
type turn struct {
	file *os.File
	fd   int
}

func openTurn(path string) (*turn, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &turn{f, int(f.Fd())}, nil
}

func (t *turn) lock() error   { return t.flock(syscall.LOCK_EX) }
func (t *turn) unlock() error { return t.flock(syscall.LOCK_UN) }
func (t *turn) close() error  { return t.file.Close() }

func (t *turn) flock(how int) error {
	for {
		if err := syscall.Flock(t.fd, how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
