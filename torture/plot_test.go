package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
)

var actions = []string{"email.send", "payment_order.create", "refund"}

// A plot is one schedule: all that is decided before it is played. It prints itself when it
// breaks a promise.
type plot struct {
	Seed    uint64
	Cap     capability
	Apart   bool // each server has opened the database by itself
	Clocked bool // the store can tell that a clock is wrong
	Offsets [3]time.Duration
	Patient time.Duration // how long a call waits for its result
	Ops     []opPlan
	Rules   ledger.Rules
	Breaks  [3][]breakage // of the servers' first lives
	Steps   []event
}

// An opPlan is one business action, and what becomes of its requests.
type opPlan struct {
	Action   string
	Amount   int64
	Run      string
	Approval bool // a person has to agree first
	Acts     []string
}

// stores is how many processes a plot needs that open the database by themselves.
func (p plot) stores() int {
	n := 1
	for _, e := range p.Steps {
		if p.Apart {
			n = max(n, e.On+1)
		}
	}
	return n
}

// An event is one step of a plot.
type event struct {
	Do string
	On int // which server
	Op int // which operation
	D  time.Duration
}

func (e event) String() string {
	return fmt.Sprintf("%s, server %d, operation %d, %v", e.Do, e.On, e.Op, e.D)
}

func (p plot) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %+v, told of clocks %v, clocks off %v\nrules %+v\n", p.Seed, p.Cap, p.Clocked, p.Offsets, p.Rules)
	for i, op := range p.Ops {
		fmt.Fprintf(&b, "operation %d: %+v\n", i, op)
	}
	for i, breaks := range p.Breaks {
		if len(breaks) > 0 {
			fmt.Fprintf(&b, "server %d at its writes: %+v\n", i, breaks)
		}
	}
	for i, e := range p.Steps {
		fmt.Fprintf(&b, "%3d. %v\n", i+1, e)
	}
	return b.String()
}

// dangers are what becomes of a request, as often as each is drawn.
var dangers = append([]string{
	"lose-reply", "lose-reply", "lose-request", "crash-after", "crash-before", "refuse", "unavailable", "unavailable",
	"slow", "slow", "slow-lose-reply", "act", "act",
}, acts...)

// events are the steps of a plot, as often as each is drawn.
var events = []string{
	"call", "call", "call", "call-behind", "call-behind", "call-behind", "reworded-call", "changed-call", "rush",
	"sweep", "sweep", "sweep", "sweep-behind", "reconcile", "crash",
	"pass", "pass", "pass", "pass", "pass",
	"look", "look", "look-retry", "approve", "approve", "deny", "mistaken-approve",
	"error-before", "error-after", "die-before", "die-after", "pause-before", "pause-after",
	"freeze", "cut", "hesitate", "vain", "vain", "clock",
}

// drawPlot draws a plot. A seed gives the same one each time.
func drawPlot(seed uint64) plot {
	r := rand.New(rand.NewPCG(seed, 0x6f6e6365))
	coin := func(n int) bool { return r.IntN(n) == 0 }
	pick := func(s []string) string { return s[r.IntN(len(s))] }
	p := plot{Seed: seed, Cap: drawCapability(r), Clocked: coin(4), Patient: time.Second}
	if coin(4) {
		p.Patient = 7 * time.Second
	}
	servers := 1 + r.IntN(3)
	p.Apart = coin(4)
	times := []time.Duration{
		time.Second, 3 * time.Second, deadline, lease, lease + p.Cap.Settle, lease + p.Cap.Settle + p.Cap.Lag,
		17 * time.Second, 23 * time.Second, time.Minute, 40 * time.Minute, 25 * time.Hour,
	}
	if p.Clocked {
		p.Offsets = [3]time.Duration{drawOffset(r), drawOffset(r), drawOffset(r)}
	}
	approvals := coin(3)
	action := pick(actions)
	for range 1 + r.IntN(4) {
		op := opPlan{Action: action, Amount: int64(1+r.IntN(3)) * 1000, Run: pick([]string{"", "run-1", "run-2"}), Approval: approvals && coin(2)}
		if coin(6) {
			op.Action = pick(actions)
		}
		for range r.IntN(5) {
			op.Acts = append(op.Acts, pick(dangers))
		}
		p.Ops = append(p.Ops, op)
	}
	p.Rules = drawRules(r)
	if coin(4) {
		p.overlap(r)
	}
	for range 8 + r.IntN(32) {
		p.Steps = append(p.Steps, event{
			Do: pick(events), On: r.IntN(servers), Op: r.IntN(len(p.Ops)) * r.IntN(2), D: times[r.IntN(len(times))],
		})
	}
	return p
}

