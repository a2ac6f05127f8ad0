package ledger

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// This test explores every schedule of a small world: one operation, two workers, a
// provider that may act late or not at all, replies that get lost, clocks that move
// on while a worker sleeps. What the workers decide is this package's own code; what
// happens to them is not. In no state may there be two effects, a failure that
// isn't one, or a success that was dropped; and with any one of the rules taken
// out, one of these must be found, or the exploration would prove nothing.

// rules are those of the package; the explorer can break each, from outside.
type rules struct {
	ownAttempt    bool // a failure proves only its own attempt
	compareAndSet bool // every move is compared with what was read before its evidence
	lastLook      bool // just before the first byte the worker looks at the clock
	lateAbsence   bool // absence counts only after lease, settle time and lag
	keepSuccess   bool // a success is never dropped
}

var allRules = rules{true, true, true, true, true}

const (
	tDeadline = 1 * time.Second
	tLease    = 1 * time.Second
	tSettle   = 1 * time.Second
	tLag      = 1 * time.Second
	tEnd      = 5 // the clock stops there

	maxCrashes = 1
)

// A world is one state. Its workers hold what they know in memory.
type world struct {
	now      int
	op       *Operation // shared with other states; never changed
	exists   bool
	workers  [2]worker
	requests []request
	effects  int
	keyKnown bool // the provider has acted under the key
	keySince int
	dropped  bool // a success was brought and is not recorded
	crashes  int
}

type worker struct {
	does    string // "", "claimed", "sent", "answered", "looked"
	op      *Operation
	finding *Finding
	asked   inquiry
}

// A request is under way, or running at the provider, until it acts or is lost.
type request struct {
	worker  int
	attempt int
	sent    int
}

type explorer struct {
	rules  rules
	ledger *Ledger
	actor  Actor
	seen   map[string]bool
	key    []byte
	bad    string
	states int
}

func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

func TestExploreEverySchedule(t *testing.T) {
	for _, promise := range promises() {
		t.Run(promise.name, func(t *testing.T) {
			t.Parallel()
			e := explore(promise.Promise, allRules)
			if e.bad != "" {
				t.Fatalf("a schedule breaks the promise:\n%s", e.bad)
			}
			if e.states < 1000 {
				t.Fatalf("only %d states were explored: the world has lost its dangers", e.states)
			}
			t.Logf("%d states", e.states)
		})
	}
}

func TestExploreNoticesEveryMissingRule(t *testing.T) {
	for name, broken := range map[string]rules{
		"a failure proves only its own attempt": {false, true, true, true, true},
		"compare and set":                       {true, false, true, true, true},
		"the last look at the clock":            {true, true, false, true, true},
		"absence counts only late":              {true, true, true, false, true},
		"a success is never dropped":            {true, true, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, promise := range promises() {
				if e := explore(promise.Promise, broken); e.bad != "" {
					return
				}
			}
			t.Fatal("nothing goes wrong without this rule, so the exploration doesn't test it")
		})
	}
}

type namedPromise struct {
	name string
	Promise
}

func promises() []namedPromise {
	base := Promise{Deadline: tDeadline, Lease: tLease, Settle: tSettle, LookupLag: tLag}
	both, ask, key, none := base, base, base, base
	both.Idempotent, both.Window, both.ProvesAbsence = true, 4*time.Second, true
	ask.ProvesAbsence = true
	key.Idempotent, key.Window, key.Margin = true, 4*time.Second, 3*time.Second
	both.Margin = key.Margin
	return []namedPromise{{"look-up and key", both}, {"look-up", ask}, {"key", key}, {"neither", none}}
}

func explore(p Promise, r rules) *explorer {
	e := &explorer{rules: r, seen: map[string]bool{}, actor: Actor{Provider: "p", Scope: "s", Promise: p}}
	if p.ProvesAbsence {
		e.actor.Lookup = func(context.Context, Question) Finding { panic("the explorer answers itself") }
	}
	e.ledger = &Ledger{Owner: "w", Actors: map[string]Actor{"a": e.actor}, Policy: Policy{MaxAttempts: 2, MaxChecks: 1}}
	e.ledger.init()
	e.walk(world{op: &Operation{}, workers: [2]worker{idle, idle}}, nil)
	return e
}

