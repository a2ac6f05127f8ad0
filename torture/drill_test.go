//go:build unix

package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A drill is one schedule with real processes: callers that repeat their calls until the answer
// is final, while processes and connections break.
type drill struct {
	t       *testing.T
	rand    *rand.Rand
	place   place
	servers []*process
	wires   []*wire
	base    *cluster
	tally   *tally

	intents int
	callers int // per intent
	rounds  int // how many intents each caller takes one after the other
	chaos   time.Duration
	unsafe  bool // the provider can neither be asked nor knows keys: an intent may end with a review

	mu      sync.Mutex
	answers map[int][]answer
	chosen  []string // tools, by intent
	wrong   string
}

var drillTools = []struct{ tool, action, args string }{
	{"email_send", "email.send", `{"to":["jane%d@example.com"],"subject":"Your refund","body":"It is on its way."}`},
	{"payment_order_create", "payment_order.create", `{"debit_account":"DE02120300000000202051","payee_account":"DE02500105170137075030","payee_name":"Example","amount":"1250.00","currency":"EUR","business_reference":"invoice-%d"}`},
	{"refund", "refund", `{"payment_id":"pay_%d","amount":"100.00","currency":"USD"}`},
}

// drillFaults are what the sandbox does meanwhile.
var drillFaults = []string{"lose-reply", "lose-request", "server-error", "hang", "act-late", "in-flight", "unavailable", "crash-before", "crash-after", "refuse"}

func newDrill(t *testing.T, seed uint64, servers int, base *cluster, database string) *drill {
	t.Helper()
	d := &drill{
		t: t, rand: rand.New(rand.NewPCG(seed, 0x6472696c)), base: base, tally: &processesSQLite, answers: map[int][]answer{}, rounds: 1,
		place: place{program: program(t), dir: t.TempDir(), ledger: database},
	}
	if base != nil {
		d.tally = &processesPostgres
	}
	for range servers {
		p := &process{place: d.place, url: database}
		if database != "" {
			w, through := newWire(t, database)
			d.wires = append(d.wires, w)
			p.url = through
		}
		d.servers = append(d.servers, p)
		t.Cleanup(func() { p.signal(syscall.SIGCONT); p.kill() })
	}
	return d
}

// draw chooses faults and capabilities.
func (d *drill) draw() {
	asked, keyed := d.rand.IntN(2) == 0, d.rand.IntN(2) == 0
	faults := ""
	for range d.rand.IntN(4) {
		kind := drillFaults[d.rand.IntN(len(drillFaults))]
		faults += fmt.Sprintf(",%s:%s:%d", drillTools[d.rand.IntN(3)].action, kind, 1+d.rand.IntN(2))
	}
	flags := []string{fmt.Sprintf("--sandbox-lookup=%v", asked), fmt.Sprintf("--sandbox-idempotent=%v", keyed)}
	if faults != "" {
		flags = append(flags, "--sandbox-faults", faults[1:])
	}
	d.unsafe = !asked && !keyed
	for _, s := range d.servers {
		s.flags = flags
	}
}

// run starts the servers, breaks them for a time, and waits until every intent is settled.
func (d *drill) run() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	d.each(func(s *process) {
		if err := s.start(); err != nil {
			d.fail("%v", err)
		}
	})
	var calling sync.WaitGroup
	for range d.intents {
		d.chosen = append(d.chosen, drillTools[d.rand.IntN(len(drillTools))].tool)
	}
	for n := range d.callers {
		for i := range d.intents {
			from := d.rand.Uint64()
			calling.Go(func() {
				for next := range d.rounds {
					d.insist(ctx, (i+next)%d.intents, n, from)
				}
			})
		}
	}
	d.breakThings(ctx)
	calling.Wait()
	d.judge(ctx)
	d.tally.schedules.Add(1)
	if d.wrong != "" {
		d.tally.violations.Add(1)
		for n, s := range d.servers {
			_ = os.WriteFile(fmt.Sprintf("%s/torture-server-%d.log", os.TempDir(), n), []byte(s.logged()), 0o600) // for whoever looks into it
		}
		d.t.Errorf("a drill breaks the promise: %s\nfaults and traits %v", d.wrong, d.servers[0].flags)
	}
}

