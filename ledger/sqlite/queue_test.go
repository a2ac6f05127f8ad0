package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// A label is work that only has a name.
type label string

func (label) do(*writer) error { return nil }

// A station is a queue whose commits are stopped and let go by the test.
type station struct {
	queue
	begun   chan struct{} // a leader has come, and waits to take up work
	proceed chan error    // what its commit shall come to

	mu      sync.Mutex
	batches [][]string
}

func newStation() *station {
	s := &station{begun: make(chan struct{}), proceed: make(chan error)}
	s.idle.L = &s.queue.mu
	s.commit = func(take func() []*task) {
		s.begun <- struct{}{}
		err := <-s.proceed
		var names []string
		for _, t := range take() {
			names = append(names, string(t.work.(label)))
			t.err = err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.batches = append(s.batches, names)
	}
	return s
}

// send writes in another goroutine, and returns once the work is in line. Its result
// comes later.
func (s *station) send(ctx context.Context, name string) <-chan error {
	result := make(chan error, 1)
	go func() { result <- s.write(ctx, label(name)) }()
	for !s.inLine(name) {
		select {
		case err := <-result:
			result <- err
			return result
		default:
		}
	}
	return result
}

func (s *station) inLine(name string) bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return slices.ContainsFunc(s.waiting, func(t *task) bool { return t.work == label(name) })
}

func TestQueueSharesCommitsAndPassesTheLeadOn(t *testing.T) {
	t.Parallel()
	s := newStation()
	var results []<-chan error
	first := s.send(t.Context(), "a")
	<-s.begun
	results = append(results, first, s.send(t.Context(), "b"), s.send(t.Context(), "c")) // in time for a's commit
	s.proceed <- nil
	for _, r := range results {
		if err := <-r; err != nil {
			t.Errorf("write = %v, want nil", err)
		}
	}
	alone := s.send(t.Context(), "d") // nobody leads by now
	<-s.begun
	s.proceed <- nil
	if err := <-alone; err != nil {
		t.Errorf("write = %v, want nil", err)
	}
	if diff := cmp.Diff([][]string{{"a", "b", "c"}, {"d"}}, s.batches); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestQueueTellsEachOfAFailure(t *testing.T) {
	t.Parallel()
	s := newStation()
	a := s.send(t.Context(), "a")
	<-s.begun
	b := s.send(t.Context(), "b")
	broken := errors.New("broken")
	s.proceed <- broken
	for name, r := range map[string]<-chan error{"a": a, "b": b} {
		if err := <-r; !errors.Is(err, broken) {
			t.Errorf("write of %s = %v, want %v", name, err, broken)
		}
	}
}

func TestQueueCallerThatLeavesBeforeItsTurnWritesNothing(t *testing.T) {
	t.Parallel()
	s := newStation()
	a := s.send(t.Context(), "a")
	<-s.begun
	ctx, cancel := context.WithCancel(t.Context())
	b := s.send(ctx, "b")
	c := s.send(t.Context(), "c")
	cancel()
	if err := <-b; !errors.Is(err, context.Canceled) {
		t.Errorf("write of one that left = %v, want context.Canceled", err)
	}
	s.proceed <- nil
	if err := errors.Join(<-a, <-c); err != nil {
		t.Errorf("write of those who stayed = %v, want nil", err)
	}
	if diff := cmp.Diff([][]string{{"a", "c"}}, s.batches); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestQueueCallerThatLeavesAfterItsWorkWasTakenUpGetsTheResult(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	taken, proceed := make(chan struct{}), make(chan struct{})
	q := &queue{}
	q.idle.L = &q.mu
	q.commit = func(take func() []*task) {
		if len(take()) == 2 {
			close(taken)
			<-proceed
		}
	}
	// Lead by hand, so that both are taken up by the next leader.
	q.tryLead()
	results := make(chan error, 2)
	for _, name := range []string{"a", "b"} {
		go func() { results <- q.write(ctx, label(name)) }()
	}
	for inLine := 0; inLine < 2; {
		q.mu.Lock()
		inLine = len(q.waiting)
		q.mu.Unlock()
	}
	q.yield()
	<-taken
	cancel()
	close(proceed)
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("write = %v, want the result of what was done", err)
		}
	}
}