// overlap begins a plot with what blind chance seldom meets: one worker stands still between the
// provider's answer and its record, another one takes the operation over, and the first one
// wakes up in the middle of the second one's request.
func (p *plot) overlap(r *rand.Rand) {
	second := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Second }
	op := &p.Ops[0]
	op.Approval = false
	first := []string{"refuse", "unavailable", "lose-request", "lose-reply", "hang", "act"}[r.IntN(6)]
	op.Acts = append([]string{first, "slow", []string{"slow-lose-reply", "act", "refuse"}[r.IntN(3)]}, op.Acts...)
	taken := lease + p.Cap.Settle + p.Cap.Lag + second(3)
	p.Breaks[0] = []breakage{{2, []string{"pause-before", "pause-after"}[r.IntN(2)], taken + time.Second + second(4)}}
	if r.IntN(4) == 0 {
		p.Breaks[0][0].At = 1 // between the claim and the request
	}
	if p.Clocked && r.IntN(2) == 0 { // it sends as late as it may, and the other one's clock is ahead
		op.Acts[0] = []string{"act-late", "slow-lose-reply"}[r.IntN(2)]
		p.Offsets = [3]time.Duration{-2 * time.Second, 2 * time.Second, 0}
		p.Breaks[0] = []breakage{{1, "pause-after", lease - deadline}}
		taken -= 4 * time.Second
	}
	p.Steps = append(p.Steps, event{Do: "call-behind"}, event{Do: "pass", D: taken}, event{Do: []string{"sweep-behind", "call-behind"}[r.IntN(2)], On: 1},
		event{Do: "pass", D: 2 * time.Second}, event{Do: "pass", D: 3 * time.Second})
}

func drawCapability(r *rand.Rand) capability {
	return capability{
		Key: r.IntN(2) == 0, Asked: r.IntN(2) == 0, Caches: r.IntN(3) == 0,
		Window: []time.Duration{time.Minute, time.Hour, 24 * time.Hour}[r.IntN(3)],
		Settle: []time.Duration{0, 3 * time.Second, 7 * time.Second}[r.IntN(3)],
		Lag:    []time.Duration{0, 2 * time.Second, 30 * time.Second}[r.IntN(3)],
	}
}

// drawOffset is how far a clock is off: mostly not at all, seldom by far.
func drawOffset(r *rand.Rand) time.Duration {
	return []time.Duration{0, 0, 0, time.Second, -time.Second, 2 * time.Second, -2 * time.Second, time.Hour, -time.Hour}[r.IntN(9)]
}

func drawRules(r *rand.Rand) ledger.Rules {
	rules := ledger.Rules{RunOnApproval: r.IntN(2) == 0}
	if r.IntN(6) == 0 {
		rules.SecondIntent = []ledger.SecondIntent{ledger.SecondIntentWarn, ledger.SecondIntentApprove}[r.IntN(2)]
	}
	all := []ledger.Limit{
		{Scope: ledger.PerWorkflow, Max: int64(1 + r.IntN(3))},
		{Scope: ledger.PerRun, Max: int64(1 + r.IntN(2))},
		{Scope: ledger.PerWorkflow, Currency: currency, Max: int64(1+r.IntN(5)) * 1000},
		{Scope: ledger.PerDay, Max: int64(1 + r.IntN(3))},
		{Scope: ledger.PerTenant, Currency: currency, Max: int64(1+r.IntN(5)) * 1000},
	}
	for _, i := range r.Perm(len(all))[:r.IntN(4)] {
		rules.Limits = append(rules.Limits, all[i])
	}
	return rules
}

const currency = "EUR"
