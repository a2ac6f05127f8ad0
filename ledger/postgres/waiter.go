package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// moveLock is the first half of the advisory locks by which those who wait for operations say so:
// "Once" in ASCII. The second half is the hash of an operation's id. The trigger that notifies knows
// it, too.
const moveLock = 0x4F6E6365

const (
	listenAgain = time.Second          // the pause after the listening connection broke
	listenIdle  = 30 * time.Second     // how long it is kept when nobody waits, and goes unused before it is tried
	lockAgain   = 5 * time.Millisecond // the pause while an operation that somebody wants to wait for is being moved
)

// A listener hears of moves that other servers make. It has a connection of the pool only while
// somebody waits, and some time longer.
type listener struct {
	connect   func(context.Context) (*pgxpool.Conn, error)
	channel   string // of notifications
	roundTrip time.Duration

	mu      sync.Mutex
	waiters map[*waiter]bool
	changed chan struct{} // gets a value when waiters has changed
	running bool
	ending  context.Context
	end     context.CancelFunc
	done    sync.WaitGroup
}

// A waiter is one call of Moved. Told is set once its channel got the first value.
type waiter struct {
	operationID string
	moved       chan struct{}
	told        bool
}

func (w *waiter) wake() {
	select {
	case w.moved <- struct{}{}:
	default: // it has one already
	}
}

func newListener(connect func(context.Context) (*pgxpool.Conn, error), channel string, roundTrip time.Duration) *listener {
	l := &listener{connect: connect, channel: channel, roundTrip: roundTrip, waiters: map[*waiter]bool{}, changed: make(chan struct{}, 1)}
	l.ending, l.end = context.WithCancel(context.Background())
	return l
}

// Moved implements [ledger.Waiter]: the channel gets a value when the operation may have left
// "executing", be it on another server, and once when listening has begun, for it may have left
// before. stop ends it. A broken connection makes it late: whoever waits polls besides.
func (s *Store) Moved(operationID string) (moved <-chan struct{}, stop func()) {
	l, w := s.listener, &waiter{operationID: operationID, moved: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters[w] = true
	if !l.running && l.ending.Err() == nil {
		l.running = true
		l.done.Go(l.run)
	}
	l.signal()
	return w.moved, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiters, w)
		l.signal()
	}
}

func (l *listener) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// run listens until nobody has waited for a while, or the store is closed.
func (l *listener) run() {
	for {
		if err := l.listen(); err == nil {
			return
		}
		select {
		case <-l.ending.Done():
		case <-time.After(listenAgain):
		}
	}
}

// listen does so on one connection. That is closed at the end, which drops its locks.
func (l *listener) listen() error {
	pooled, err := l.connect(l.ending)
	if err != nil {
		if l.ending.Err() != nil {
			return nil
		}
		return err
	}
	conn := pooled.Hijack()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), l.roundTrip)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	held := locksHeld{conn: conn, roundTrip: l.roundTrip, ids: map[string]bool{}}
	if err := held.exec("LISTEN " + pgx.Identifier{l.channel}.Sanitize()); err != nil {
		return err
	}
	idleSince := time.Now()
	for {
		wanted, last := l.wanted(idleSince)
		if last {
			return nil
		}
		if len(wanted) > 0 {
			idleSince = time.Now()
		}
		missing, err := held.follow(wanted)
		if err != nil {
			return err
		}
		l.wake(func(w *waiter) bool {
			first := held.ids[w.operationID] && !w.told
			w.told = w.told || first
			return first
		})
		pause := listenIdle
		if missing {
			pause = lockAgain
		}
		heard, err := l.hear(conn, pause)
		if err != nil {
			return err
		}
		if heard != "" {
			l.wake(func(w *waiter) bool { return w.operationID == heard })
		}
	}
}

// wanted is the operations that somebody waits for. If there has been none for long, the
// listening ends.
func (l *listener) wanted(idleSince time.Time) (ids map[string]bool, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids = map[string]bool{}
	for w := range l.waiters {
		ids[w.operationID] = true
	}
	if l.ending.Err() != nil || len(ids) == 0 && time.Since(idleSince) >= listenIdle {
		l.running = false
		return nil, true
	}
	return ids, false
}

func (l *listener) wake(which func(*waiter) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.waiters {
		if which(w) {
			w.wake()
		}
	}
}

// hear waits for a notification, for somebody who comes or goes, or until the pause is over.
func (l *listener) hear(conn *pgx.Conn, pause time.Duration) (operationID string, err error) {
	ctx, cancel := context.WithTimeout(l.ending, pause)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-l.changed:
			cancel()
		case <-ctx.Done():
		}
	})
	n, err := conn.WaitForNotification(ctx)
	cancel()
	watching.Wait()
	switch {
	case err == nil:
		return n.Payload, nil
	case conn.IsClosed():
		return "", err
	}
	return "", nil
}

func (l *listener) close() {
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	l.done.Wait()
}

// locksHeld are the locks that tell who moves an operation that somebody waits for it.
type locksHeld struct {
	conn      *pgx.Conn
	roundTrip time.Duration
	ids       map[string]bool
}

// follow takes and gives back locks, and says whether one is missing: whoever is just moving that
// operation has it, until its commit.
func (h *locksHeld) follow(wanted map[string]bool) (missing bool, err error) {
	var b pgx.Batch
	for id := range h.ids {
		if !wanted[id] {
			b.Queue(`SELECT pg_advisory_unlock_shared($1, hashtext($2))`, moveLock, id)
			delete(h.ids, id)
		}
	}
	for id := range wanted {
		if !h.ids[id] {
			b.Queue(`SELECT pg_try_advisory_lock_shared($1, hashtext($2))`, moveLock, id).QueryRow(func(row pgx.Row) error {
				var got bool
				err := row.Scan(&got)
				if got {
					h.ids[id] = true
				}
				missing = missing || !got
				return err
			})
		}
	}
	if b.Len() == 0 {
		return false, h.exec("") // is it still there?
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.roundTrip)
	defer cancel()
	return missing, h.conn.SendBatch(ctx, &b).Close()
}

func (h *locksHeld) exec(query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), h.roundTrip)
	defer cancel()
	_, err := h.conn.Exec(ctx, query)
	return err
}