// A trail is how a state was reached, newest step first.
type trail struct {
	before *trail
	now    int
	step   string
}

func (t *trail) String() string {
	if t == nil {
		return ""
	}
	return t.before.String() + fmt.Sprintf("\n  t=%d %s", t.now, t.step)
}

func (e *explorer) walk(w world, how *trail) {
	if e.bad != "" {
		return
	}
	w.forget(e)
	e.key = e.appendKey(w, e.key[:0])
	if e.seen[string(e.key)] {
		return
	}
	e.seen[string(e.key)] = true
	e.states++
	if wrong := w.wrong(e.actor.Promise); wrong != "" {
		e.bad = wrong + how.String()
		return
	}
	for _, s := range e.steps(w) {
		e.walk(s.world, &trail{how, w.now, s.name})
	}
}

// forget drops what has no consequences any more: requests that were lost, and
// evidence that is stale.
func (w *world) forget(e *explorer) {
	w.requests = slices.DeleteFunc(w.requests, func(r request) bool { return !w.canAct(r, e.actor.Promise) })
	for i := range w.workers {
		if k := &w.workers[i]; k.does == "looked" && k.op.Moves != w.op.Moves && e.rules.compareAndSet {
			*k = idle
		}
	}
}

// wrong says what must never be.
func (w world) wrong(p Promise) string {
	switch {
	case w.effects > 1:
		return "two effects"
	case w.dropped:
		return "a success was dropped"
	case !w.exists:
		return ""
	case w.op.Status == Succeeded && w.effects == 0:
		return "succeeded without an effect"
	case (w.op.Status == FailedFinal || w.op.Status == FailedRetryable) && w.effects > 0:
		return "failed although it happened"
	case (w.op.Status == FailedFinal || w.op.Status == FailedRetryable) && w.mayAct(p):
		return "failed although it may still happen"
	}
	return ""
}

func (w world) mayAct(p Promise) bool {
	for _, r := range w.requests {
		if w.canAct(r, p) {
			return true
		}
	}
	return false
}

// canAct: the provider may run a request for as long as the attempt and its settle
// time last.
func (w world) canAct(r request, p Promise) bool {
	return !at(w.now).After(at(r.sent).Add(p.Deadline + p.Settle))
}

// appendKey writes all that makes a state differ from another: what is over is over,
// however long ago, and of times only what they decide counts.
func (e *explorer) appendKey(w world, b []byte) []byte {
	flag := func(is bool) byte {
		if is {
			return 1
		}
		return 0
	}
	left := func(t time.Time) byte { return byte(max(0, t.Unix()-int64(w.now)+1)) }
	b = append(b, byte(w.now), flag(w.exists), byte(w.effects), flag(w.dropped), byte(w.crashes), flag(w.keyKnown))
	if w.keyKnown {
		b = append(b, byte(min(w.now-w.keySince, 4)))
	}
	op := w.op
	b = append(append(b, op.Status...), byte(op.Attempts), byte(op.Checks), flag(op.Review.Open()), flag(op.UnsettledSince.IsZero()))
	b = append(b, left(op.NextCheckAt), left(op.absenceCounts(e.actor.Promise)))
	if e.actor.Promise.Idempotent {
		b = append(b, byte(min(int64(w.now)-op.FirstSentAt.Unix(), 4)))
	}
	for _, r := range w.requests {
		b = append(b, 'r', byte(r.worker), byte(r.attempt), byte(r.sent))
	}
	for _, k := range w.workers {
		b = append(append(append(append(b, ';'), k.does...), k.finding.Verdict...), k.asked.verdict...)
		switch {
		case k.does == "":
		case e.rules.compareAndSet:
			b = append(b, byte(k.op.Attempts), left(k.op.LeaseUntil), flag(k.asked.at.Before(op.absenceCounts(e.actor.Promise))))
		default:
			b = append(b, byte(k.op.Attempts), left(k.op.LeaseUntil), byte(k.asked.at.Unix()), flag(k.op.Moves == op.Moves), flag(k.op.UnsettledSince.IsZero()))
			b = append(b, k.op.Status...)
		}
	}
	return b
}

type step struct {
	name  string
	world world
}

