package torture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

var (
	errDead = errors.New("this process is no more")
	errDisk = errors.New("the disk is full")
	errCut  = errors.New("the database can't be reached")
)

// A breakage is what happens at one of a server's durable writes.
type breakage struct {
	At  int // the n-th write, from 1
	How string
	D   time.Duration // of a pause
}

// breakages are what can happen at a durable boundary.
var breakages = []string{"error-before", "error-after", "die-before", "die-after", "pause-before", "pause-after"}

// A server is one process: a Ledger on the world's store. It can die, stand still, lose the
// database, and have a wrong clock.
type server struct {
	*ledger.Ledger
	w        *world
	n        int
	dead     atomic.Bool
	frozen   atomic.Int64 // until then nothing of it moves, in nanoseconds of Unix time
	cut      atomic.Int64 // until then it can't reach the database
	off      atomic.Int64 // how far its clock is ahead
	hesitate atomic.Int64 // how long it stands still between a decision and its write

	mu     sync.Mutex
	writes int
	breaks []breakage
}

func (w *world) launch(n int, breaks []breakage) *server {
	s := &server{w: w, n: n, breaks: breaks}
	s.off.Store(int64(w.offsets[n]))
	sealer, err := ledger.NewSealer([]byte("a seal key for tests"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.launched++
	actors, rules := map[string]ledger.Actor{}, map[string]ledger.Rules{}
	for _, action := range actions {
		actors[action], _ = providers.Actor("model", "scope-1", action, desk{w.model, s})
		rules[action] = w.rules()
	}
	s.Ledger = &ledger.Ledger{
		Store: mortal{s}, Sealer: sealer, Audit: w.audit, Actors: actors, Rules: rules,
		Policy: ledger.Policy{MaxAttempts: 4, MaxChecks: 3, AnswerWithin: w.plot.Patient},
		Owner:  fmt.Sprintf("server-%d-%d", n, w.launched), Log: slog.New(slog.DiscardHandler), NewID: w.newID,
		Now:   func() time.Time { return w.now().Add(time.Duration(s.off.Load())) },
		Alarm: func(ledger.Alarm) { w.tally.alarms.Add(1) },
	}
	if w.plot.Clocked {
		s.Store = clocked{mortal{s}}
	}
	return s
}

func (s *server) die() {
	if s.dead.CompareAndSwap(false, true) {
		s.w.tally.kills.Add(1)
		s.w.trace("server %d dies", s.n)
	}
}

// freeze stops the whole process for a time.
func (s *server) freeze(d time.Duration) {
	s.frozen.Store(s.w.now().Add(d).UnixNano())
	s.w.tally.pauses.Add(1)
}

// stand waits while the process is stopped.
func (s *server) stand() {
	for {
		left := s.frozen.Load() - s.w.now().UnixNano()
		if left <= 0 {
			return
		}
		s.w.sleep(time.Duration(left))
	}
}

// reach is what stands between a process and its database.
func (s *server) reach() error {
	s.stand()
	if s.dead.Load() {
		return errDead
	}
	if s.w.now().UnixNano() < s.cut.Load() {
		return errCut
	}
	return nil
}

// boundary is what happens at the next durable write.
func (s *server) boundary() (b breakage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if i := slices.IndexFunc(s.breaks, func(b breakage) bool { return b.At == s.writes }); i >= 0 {
		b = s.breaks[i]
		s.w.fired(s.n)
	}
	return b
}

// breakNext makes something happen at the next durable write.
func (s *server) breakNext(how string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaks = append(s.breaks, breakage{s.writes + 1, how, d})
}

func (s *server) before(b breakage) error {
	switch b.How {
	case "error-before":
		return errDisk
	case "die-before":
		s.die()
		return errDead
	case "pause-before":
		s.freeze(b.D)
		s.stand()
		if s.dead.Load() {
			return errDead
		}
	}
	return nil
}

func (s *server) after(b breakage, m ledger.Move) error {
	s.w.committed(m)
	switch b.How {
	case "error-after":
		return fmt.Errorf("lost: %w", ledger.ErrCommitLost)
	case "die-after":
		s.die()
		return fmt.Errorf("%w: %w", errDead, ledger.ErrCommitLost)
	case "pause-after":
		s.freeze(b.D)
		s.stand()
	}
	return nil
}

// store is the server's way to the database, and tells the clock that somebody is at work.
func (s *server) store() ledger.Store { return s.w.stores[s.n%len(s.w.stores)] }

// A mortal store is the store as one process reaches it.
type mortal struct{ s *server }

// A clocked one can tell that the process's clock is wrong.
type clocked struct{ mortal }

var (
	_ ledger.Store   = mortal{}
	_ ledger.Clocked = clocked{}
)

func (c clocked) ClockSkew(context.Context) (time.Duration, error) {
	return -time.Duration(c.s.off.Load()), c.s.reach()
}

func (m mortal) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	if err := m.s.reach(); err != nil {
		return err
	}
	var b breakage
	var move ledger.Move
	met := false
	err := m.s.store().Begin(ctx, sought, func(found ledger.Found) (_ ledger.Move, err error) {
		if move, err = decide(found); err != nil || move.IsZero() || met {
			return move, err
		}
		met = true
		b = m.s.boundary()
		if d := time.Duration(m.s.hesitate.Swap(0)); d > 0 {
			m.s.w.sleep(d)
		}
		return move, m.s.before(b)
	})
	if err != nil || move.IsZero() {
		return err
	}
	return m.s.after(b, move)
}

func (m mortal) Record(ctx context.Context, move ledger.Move) error {
	if err := m.s.reach(); err != nil {
		return err
	}
	b := m.s.boundary()
	if err := m.s.before(b); err != nil {
		return err
	}
	if err := m.s.store().Record(ctx, move); err != nil {
		return err
	}
	return m.s.after(b, move)
}

func (m mortal) Find(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	if err := m.s.reach(); err != nil {
		return nil, err
	}
	return m.s.store().Find(ctx, f)
}

func (m mortal) Sealed(ctx context.Context, id string) ([]byte, error) {
	if err := m.s.reach(); err != nil {
		return nil, err
	}
	return m.s.store().Sealed(ctx, id)
}

func (m mortal) History(ctx context.Context, id string) ([]ledger.Transition, error) {
	if err := m.s.reach(); err != nil {
		return nil, err
	}
	return m.s.store().History(ctx, id)
}

func (m mortal) Prune(ctx context.Context, what ledger.Prunable, bury func(ledger.Operation, []ledger.Transition) ledger.Operation) (int, error) {
	if err := m.s.reach(); err != nil {
		return 0, err
	}
	return m.s.store().Prune(ctx, what, bury)
}

func (m mortal) Remember(ctx context.Context, name string, value []byte) ([]byte, error) {
	if err := m.s.reach(); err != nil {
		return nil, err
	}
	return m.s.store().Remember(ctx, name, value)
}

func (m mortal) Recall(ctx context.Context, name string) ([]byte, error) {
	if err := m.s.reach(); err != nil {
		return nil, err
	}
	return m.s.store().Recall(ctx, name)
}

func (m mortal) Usage(ctx context.Context, buckets []string) (map[string]int64, error) {
	if err := m.s.reach(); err != nil {
		return nil, err
	}
	return m.s.store().Usage(ctx, buckets)
}

func (m mortal) Close() error { return nil }
