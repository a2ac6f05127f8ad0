package sqlite

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/onceward/onceward/ledger"
)

// A queue makes concurrent writes share a transaction. Whoever arrives first leads: it
// takes up the work of all who wait, its own with it, and commits that as one. Then the
// next in line leads, so that nobody serves others for ever. A lone caller just commits.
//
// A caller's context bounds its waiting for the turn, and nothing else: if it ends
// before the work was taken up, nothing is written; after that the caller gets the result.
type queue struct {
	// commit does a batch's work as one transaction and sets the err of every task
	// in it. It calls take once everything is ready to begin.
	commit func(take func() []*task)

	mu      sync.Mutex
	idle    sync.Cond // signalled when nobody leads any more
	waiting []*task   // in the order of arrival; one of them leads, or is about to
	led     bool
	closed  bool
}

// errUnfinished is what a batch gets whose leader didn't come to its end.
var errUnfinished = fmt.Errorf("ledger/sqlite: the transaction was left unfinished: %w", ledger.ErrCommitLost)

// A task is one caller's work.
type task struct {
	work work
	err  error
	wake chan bool // true: lead; false: it is done
	lead bool      // it was told to lead, and may not have heard of it yet
}

// Work is what is done within the transaction. What it returns is not an answer before
// the transaction is committed.
type work interface{ do(w *writer) error }

// write returns when t's work is durable, or certainly or possibly isn't.
func (q *queue) write(ctx context.Context, w work) error {
	t := &task{work: w, wake: make(chan bool, 1)}
	leads, err := q.enter(ctx, t)
	if err != nil {
		return err
	}
	if !leads {
		select {
		case leads = <-t.wake:
		case <-ctx.Done():
			if q.leave(t) {
				return ctx.Err()
			}
			leads = <-t.wake
		}
	}
	if leads {
		q.serve()
	}
	return t.err
}

// enter puts t in line, and says whether it leads.
func (q *queue) enter(ctx context.Context, t *task) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, ErrClosed
	}
	q.waiting = append(q.waiting, t)
	if q.led {
		return false, nil
	}
	q.led, t.lead = true, true
	return true, nil
}

// tryLead takes the lead if nobody has it. Whoever got it passes it on with yield.
func (q *queue) tryLead() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.led || q.closed {
		return false
	}
	q.led = true
	return true
}

// yield passes the lead on.
func (q *queue) yield() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass()
}

// leave takes t out of the line, if its work wasn't taken up. One that was to lead
// leaves that to the next.
func (q *queue) leave(t *task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, t)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if t.lead {
		q.pass()
	}
	return true
}

// serve commits one batch, tells those who wait for it, and passes the lead on. A panic
// on the way ends the leader, and leaves nobody without an answer.
func (q *queue) serve() {
	var batch []*task
	done := false
	defer func() {
		if !done {
			batch = append(batch, q.take()...)
			fail(batch, errUnfinished)
		}
		for _, t := range batch {
			if !t.lead {
				t.wake <- false
			}
		}
		q.yield()
	}()
	q.commit(func() []*task {
		batch = q.take()
		return batch
	})
	done = true
}

// take takes up the work of all who wait.
func (q *queue) take() []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.waiting
	q.waiting = nil
	return batch
}

// pass gives the lead to the first in line. q.mu is held.
func (q *queue) pass() {
	if len(q.waiting) == 0 {
		q.led = false
		q.idle.Broadcast()
		return
	}
	next := q.waiting[0]
	next.lead = true
	next.wake <- true
}

// close lets nobody enter any more, and waits for those who did.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.led {
		q.idle.Wait()
	}
}