func (e *explorer) steps(w world) []step {
	var out []step
	add := func(name string, change func(*world)) {
		next := w
		next.requests = append([]request(nil), w.requests...)
		change(&next)
		out = append(out, step{name, next})
	}
	if w.now < tEnd {
		add("a second passes", func(w *world) { w.now++ })
	}
	for i := range w.requests {
		r := w.requests[i]
		if !w.canAct(r, e.actor.Promise) {
			continue
		}
		attempt := string(rune('0' + r.attempt))
		add("the provider runs attempt "+attempt, func(w *world) { e.run(w, i, true) })
		add("the provider runs attempt "+attempt+", the reply is lost", func(w *world) { e.run(w, i, false) })
	}
	for i := range w.workers {
		e.work(w, i, add)
	}
	return out
}

// run lets the provider act, once per key for as long as it remembers it.
func (e *explorer) run(w *world, i int, reply bool) {
	r, p := w.requests[i], e.actor.Promise
	known := p.Idempotent && w.keyKnown && at(w.now).Before(at(w.keySince).Add(p.Window))
	if !known {
		w.effects++
		w.keyKnown, w.keySince = true, w.now
	}
	w.drop(i)
	if k := &w.workers[r.worker]; reply && k.does == "sent" && k.op.Attempts == r.attempt {
		k.does, k.finding = "answered", found
	}
}

func (w *world) drop(i int) { w.requests = append(w.requests[:i:i], w.requests[i+1:]...) }

var workerNames = [2]string{"worker A ", "worker B "}

// work is what worker i can do next.
func (e *explorer) work(w world, i int, add func(string, func(*world))) {
	name := func(s string) string { return workerNames[i] + s }
	k := w.workers[i]
	e.ledger.Now = func() time.Time { return at(w.now) }
	switch k.does {
	case "":
		e.idle(w, i, add)
	case "claimed":
		add(name("sends"), func(w *world) {
			k := &w.workers[i]
			if err := maySend(*k.op, at(w.now), e.actor.Promise.Deadline); err != nil && e.rules.lastLook {
				k.does, k.finding = "answered", &Finding{Verdict: NotSent, Code: CodeLeaseExpired}
				return
			}
			k.does = "sent"
			w.requests = append(w.requests, request{i, k.op.Attempts, w.now})
		})
		add(name("can't connect"), func(w *world) {
			w.workers[i].does, w.workers[i].finding = "answered", &Finding{Verdict: NotSent, Code: "unavailable"}
		})
	case "sent":
		add(name("gives up"), func(w *world) {
			w.workers[i].does, w.workers[i].finding = "answered", &Finding{Verdict: Unclear, Code: "timeout"}
		})
	case "answered":
		add(name("records "+string(k.finding.Verdict)), func(w *world) { e.record(w, i) })
	case "looked":
		add(name("acts on "+string(k.asked.verdict)), func(w *world) { e.act(w, i) })
	}
	if k.does != "" && w.crashes < maxCrashes {
		add(name("crashes"), func(w *world) { w.workers[i] = idle; w.crashes++ })
	}
}

// idle is a call, or the sweep, meeting the operation as it is.
func (e *explorer) idle(w world, i int, add func(string, func(*world))) {
	name := func(s string) string { return workerNames[i] + s }
	claim := func(settled bool) Claim {
		return Claim{Owner: "w", At: at(w.now), Lease: tLease, Provider: "p", Scope: "s", Settled: settled}
	}
	due := !at(w.now).Before(w.op.NextCheckAt)
	switch {
	case !w.exists:
		add(name("claims"), func(w *world) {
			m, err := Operation{ID: "op", Key: Key{1}, Action: "a"}.Insert(claim(true), nil, Note{})
			must(err)
			w.exists, w.op = true, m.after()
			w.workers[i] = worker{does: "claimed", op: w.op, finding: idle.finding}
		})
	case w.op.Status == FailedRetryable && due:
		add(name("claims again"), func(w *world) {
			m, err := w.op.Claim(claim(true), Note{})
			must(err)
			w.op = m.after()
			w.workers[i] = worker{does: "claimed", op: w.op, finding: idle.finding}
		})
	case w.op.Status == Executing && !at(w.now).Before(w.op.LeaseUntil):
		add(name("finds the lease over"), func(w *world) {
			m, err := w.op.Doubt(at(w.now), CodeLeaseExpired, at(w.now), Note{})
			must(err)
			w.op = m.after()
		})
	case w.op.Status == Unknown && !w.op.Review.Open() && e.actor.Lookup == nil:
		add(name("takes it up"), func(w *world) {
			w.workers[i] = worker{does: "looked", op: w.op, finding: idle.finding, asked: inquiry{at: at(w.now)}}
		})
	case w.op.Status == Unknown && !w.op.Review.Open():
		e.lookUps(w, i, add)
	}
}

