// Package compare_test sets three ways to name an action side by side, under the same
// faults and on the same payment server: a hash of the raw arguments, the position in the
// workflow, and the business operation id that Onceward takes. docs/why-the-key.md tells
// what comes of it, with this test's figures.
package compare_test

import (
	"flag"
	"maps"
	"testing"
)

// checkedRuns are those whose figures stand in the documentation and in testdata.
const checkedRuns = 20

var (
	runs   = flag.Int("compare.runs", standardRuns, "how many seeded runs each way has under each fault; the first 20 are checked against the documentation")
	update = flag.Bool("update", false, "rewrite the golden table, the documentation's figures and its chart")
)

// A tally counts runs of one way under one fault.
type tally struct {
	right   int // each action has happened once
	twice   int // one has happened too often; perhaps another one hasn't at all
	blocked int // one that was meant hasn't happened, and none too often

	toldFailed int // of right: an agent hears to the end that it hasn't happened
	toldDone   int // of blocked: all agents hear that all is done
}

// judge compares what was meant with the bank's journal, and with what was heard last of
// each action.
func (t *tally) judge(meant map[int64]int, happened []int64, heard map[int]told) {
	rest := maps.Clone(meant)
	for _, cents := range happened {
		rest[cents]--
	}
	tooOften, never, allDone := false, false, true
	for _, n := range rest {
		tooOften, never = tooOften || n < 0, never || n > 0
	}
	for _, h := range heard {
		allDone = allDone && h == done
	}
	switch {
	case tooOften:
		t.twice++
	case never:
		t.blocked++
		if allDone {
			t.toldDone++
		}
	default:
		t.right++
		if !allDone {
			t.toldFailed++
		}
	}
}

// results are tallies by scenario and way.
type results [][]tally

func newResults() results {
	r := make(results, len(scenarios))
	for i := range r {
		r[i] = make([]tally, len(ways))
	}
	return r
}

// TestCompare runs all ways under all faults. The business operation id has to be right in
// every run, but for an orchestrator's own mistakes.
func TestCompare(t *testing.T) {
	if *runs < 1 {
		t.Fatal("-compare.runs is at least 1")
	}
	checked, all := newResults(), newResults()
	t.Run("runs", func(t *testing.T) {
		for i, w := range ways {
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				for row, s := range scenarios {
					stage := newStage(t, w)
					for run := range *runs {
						writer := newWriter(row, run)
						s.write(writer)
						heard := stage.run(writer.script)
						happened := stage.bank.refunds(writer.payment)
						all[row][i].judge(writer.meant, happened, heard)
						if run < checkedRuns {
							checked[row][i].judge(writer.meant, happened, heard)
						}
					}
				}
			})
		}
	})
	t.Logf("%d runs of each\n%s", *runs, table(all))
	ours := len(ways) - 1
	for row, s := range scenarios {
		if got := all[row][ours]; !s.mistake && got != (tally{right: *runs}) {
			t.Errorf("%s, %s: %+v, want all %d runs right", ways[ours].name, s.name, got, *runs)
		}
	}
	switch {
	case t.Failed():
	case *runs < checkedRuns:
		t.Logf("the documentation's figures are those of %d runs, and weren't checked", checkedRuns)
	default:
		checkDocumentation(t, checked)
	}
}
