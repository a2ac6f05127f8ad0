package tbank

import (
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// defaultTiming: an id's window is for ever. Settle is not documented.
var defaultTiming = providers.Timing{
	Deadline: 30 * time.Second,
	Lease:    45 * time.Second,
	Settle:   time.Minute,
}

// Traits implements [providers.Provider].
func (p *Provider) Traits(action string) (t providers.Traits, ok bool) {
	if action != providers.PaymentOrderCreate {
		return providers.Traits{}, false
	}
	return providers.Traits{
		Deadline:      p.timing.Deadline,
		Lease:         p.timing.Lease,
		Settle:        p.timing.Settle,
		Key:           providers.KeyIsID,
		Window:        p.timing.Window,
		Margin:        p.timing.Margin,
		Reuse:         providers.ReuseReplayed,
		Lookup:        providers.LookupByKey,
		LookupLag:     time.Minute, // not documented
		ProvesAbsence: false,
		Currencies:    []string{rub},
	}, true
}

// statusAccepted is the word for a payment that was taken on: the answer to a request
// brings none.
const statusAccepted = "accepted"

// knownStatuses: EXECUTED is the bank's word; the others are not confirmed.
var knownStatuses = map[string]ledger.State{
	"IN_PROGRESS": ledger.Accepted,
	"EXECUTED":    ledger.Settled,
	"FAILED":      ledger.Rejected,
}

// word is what a status can be: it is kept in the ledger.
var word = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func (s Statuses) states() (map[string]ledger.State, error) {
	states, told := maps.Clone(knownStatuses), map[string]bool{}
	for state, words := range map[ledger.State][]string{
		ledger.Accepted: s.Accepted, ledger.Settled: s.Settled, ledger.Rejected: s.Rejected,
	} {
		for _, w := range words {
			if !word.MatchString(w) {
				return nil, fmt.Errorf("statuses.%s has %q: a status is one word of letters, digits and any of . _ -", state, w)
			}
			if told[w] {
				return nil, fmt.Errorf("statuses has %s twice: a word means one thing", w)
			}
			told[w], states[w] = true, state
		}
	}
	return states, nil
}