// lookUps are the answers a look-up may bring: within its lag an effect may still be
// invisible, or not; and it may fail.
func (e *explorer) lookUps(w world, i int, add func(string, func(*world))) {
	looked := func(f *Finding) func(*world) {
		return func(w *world) {
			w.workers[i] = worker{does: "looked", op: w.op, finding: f, asked: inquiry{at: at(w.now), verdict: f.Verdict}}
		}
	}
	name := workerNames[i] + "looks it up: "
	if w.effects > 0 {
		add(name+"found", looked(found))
	}
	if w.effects == 0 || at(w.now).Before(at(w.keySince).Add(e.actor.Promise.LookupLag)) {
		add(name+"absent", looked(&Finding{Verdict: Absent}))
	}
	add(name+"no answer", looked(&Finding{Verdict: Unclear}))
}

// record is what conclude does with the store and the clock taken apart.
func (e *explorer) record(w *world, i int) {
	k := w.workers[i]
	w.workers[i] = idle
	current := w.op.Status == Executing && w.op.Attempts == k.op.Attempts
	if !current && e.rules.compareAndSet {
		if k.finding.Verdict == Done {
			w.late(e)
		}
		return
	}
	op := *w.op
	if !current {
		op = *k.op // without the fence the worker writes over whatever is there
	}
	if !e.rules.ownAttempt {
		op.UnsettledSince = time.Time{}
	}
	m, err := e.ledger.outcome(op, *k.finding)
	must(err)
	w.op = m.after()
}

func (w *world) late(e *explorer) {
	if w.op.Status == Succeeded {
		return
	}
	if !e.rules.keepSuccess {
		w.dropped = true
		return
	}
	m, err := w.op.Succeed(e.ledger.now(), Receipt{ProviderOperationID: "x"}, time.Time{}, Note{Evidence: []byte("{}")})
	must(err)
	w.op = m.after()
}

// act is what reconcile does after its look-up, compared with what was read before it.
func (e *explorer) act(w *world, i int) {
	k := w.workers[i]
	w.workers[i] = idle
	if w.op.Moves != k.op.Moves && e.rules.compareAndSet {
		return
	}
	now, op := at(w.now), *k.op
	if k.finding.Verdict == Done {
		m, err := op.Succeed(now, k.finding.Receipt, time.Time{}, Note{Evidence: []byte("{}")})
		must(err)
		w.op = m.after()
		return
	}
	if !e.rules.lateAbsence {
		k.asked.at = at(1000)
	}
	way := e.ledger.Policy.way(op, e.actor, k.asked, now)
	switch way.kind {
	case sendAgain, startAnew:
		m, err := op.Claim(Claim{Owner: "w", At: now, Lease: tLease, Provider: "p", Scope: "s", Settled: way.kind == startAnew}, Note{})
		must(err)
		w.op = m.after()
		w.workers[i] = worker{does: "claimed", op: w.op, finding: idle.finding}
	case lookLater:
		m, err := op.Observe(now, Note{}, func(o *Operation) { o.NextCheckAt = way.at; o.Checks = min(o.Checks+1, 1) })
		must(err)
		w.op = m.after()
		w.op.Moves = op.Moves // a look-up in vain isn't a new state; nobody else has this copy yet
	case askPerson:
		m, err := op.Ask(now, "", way.why, Note{})
		must(err)
		w.op = m.after()
	case leave:
	}
}

// idle is a worker with nothing in memory.
var idle = worker{op: &Operation{}, finding: &Finding{}}

// found is what the provider shows for the one object there can be.
var found = &Finding{Verdict: Done, Receipt: Receipt{ProviderOperationID: "x", State: Settled}}

// after is the state that a move leads to.
func (m Move) after() *Operation { return &m.to }

func must(err error) {
	if err != nil {
		panic(err)
	}
}
