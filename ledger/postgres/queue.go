package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/onceward/onceward/ledger"
)

const (
	// lanes is how many transactions write at the same time: while one waits for its commit, the
	// next is made ready. More of them make each smaller, and win nothing.
	lanes = 2
	// maxBatch bounds what shares a transaction, so that nobody waits long for the others.
	maxBatch = 128
)

// A queue makes concurrent writes share transactions. Whoever finds a lane free leads: it
// takes up the work of all who wait, its own with it, and commits that as one. Then the
// next in line leads, so that nobody serves others for ever. A lone caller just commits.
//
// A caller's context bounds its waiting for the turn, and nothing else: if it ends
// before the work was taken up, nothing is written; after that the caller gets the result.
type queue struct {
	// commit does a batch's work as one transaction and sets the err of every task in it.
	commit func(batch []*task)

	mu      sync.Mutex
	idle    sync.Cond // signalled when nobody leads any more
	waiting []*task   // in the order of arrival
	leaders int
	closed  bool
}

// errUnfinished is what a batch gets whose leader didn't come to its end.
var errUnfinished = fmt.Errorf("ledger/postgres: the transaction was left unfinished: %w", ledger.ErrCommitLost)

// A task is one caller's work.
type task struct {
	change
	err  error
	wake chan bool // true: lead; false: it is done
	lead bool      // it was told to lead, and may not have heard of it yet
}

// write returns when c is durable, or certainly or possibly isn't.
func (q *queue) write(ctx context.Context, c *change) error {
	t := &task{change: *c, wake: make(chan bool, 1)}
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
		q.serve(t)
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
	if q.leaders == lanes {
		return false, nil
	}
	q.leaders++
	t.lead = true
	return true, nil
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
func (q *queue) serve(leader *task) {
	batch := q.take(leader)
	done := false
	defer func() {
		if !done {
			fail(batch, errUnfinished)
		}
		for _, t := range batch {
			if t != leader {
				t.wake <- false
			}
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.pass()
	}()
	q.commit(batch)
	done = true
}

// take takes up the work of those who wait, but of no other leader.
func (q *queue) take(leader *task) []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := []*task{leader}
	var left []*task
	for _, t := range q.waiting {
		switch {
		case t == leader:
		case !t.lead && len(batch) < maxBatch:
			batch = append(batch, t)
		default:
			left = append(left, t)
		}
	}
	q.waiting = left
	return batch
}

// pass gives the lead to the first in line who hasn't got one. q.mu is held.
func (q *queue) pass() {
	for _, t := range q.waiting {
		if !t.lead {
			t.lead = true
			t.wake <- true
			return
		}
	}
	q.leaders--
	if q.leaders == 0 {
		q.idle.Broadcast()
	}
}

// close lets nobody enter any more, and waits for those who did.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.leaders > 0 {
		q.idle.Wait()
	}
}

func fail(batch []*task, err error) {
	for _, t := range batch {
		t.err = err
	}
}
