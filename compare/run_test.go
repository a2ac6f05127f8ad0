package compare_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
)

// A world is what servers of one kind share: the bank and the time.
type world struct {
	bank  *bank
	clock *ledgertest.Clock
}

func newWorld(t testing.TB) world {
	return world{newBank(t), ledgertest.NewClock(time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC))}
}

// told is what a call's agent gets to hear; empty if its server died. Done is the only word
// that is the same everywhere.
type told string

const done told = "succeeded"

// A process is a server that guards refunds in one of the ways. Its state is in a file.
type process interface {
	// refund's error is one of the test itself. What the agent hears is told.
	refund(ctx context.Context, c call) (told, error)
	close(t testing.TB)
}

// A way is one of those to name an action.
type way struct {
	name string
	open func(t testing.TB, folder string, w world) process
}

var ways = []way{
	{"raw-argument hash", func(t testing.TB, folder string, w world) process { return openKeyed(t, folder, w, rawArguments) }},
	{"position key", func(t testing.TB, folder string, w world) process { return openKeyed(t, folder, w, position) }},
	{"business operation id", func(t testing.TB, folder string, w world) process { return openGuarded(t, folder, w, ledger.Rules{}) }},
}

// A stage runs scripts, one after the other, in one world and on one file, as a server
// does that has been there for long.
type stage struct {
	testing.TB
	world
	way    way
	folder string

	serving []process // two of them
	dead    []process
	calls   sync.WaitGroup // those that wait in dead ones
}

func newStage(t testing.TB, w way) *stage {
	s := &stage{TB: t, world: newWorld(t), way: w, folder: t.TempDir()}
	s.serving = []process{w.open(t, s.folder, s.world), w.open(t, s.folder, s.world)}
	t.Cleanup(func() {
		for _, p := range s.serving {
			p.close(t)
		}
	})
	return s
}

// run plays a script and returns what was heard last of each action.
func (s *stage) run(sc script) map[int]told {
	heard := map[int]told{}
	s.bank.open(sc.payment, sc.amount)
	for _, turn := range sc.turns {
		switch {
		case turn.crash:
			heard[turn.calls[0].action] = s.crash(turn)
		case len(turn.calls) > 1:
			s.atOnce(turn) // each asks again later
		default:
			s.bank.arrange(turn.lost, nil)
			heard[turn.calls[0].action] = s.refund(s.serving[0], turn.calls[0])
		}
		s.clock.Advance(10 * time.Minute) // longer than any lease, claim or pause
	}
	s.bury()
	return heard
}

func (s *stage) refund(p process, c call) told {
	heard, err := p.refund(context.Background(), c)
	if err != nil {
		s.Errorf("%s: %v", s.way.name, err)
	}
	return heard
}

// atOnce makes calls at two processes. The bank does nothing until both are made.
func (s *stage) atOnce(t turn) {
	gate := make(chan struct{})
	s.bank.arrange(t.lost, gate)
	var made, answered sync.WaitGroup
	made.Add(len(t.calls))
	for i, c := range t.calls {
		answered.Go(func() {
			made.Done()
			s.refund(s.serving[i], c)
		})
	}
	made.Wait()
	close(gate)
	answered.Wait()
}

// crash makes a call in a process that is never heard of again once the bank has acted: it
// waits for an answer that doesn't come, and another process is started on its file. One
// that doesn't go to the bank answers, and is started anew all the same.
func (s *stage) crash(t turn) (heard told) {
	s.bank.arrange(t.lost, nil)
	p := s.serving[0]
	answer := make(chan told, 1)
	s.calls.Go(func() { answer <- s.refund(p, t.calls[0]) })
	select {
	case <-s.bank.held:
	case heard = <-answer:
	}
	s.dead = append(s.dead, p)
	s.serving[0] = s.way.open(s.TB, s.folder, s.world)
	return heard
}

// bury lets dead processes go, after all that counts has been counted: until then they
// hang, and write nothing.
func (s *stage) bury() {
	s.bank.release()
	s.calls.Wait()
	for _, p := range s.dead {
		p.close(s.TB)
	}
	s.dead = nil
}
