package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
	"github.com/onceward/onceward/ledger/sqlite"
)

// Random schedules: two servers on one database, two operations, a provider with random
// promises that it keeps, and whatever else happens to them. What must hold after every step
// is in property_check_test.go.

// A plot is one random schedule. It is drawn as a whole, so that a failure prints it.
type plot struct {
	Key, Asked bool // what the provider can do
	Window     time.Duration
	Settle     time.Duration
	Lag        time.Duration
	Acts       [2][]string // what becomes of each operation's requests, in order; then it is honest
	Steps      []event
}

// An event is one step of a plot.
type event struct {
	Do string
	On int // which server
	Op int // which operation
	D  time.Duration
}

func (e event) String() string {
	if e.Do == "time passes" {
		return fmt.Sprintf("%v pass", e.D)
	}
	return fmt.Sprintf("%s, server %d, operation %d", e.Do, e.On, e.Op)
}

var propertyActs = map[string]act{
	"acts": acts, "loses the reply": losesReply, "loses the request": losesRequest, "acts late": actsLate,
	"unreachable": isUnreachable, "refuses": refuses, "acts and panics": actsAndPanics,
	"takes long": takes(deadline-time.Second, acts), "takes long and loses the reply": takes(deadline-time.Second, losesReply),
	"takes long and loses the request": takes(deadline-time.Second, losesRequest),
	"dies before it acts":              losesRequest, "dies after it acted": losesReply, // the server does; see apply
}

// propertyDangers are what becomes of a request, as often as each is drawn.
var propertyDangers = []string{
	"loses the reply", "loses the reply", "loses the request", "dies after it acted", "dies after it acted", "dies before it acts",
	"acts late", "unreachable", "refuses", "acts and panics", "acts",
	"takes long", "takes long and loses the reply", "takes long and loses the request",
}

// propertyEvents are the steps of a plot, as often as each is drawn.
var propertyEvents = []string{
	"the call", "the call", "the call", "a reworded call", "a changed call", "a call in the background",
	"sweep", "sweep", "sweep", "reconcile", "crash",
	"time passes", "time passes", "time passes", "time passes",
	"a person looks", "a person retries", "a person looks",
	"the next write fails", "the next write's answer is lost", "dies before the next write", "dies after the next write",
	"the next look-up fails",
}

var propertyTimes = []time.Duration{
	time.Second, 3 * time.Second, deadline, lease, lease + settle, lease + settle + lag, time.Minute, 40 * time.Minute, 25 * time.Hour,
}

func drawPlot(t *rapid.T) plot {
	someActs := rapid.SliceOfN(rapid.SampledFrom(propertyDangers), 1, 5)
	anEvent := rapid.Custom(func(t *rapid.T) event {
		return event{
			Do: rapid.SampledFrom(propertyEvents).Draw(t, "do"), On: rapid.IntRange(0, 1).Draw(t, "on"),
			Op: rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "op"), D: rapid.SampledFrom(propertyTimes).Draw(t, "d"),
		}
	})
	return plot{
		Key: rapid.Bool().Draw(t, "key"), Asked: rapid.Bool().Draw(t, "asked"),
		Window: rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "window"),
		Settle: rapid.SampledFrom([]time.Duration{settle, 2 * settle}).Draw(t, "settle"),
		Lag:    rapid.SampledFrom([]time.Duration{0, lag}).Draw(t, "lag"),
		Acts:   [2][]string{someActs.Draw(t, "acts"), someActs.Draw(t, "acts")},
		Steps:  rapid.SliceOfN(anEvent, 8, 40).Draw(t, "steps"),
	}
}

func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlot(rt)
		n++
		path := filepath.Join(dir, fmt.Sprintf("%d.db", n))
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = p.play(t, path) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// A stage is a plot being played.
type stage struct {
	*world
	plot    plot
	servers [2]*server
	used    [2]int    // how many of its acts each operation had
	told    [2]string // under which id a caller was told that it succeeded
	keys    [2]string // provider keys
	breaks  map[*server]*breakage
	vain    atomic.Bool // the next look-up fails
	wrong   string
	mu      sync.Mutex // of used and of plot.Acts: calls in the background read them
}

// play plays the plot, and says what went wrong, if anything did.
func (p plot) play(t *testing.T, path string) string {
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	traits := bothTraits()
	traits.Window, traits.Settle, traits.LookupLag = p.Window, p.Settle, p.Lag
	w := &world{T: t, store: store, provider: newProvider(traits), policy: ledger.Policy{MaxAttempts: 4, MaxChecks: 3}}
	w.provider.is(p.Key, p.Asked)
	defer w.provider.letGo()
	s := &stage{world: w, plot: p, breaks: map[*server]*breakage{}}
	for i := range s.keys {
		s.keys[i] = ledger.ProviderKey(strictly(opName(i), theArgs).Key, 0)
		s.servers[i] = s.launch()
	}
	for i, e := range p.Steps {
		s.take(e)
		synctest.Wait()
		s.check()
		if s.wrong != "" {
			return fmt.Sprintf("after step %d (%v): %s", i+1, e, s.wrong)
		}
	}
	s.finish()
	return s.wrong
}