func TestQueueOneThatWasToLeadAndLeavesPassesTheLeadOn(t *testing.T) {
	t.Parallel()
	q := &queue{}
	q.idle.L = &q.mu
	q.tryLead()
	a, b := &task{wake: make(chan bool, 1)}, &task{wake: make(chan bool, 1)}
	for _, task := range []*task{a, b} {
		if leads, err := q.enter(t.Context(), task); leads || err != nil {
			t.Fatalf("enter = %v, %v; want to wait", leads, err)
		}
	}
	q.yield()
	if !<-a.wake {
		t.Fatal("the first in line was told that it is done")
	}
	if !q.leave(a) {
		t.Fatal("a couldn't leave, though nobody took up its work")
	}
	if !<-b.wake {
		t.Error("the lead was not passed on to b")
	}
	if !q.leave(b) || q.led {
		t.Error("all have left, and the queue is led all the same")
	}
}

func TestQueuePanicOfALeaderLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	q := &queue{}
	q.idle.L = &q.mu
	begun, proceed := make(chan struct{}), make(chan struct{})
	q.commit = func(take func() []*task) {
		if begun != nil {
			close(begun)
			begun = nil
			<-proceed
			panic("a bug")
		}
		take()
	}
	started := begun
	leader := make(chan any, 1)
	go func() {
		defer func() { leader <- recover() }()
		_ = q.write(t.Context(), label("a"))
	}()
	<-started
	follower := make(chan error, 1)
	go func() { follower <- q.write(t.Context(), label("b")) }()
	for inLine := 0; inLine < 2; {
		q.mu.Lock()
		inLine = len(q.waiting)
		q.mu.Unlock()
	}
	close(proceed)
	if p := <-leader; p == nil {
		t.Error("the leader's panic was swallowed")
	}
	if err := <-follower; !errors.Is(err, ledger.ErrCommitLost) {
		t.Errorf("write of the follower = %v, want ErrCommitLost", err)
	}
	if err := q.write(t.Context(), label("c")); err != nil {
		t.Errorf("the next write = %v, want nil", err)
	}
}

func TestQueueClosesAfterTheWritesUnderWay(t *testing.T) {
	t.Parallel()
	s := newStation()
	a := s.send(t.Context(), "a")
	<-s.begun
	closed := make(chan struct{})
	go func() { defer close(closed); s.close() }()
	for refused := false; !refused; {
		s.queue.mu.Lock()
		refused = s.closed
		s.queue.mu.Unlock()
	}
	if err := s.write(t.Context(), label("b")); !errors.Is(err, ErrClosed) {
		t.Errorf("write = %v, want ErrClosed", err)
	}
	select {
	case <-closed:
		t.Error("it closed with a write under way")
	default:
	}
	s.proceed <- nil
	if err := <-a; err != nil {
		t.Errorf("write = %v, want nil", err)
	}
	<-closed
}

func TestQueueManyCallers(t *testing.T) {
	t.Parallel()
	q := &queue{}
	q.idle.L = &q.mu
	var done []string // guarded by the lead
	q.commit = func(take func() []*task) {
		for _, t := range take() {
			done = append(done, string(t.work.(label)))
		}
	}
	var wg sync.WaitGroup
	var want []string
	for i := range 50 {
		for j := range 20 {
			want = append(want, fmt.Sprintf("%d-%d", i, j))
		}
		wg.Go(func() {
			for j := range 20 {
				if err := q.write(t.Context(), label(fmt.Sprintf("%d-%d", i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	q.close()
	slices.Sort(done)
	slices.Sort(want)
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("work done (-want +got):\n%s", diff)
	}
}