func (d *drill) each(do func(*process)) {
	var all sync.WaitGroup
	for _, s := range d.servers {
		all.Go(func() { do(s) })
	}
	all.Wait()
}

// insist makes a call again and again until its answer is final.
func (d *drill) insist(ctx context.Context, i, n int, from uint64) {
	r := rand.New(rand.NewPCG(from, uint64(n)))
	var args string
	for _, t := range drillTools {
		if t.tool == d.chosen[i] {
			args = fmt.Sprintf(t.args, i)
		}
	}
	if d.chaos > 0 {
		begins := rand.New(rand.NewPCG(uint64(i), 1)).Int64N(int64(d.chaos)) // the callers of an intent begin together
		d.rest(ctx, time.Duration(begins))
	}
	intent := fmt.Sprintf(`{"workflow_id":"case-%d","step":"settle","business_object":"order-%d","run_id":"run-%d"}`, i, i, n)
	for ctx.Err() == nil {
		a, err := d.servers[r.IntN(len(d.servers))].call(ctx, d.chosen[i], intent, args)
		if err == nil {
			d.note(i, a)
			if a.final() {
				return
			}
		}
		select {
		case <-time.After(time.Duration(20+r.IntN(150)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	last := d.answers[i][max(0, len(d.answers[i])-3):]
	d.mu.Unlock()
	d.fail("intent %d isn't settled: %+v", i, last)
}

func (d *drill) note(i int, a answer) {
	d.tally.calls.Add(1)
	if a.Replayed {
		d.tally.replays.Add(1)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[i] = append(d.answers[i], a)
}

func (d *drill) fail(format string, a ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wrong == "" {
		d.wrong = fmt.Sprintf(format, a...)
	}
}

// breakThings kills, stops and cuts for a time. Afterwards all servers live: one that the sandbox
// killed is started again too.
func (d *drill) breakThings(ctx context.Context) {
	end := time.Now().Add(d.chaos)
	for time.Now().Before(end) && ctx.Err() == nil {
		d.rest(ctx, time.Duration(20+d.rand.IntN(200))*time.Millisecond)
		s := d.servers[d.rand.IntN(len(d.servers))]
		switch what := d.rand.IntN(10); {
		case what < 4:
			s.kill()
			d.tally.kills.Add(1)
			d.rest(ctx, time.Duration(d.rand.IntN(300))*time.Millisecond)
			d.start(s)
		case what < 6:
			s.signal(syscall.SIGSTOP)
			d.tally.pauses.Add(1)
			time.AfterFunc(drillLease+time.Duration(d.rand.IntN(500))*time.Millisecond, func() { s.signal(syscall.SIGCONT) })
		case what < 8 && len(d.wires) > 0:
			d.wires[d.rand.IntN(len(d.wires))].cut(time.Duration(d.rand.IntN(1500)) * time.Millisecond)
			d.tally.cuts.Add(1)
		case what == 8 && d.base != nil:
			d.crashDatabase(ctx)
		}
		d.revive()
	}
	// The sandbox's own crashes may still come.
	healing, stop := context.WithCancel(ctx)
	d.t.Cleanup(stop)
	go func() {
		for healing.Err() == nil {
			d.rest(healing, 200*time.Millisecond)
			if healing.Err() == nil {
				d.revive()
			}
		}
	}()
}

func (d *drill) crashDatabase(ctx context.Context) {
	d.base.kill(d.t)
	d.tally.kills.Add(1)
	d.rest(ctx, time.Duration(d.rand.IntN(1000))*time.Millisecond)
	d.base.start(d.t)
}

func (d *drill) rest(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

func (d *drill) start(s *process) {
	if err := s.start(); err != nil && d.base == nil {
		d.fail("%v", err)
	}
}

// revive starts who has died.
func (d *drill) revive() {
	for _, s := range d.servers {
		if s.ended() {
			s.kill()
			d.tally.kills.Add(1)
			d.start(s)
		}
	}
}
