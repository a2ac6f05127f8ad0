// Package drill rehearses, with a user's own configuration, what can go wrong with an action: it
// runs the real tools on a real ledger against a sandbox that has the traits of the configured
// provider, and judges what came of each failure by what is promised.
//
// Nothing real is touched. The ledger is a scratch one, the provider a sandbox, and time passes on
// a clock of the drill's own: a window of a day is over in no time.
package drill

import (
	"context"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/policy"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
	"github.com/onceward/onceward/tools"
)

// A Subject is one action type: what serves it, and what is laid down for it.
type Subject struct {
	Action    string
	Provider  string // its name
	Traits    providers.Traits
	Tool      policy.Tool // as it was written
	Policy    *policy.Policy
	Templates []string // what a mail may be for; empty: anything

	// Faults that the provider has besides, in every scenario: a promise of its traits that it
	// doesn't keep.
	Faults []sandbox.Fault
	Advice Advice
}

// Advice is how this provider's settings are changed. What no setting can change is empty.
type Advice struct {
	Ask    string // so that it can be asked
	Prove  string // so that what a look-up doesn't find counts as not done
	Key    string // so that a repeat does nothing twice
	Errors string // so that an error isn't kept under a key
	Margin string // so that no repeat arrives after the key's window
}

// A Handler answers one MCP message.
type Handler func(ctx context.Context, message []byte) (answer []byte, err error)

// A World is where a drill takes place.
type World struct {
	// Open opens the scratch ledger of an action type; each has its own. Each call gives a handle
	// of its own, as another server process has, and the drill closes it.
	Open func(ctx context.Context, action string) (ledger.Store, error)
	// Dir is an empty directory for the sandbox's journals.
	Dir string
	// Serve makes a server of the tools.
	Serve func(*tools.Set) (Handler, error)
	// Zone is where days begin; nil: UTC.
	Zone *time.Location
}

// A Verdict is what a scenario came to.
type Verdict string

// The verdicts.
const (
	Held         Verdict = "held"              // the promise was kept, and nobody was needed
	PersonAsked  Verdict = "a person is asked" // the promise was kept, and a person has to say how it goes on
	DoesNotApply Verdict = "does not apply"    // it can't happen here, or nothing is promised about it
	Broken       Verdict = "BROKEN"
)

// A Result is what became of one scenario.
type Result struct {
	Action   string  `json:"action_type"`
	Provider string  `json:"provider"`
	Scenario string  `json:"scenario"`
	Happened string  `json:"happened"` // or why it doesn't apply
	Calls    int     `json:"calls"`
	Effects  int     `json:"effects"` // at the provider, by all calls together
	Verdict  Verdict `json:"verdict"`

	// KnownAfter is how long after the first call the outcome was known, or a person asked.
	KnownAfter Seconds `json:"known_after_seconds"`
	Asked      string  `json:"asked,omitempty"`   // what a person has to find out or decide
	Problem    string  `json:"problem,omitempty"` // what broke
	Setting    string  `json:"setting,omitempty"` // which one would spare that, or that none does
}

// Seconds is a duration, in JSON a number of seconds.
type Seconds time.Duration

// MarshalJSON implements [json.Marshaler].
func (s Seconds) MarshalJSON() ([]byte, error) {
	return []byte(formatSeconds(time.Duration(s))), nil
}
