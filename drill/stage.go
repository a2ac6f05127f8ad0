package drill

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers/sandbox"
)

// A stage is where one scenario is played: its provider, its servers, and what was seen.
type stage struct {
	*run
	rules   ledger.Rules
	name    string // of the scenario, and so of all that it does
	dir     string
	outside *outside
	servers []*server
	first   *server

	before func(attempt int)               // of outside
	travel func(attempt int) time.Duration // of outside

	mu     sync.Mutex
	calls  int
	begun  time.Time
	alarms map[string][]string // by operation

	story      []string // what happened, where the history doesn't say it
	asked      string   // a person, by the scenario's nature
	knownAfter time.Duration
	problems   []string
}

// A run is what the scenarios of one action type share.
type run struct {
	world   World
	subject Subject
	store   ledger.Store
	clock   *clock
	secret  ledger.Secret
	sealer  *ledger.Sealer
	played  int
}

func newRun(ctx context.Context, w World, s Subject) (*run, error) {
	r := &run{world: w, subject: s, clock: newClock(w.Zone)}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	var err error
	if r.secret, err = ledger.NewSecret(key); err != nil {
		return nil, err
	}
	if r.sealer, err = ledger.NewSealer(key); err != nil {
		return nil, err
	}
	r.store, err = w.Open(ctx, s.Action)
	return r, err
}

func (r *run) stage() (*stage, error) {
	r.played++
	r.clock.nextNoon()
	dir, err := os.MkdirTemp(r.world.Dir, "provider-")
	if err != nil {
		return nil, err
	}
	return &stage{run: r, rules: r.subject.Policy.Rules, dir: dir, name: fmt.Sprintf("drill-%d", r.played), alarms: map[string][]string{}}, nil
}

// open opens the provider with its faults, and starts the first server.
func (st *stage) open(ctx context.Context, kinds ...sandbox.FaultKind) (err error) {
	faults := make([]sandbox.Fault, len(kinds))
	for i, kind := range kinds {
		faults[i] = sandbox.Fault{Action: st.subject.Action, Kind: kind, Count: 1}
	}
	return st.openWith(ctx, faults)
}

func (st *stage) openWith(ctx context.Context, faults []sandbox.Fault) (err error) {
	kill := func() { st.first.line.dead.Store(true) }
	if st.outside, err = openOutside(ctx, st.dir, st.subject, st.clock, faults, kill); err != nil {
		return err
	}
	st.outside.before, st.outside.travel = st.before, st.travel
	st.first, err = st.another(ctx)
	return err
}

// close ends the servers and throws the provider away.
func (st *stage) close(ctx context.Context) error {
	var errs []error
	for i, v := range st.servers {
		if v.ledger != nil {
			errs = append(errs, v.ledger.Drain(ctx))
		}
		if i > 0 {
			errs = append(errs, v.line.Store.Close())
		}
	}
	if st.outside != nil {
		st.outside.close()
	}
	return errors.Join(append(errs, os.RemoveAll(st.dir))...)
}

func (st *stage) hear(a ledger.Alarm) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.alarms[a.OperationID] = append(st.alarms[a.OperationID], a.Kind)
}

// heard reports whether an alarm was raised about an operation.
func (st *stage) heard(operation, kind string) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Contains(st.alarms[operation], kind)
}

// ordinary is the scenario's call.
func (st *stage) ordinary() call {
	o := st.subject.plain()
	o.name = st.name
	return st.about(o)
}

// about is a call for an order, in a workflow of the scenario's own.
func (st *stage) about(o order) call {
	return call{order: o, workflow: st.name, run: st.name, object: o.name}
}

// must notes a promise that isn't kept.
func (st *stage) must(kept bool, problem string, args ...any) {
	if !kept {
		st.problems = append(st.problems, fmt.Sprintf(problem, args...))
	}
}

// tell notes what happened, where the operation's own history isn't the point.
func (st *stage) tell(text string, args ...any) {
	st.story = append(st.story, fmt.Sprintf(text, args...))
}

// found are the scenario's operations, oldest first.
func (st *stage) found(ctx context.Context) ([]ledger.Operation, error) {
	all, err := st.reader().Find(ctx, ledger.Filter{WorkflowID: st.name})
	if err != nil {
		return nil, err
	}
	more, err := st.reader().Find(ctx, ledger.Filter{WorkflowID: st.elsewhere()})
	return append(all, more...), err
}

// elsewhere is another workflow of the scenario.
func (st *stage) elsewhere() string { return st.name + "-elsewhere" }

var drillmaster = ledger.Person{By: "drill", Reason: "a rehearsal"}
