package torture

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// routine is what two servers do with one action, whatever is broken meanwhile: the call,
// its repeat on the other server, sweeps, and the repeat after everybody had time.
var routine = []event{
	{Do: "call-behind"}, {Do: "pass", D: time.Second}, {Do: "call", On: 1}, {Do: "pass", D: 16 * time.Second},
	{Do: "sweep-behind", On: 1}, {Do: "pass", D: 3 * time.Second}, {Do: "call-behind", On: 1}, {Do: "pass", D: 20 * time.Second},
	{Do: "sweep"}, {Do: "call"}, {Do: "look-retry", On: 1}, {Do: "pass", D: time.Minute}, {Do: "sweep", On: 1}, {Do: "call", On: 1},
}

var fourWays = []capability{
	{Key: true, Asked: true, Window: time.Hour, Settle: 3 * time.Second, Lag: 2 * time.Second},
	{Asked: true, Window: time.Hour, Settle: 3 * time.Second, Lag: 2 * time.Second},
	{Key: true, Window: time.Hour, Settle: 3 * time.Second},
	{Window: time.Hour, Settle: 3 * time.Second},
}

// TestEveryBoundary breaks each durable write of the first server in every way, and then each of the
// second server's with it, for every fault, tool and capability. Then all pairs of faults.
func TestEveryBoundary(t *testing.T) {
	if *seed != 0 {
		t.Skip("one schedule only")
	}
	var makers []func(func(plot) *world)
	for i, fault := range acts {
		for j, capable := range fourWays {
			capable.Caches = fault == "cached-error" || fault == "server-error"
			for _, action := range actions {
				p := plot{Cap: capable, Patient: 2 * time.Second, Steps: routine, Ops: []opPlan{{Action: action, Amount: 1000, Acts: []string{fault}}}}
				deep := action == actions[(i+j)%len(actions)] // the tools take turns
				makers = append(makers, func(play func(plot) *world) { everyBoundary(p, deep, play) })
			}
			for _, second := range acts {
				p := plot{Cap: capable, Patient: 2 * time.Second, Steps: routine, Ops: []opPlan{{Action: "refund", Amount: 1000, Acts: []string{fault, second}}}}
				makers = append(makers, func(play func(plot) *world) { play(p) })
			}
		}
	}
	playAll(t, sparsely(makers)...)
	t.Logf("schedules by now: %d", onSQLite.schedules.Load())
}

// TestTakenOver has one worker stand still between the provider's answer and its record while
// another one takes the operation over, and wake up in the middle of the second one's request.
func TestTakenOver(t *testing.T) {
	if *seed != 0 {
		t.Skip("one schedule only")
	}
	var makers []func(func(plot) *world)
	for _, capable := range fourWays {
		for _, first := range []string{"refuse", "unavailable", "lose-request", "lose-reply", "hang", "act"} {
			for write := 1; write <= 2; write++ {
				taken := lease + capable.Settle + capable.Lag + time.Second
				p := plot{
					Cap: capable, Patient: time.Second, Ops: []opPlan{{Action: "refund", Amount: 1000, Acts: []string{first, "slow", "slow"}}},
					Breaks: [3][]breakage{{{write, "pause-before", taken + 2*time.Second}}},
					Steps: []event{
						{Do: "call-behind"}, {Do: "pass", D: taken}, {Do: "sweep-behind", On: 1}, {Do: "pass", D: 2 * time.Second}, {Do: "pass", D: 3 * time.Second},
						{Do: "call", On: 2}, {Do: "pass", D: time.Minute}, {Do: "call"}, {Do: "changed-call", On: 2},
					},
				}
				makers = append(makers, func(play func(plot) *world) { play(p) })
			}
		}
	}
	playAll(t, makers...)
	t.Logf("schedules by now: %d", onSQLite.schedules.Load())
}

// sparsely leaves most out in a short run.
func sparsely(makers []func(func(plot) *world)) (some []func(func(plot) *world)) {
	if *schedules > 0 {
		return makers
	}
	for i := 0; i < len(makers); i += shortStride {
		some = append(some, makers[i])
	}
	return some
}

// deepBreakages are those from which pairs are made: the others do what one of these does, a little
// earlier or later.
var (
	deepBreakages = []string{"error-after", "die-before", "die-after", "pause-before"}
	deaths        = []string{"die-before", "die-after"} // of the second server
)

// everyBoundary goes on until a server has no such write any more.
func everyBoundary(p plot, deep bool, play func(plot) *world) {
	pause := 40 * time.Second
	for first := 1; ; first++ {
		for _, how := range breakages {
			p.Breaks = [3][]breakage{{{first, how, pause}}, nil, nil}
			w := play(p)
			if w == nil || !w.boundary[0] {
				return
			}
			for second := 1; deep && *schedules > 0 && slices.Contains(deepBreakages, how); second++ {
				met := false
				for _, then := range deaths {
					p.Breaks[1] = []breakage{{second, then, pause + 7*time.Second}}
					w := play(p)
					if w == nil {
						return
					}
					met = met || w.boundary[1]
				}
				if !met {
					break
				}
			}
		}
		if first > 20 {
			panic(fmt.Sprintf("%v has more writes than there are", p))
		}
	}
}
