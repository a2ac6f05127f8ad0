package torture

import (
	"context"
	"sync"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A simulated clock is for stores that wait for other processes, which no bubble can hold. It is
// moved on when nobody has done anything for a moment of real time. Should somebody only have been
// slow, the schedule is another one, and no less possible.
type simulated struct {
	work sync.WaitGroup

	mu       sync.Mutex
	at       time.Time
	sleepers []sleeper
	inside   int       // calls of a store that are under way
	moved    time.Time // when somebody did something last, in real time
}

type sleeper struct {
	at   time.Time
	wake chan struct{}
}

// stillness is how long nobody does anything when all wait; impatience is how long a call may
// wait for what only the clock can bring, both in real time.
const (
	stillness  = 3 * time.Millisecond
	impatience = 100 * time.Millisecond
)

func newSimulated() *simulated {
	return &simulated{at: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), moved: time.Now()}
}

func (c *simulated) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *simulated) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	c.mu.Lock()
	s := sleeper{c.at.Add(d), make(chan struct{})}
	c.sleepers = append(c.sleepers, s)
	c.mu.Unlock()
	<-s.wake
}

func (c *simulated) run(work func()) {
	c.touch(0)
	c.work.Go(work)
}

// touch notes that somebody does something.
func (c *simulated) touch(inside int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside += inside
	c.moved = time.Now()
}

// settle waits until nobody does anything.
func (c *simulated) settle() {
	for {
		c.mu.Lock()
		left := stillness - time.Since(c.moved)
		if c.inside > 0 {
			left = stillness
		}
		c.mu.Unlock()
		if left <= 0 {
			return
		}
		<-time.After(left)
	}
}

// advance moves the clock to the next sleeper's time, at most to until, and wakes that one.
func (c *simulated) advance(until time.Time) (woke bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := -1
	for i, s := range c.sleepers {
		if !s.at.After(until) && (next < 0 || s.at.Before(c.sleepers[next].at)) {
			next = i
		}
	}
	if next < 0 {
		return false
	}
	s := c.sleepers[next]
	c.sleepers = append(c.sleepers[:next], c.sleepers[next+1:]...)
	if s.at.After(c.at) {
		c.at = s.at
	}
	c.moved = time.Now()
	close(s.wake)
	return true
}

func (c *simulated) pass(d time.Duration) {
	until := c.now().Add(d)
	for c.settle(); c.advance(until); c.settle() {
	}
	c.mu.Lock()
	c.at = until
	c.mu.Unlock()
}

func (c *simulated) await(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(stillness):
		}
		c.settle()
		select {
		case <-done:
			return
		default:
			c.advance(c.now().Add(1000 * time.Hour))
		}
	}
}

func (c *simulated) finish() {
	done := make(chan struct{})
	go func() { defer close(done); c.work.Wait() }()
	c.await(done)
}

// A watched store tells the clock when it is at work.
type watched struct {
	ledger.Store
	clock *simulated
}

func (s watched) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	s.clock.touch(1)
	defer s.clock.touch(-1)
	return s.Store.Begin(ctx, sought, func(f ledger.Found) (ledger.Move, error) {
		s.clock.touch(-1) // a decision may stand still
		defer s.clock.touch(1)
		return decide(f)
	})
}

func (s watched) Record(ctx context.Context, m ledger.Move) error {
	s.clock.touch(1)
	defer s.clock.touch(-1)
	return s.Store.Record(ctx, m)
}

func (s watched) Find(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	s.clock.touch(1)
	defer s.clock.touch(-1)
	return s.Store.Find(ctx, f)
}

func (s watched) Sealed(ctx context.Context, id string) ([]byte, error) {
	s.clock.touch(1)
	defer s.clock.touch(-1)
	return s.Store.Sealed(ctx, id)
}
