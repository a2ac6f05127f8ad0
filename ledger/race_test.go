//go:build race

package ledger_test

import "flag"

// The race detector makes a schedule ten times as long, and needs fewer of them: it looks at how
// memory is shared, which is the same in all. A flag given to go test still counts.
func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
}