func opName(i int) string { return string(rune('a' + i)) }

// launch starts a server whose requests meet the plot's acts.
func (s *stage) launch() *server {
	srv, breaks := s.start(), new(breakage)
	srv.failing.Before, srv.failing.After = breaks.before(srv), breaks.after(srv)
	s.breaks[srv] = breaks
	actor := srv.Actors["refund"]
	actor.Apply = func(ctx context.Context, a ledger.Attempt) ledger.Finding {
		if err := a.MaySend(); err != nil {
			return ledger.Finding{Verdict: ledger.NotSent, Code: "lease_over"}
		}
		i := slices.Index(s.keys[:], a.ProviderKey)
		name := s.nextAct(i)
		if name == "dies before it acts" || name == "dies after it acted" {
			srv.dead.Store(true)
		}
		return propertyActs[name](ctx, s.provider, a)
	}
	if honest := actor.Lookup; honest != nil {
		actor.Lookup = func(ctx context.Context, q ledger.Question) ledger.Finding {
			if s.vain.CompareAndSwap(true, false) {
				return unclear
			}
			return honest(ctx, q)
		}
	}
	srv.Actors = map[string]ledger.Actor{"refund": actor}
	return srv
}

// nextAct is what becomes of an operation's next request.
func (s *stage) nextAct(i int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.used[i]
	if n >= len(s.plot.Acts[i]) {
		return "acts"
	}
	s.used[i]++
	return s.plot.Acts[i][n]
}

// take does one step.
func (s *stage) take(e event) {
	srv, name := s.servers[e.On], opName(e.Op)
	if srv.dead.Load() {
		srv = s.launch()
		s.servers[e.On] = srv
	}
	switch e.Do {
	case "the call":
		s.hear(e.Op, srv, strictly(name, theArgs))
	case "a reworded call":
		s.hear(e.Op, srv, strictly(name, args{theArgs.amount, "reworded"}))
	case "a changed call":
		s.hear(e.Op, srv, strictly(name, args{"900.00", theArgs.note}))
	case "a call in the background":
		go func() { _, _ = srv.Execute(s.Context(), strictly(name, theArgs)) }()
	case "sweep":
		_ = srv.Sweep(s.Context()) // it may fail, when the store does
	case "reconcile":
		if op := s.find(e.Op); op != nil {
			_, _ = srv.Reconcile(s.Context(), op.ID)
		}
	case "crash":
		srv.dead.Store(true)
		s.servers[e.On] = s.launch()
	case "time passes":
		pass(e.D)
	case "a person looks":
		s.personLooks(e.Op, srv, ledger.Drop)
	case "a person retries":
		s.personLooks(e.Op, srv, ledger.Retry)
	case "the next look-up fails":
		s.vain.Store(true)
	default:
		s.breaks[srv].Store(e.Do)
	}
}

// A breakage is how a server's next write fails, or is its last; "" is not at all.
type breakage struct{ atomic.Value }

func (b *breakage) before(srv *server) func(ledgertest.Call) error {
	return func(c ledgertest.Call) error {
		writes := c.Method == "Begin" || c.Method == "Record"
		switch {
		case writes && b.CompareAndSwap("the next write fails", ""):
			return errDisk
		case writes && b.CompareAndSwap("dies before the next write", ""):
			srv.dead.Store(true)
			return errDisk
		}
		return nil
	}
}

func (b *breakage) after(srv *server) func(ledgertest.Call) error {
	return func(c ledgertest.Call) error {
		writes := (c.Method == "Begin" || c.Method == "Record") && !c.Move.IsZero()
		switch {
		case writes && b.CompareAndSwap("the next write's answer is lost", ""):
		case writes && b.CompareAndSwap("dies after the next write", ""):
			srv.dead.Store(true)
		default:
			return nil
		}
		return fmt.Errorf("lost: %w", ledger.ErrCommitLost)
	}
}

// personLooks is a person who tells the truth as far as it can be seen: what is there
// happened, and what isn't didn't, or may be tried again.
func (s *stage) personLooks(i int, srv *server, otherwise ledger.Resolution) {
	op := s.find(i)
	if op == nil || !op.Review.Open() {
		return
	}
	what, id := otherwise, ""
	if effects := s.effectsOf(i); len(effects) > 0 && !time.Now().Before(effects[0].at) {
		what, id = ledger.Happened, effects[0].id
	}
	_, _ = srv.Resolve(s.Context(), op.ID, what, id, op.Attempts, anna) // it may be refused, as too early
}
