package ledger

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Limits of what one process takes on. Beyond them calls are refused as busy:
// nothing is done, and the same call can be made again.
const (
	maxFlights = 4096
	maxWaiters = 256 // per flight
)

// A flight is the work on one call. Equal calls that come meanwhile wait for it and
// get its result: the ledger is asked once, and they are told at once.
type flight struct {
	landed    chan struct{}
	operation atomic.Pointer[Operation] // as soon as there is one
	answer    Answer
	err       error
	waiters   int
}

// flights are the calls this process works on.
type flights struct {
	mu    sync.Mutex
	byKey map[flightKey]*flight
}

type flightKey struct {
	key         Key // or the base key
	fingerprint Hash
	content     Hash // set where the content decides too, whether it is a repeat
}

// board returns the flight for a call, and whether the caller has to fly it.
func (fs *flights) board(k flightKey) (f *flight, leads bool, refusal *Refusal) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f = fs.byKey[k]; f != nil {
		if f.waiters >= maxWaiters {
			return nil, false, busy("Many calls already wait for this operation.")
		}
		f.waiters++
		return f, false, nil
	}
	if len(fs.byKey) >= maxFlights {
		return nil, false, busy("The server works on as many operations as it can.")
	}
	if fs.byKey == nil {
		fs.byKey = make(map[flightKey]*flight)
	}
	f = &flight{landed: make(chan struct{})}
	fs.byKey[k] = f
	return f, true, nil
}

// fly does the work and tells all who wait. A panic is a bug, and its text stays
// here: callers learn that the outcome is open.
func (fs *flights) fly(k flightKey, f *flight, work func() (Answer, error)) {
	defer func() {
		if p := recover(); p != nil {
			f.err = fmt.Errorf("ledger: a panic during the call: %v", p)
		}
		fs.mu.Lock()
		delete(fs.byKey, k)
		fs.mu.Unlock()
		close(f.landed)
	}()
	f.answer, f.err = work()
}

// works counts what is under way, so that a server can end after it.
type works struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{}
}

// start reports whether new work may begin; each true is followed by one done.
func (w *works) start() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.n++
	}
	return !w.closed
}

func (w *works) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.closed && w.n == 0 {
		close(w.idle)
	}
}

func (w *works) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// close lets nothing new begin; the channel is closed once nothing is under way.
func (w *works) close() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed, w.idle = true, make(chan struct{})
		if w.n == 0 {
			close(w.idle)
		}
	}
	return w.idle
}

func busy(why string) *Refusal {
	return &Refusal{Code: Busy, Message: why + " Nothing was done by this call; make it again in a moment.", RetryAfter: 1e9}
}

func shuttingDown() *Refusal {
	return &Refusal{Code: ShuttingDown, Message: "The server is ending and starts nothing new. Nothing was done; the same call can be made again."}
}
