package main

import (
	"fmt"

	"github.com/onceward/onceward/ledger"
)

// A tally is what one scene came to. Every scene is about one business action.
type tally struct {
	title   string
	calls   int      // made
	planned int      // calls that the story has
	effects int      // counted in the sandbox's journal
	broken  []string // other promises that were not kept
}

// ok tells whether the scene went as promised.
func (t tally) ok() bool { return t.effects == 1 && t.calls == t.planned && len(t.broken) == 0 }

func (t tally) problems() []string {
	var found []string
	if t.effects != 1 {
		found = append(found, fmt.Sprintf("%s: %s, promised is 1", t.title, countOf(t.effects, "effect")))
	}
	if t.calls != t.planned {
		found = append(found, fmt.Sprintf("%s: %s, the story has %d", t.title, countOf(t.calls, "call"), t.planned))
	}
	for _, b := range t.broken {
		found = append(found, t.title+": "+b)
	}
	return found
}

// checkDemo compares the scenes with what was promised, and with the ledger: as many
// operations as business actions, each succeeded, each with a key of its own.
func checkDemo(tallies []tally, operations []row) []string {
	var problems []string
	for _, t := range tallies {
		problems = append(problems, t.problems()...)
	}
	if len(operations) != len(tallies) {
		problems = append(problems, fmt.Sprintf("the ledger has %s for %s",
			countOf(len(operations), "operation"), countOf(len(tallies), "business action")))
	}
	keys := map[string]bool{}
	for _, op := range operations {
		if op.Status != ledger.Succeeded {
			problems = append(problems, fmt.Sprintf("operation %s is %s at the end, promised is succeeded", op.OperationID, op.Status))
		}
		if keys[op.IdempotencyKey] {
			problems = append(problems, fmt.Sprintf("operation %s has another one's key", op.OperationID))
		}
		keys[op.IdempotencyKey] = true
	}
	return problems
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
