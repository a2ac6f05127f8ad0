package webhook

import (
	"fmt"
	"slices"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// defaultTiming is a guess about a gateway that nobody described further. Its key has no
// window: there is none that would be right for all.
var defaultTiming = providers.Timing{
	Deadline: 30 * time.Second,
	Lease:    45 * time.Second,
}

// newTiming has the action's own timing, and the provider's where it says nothing.
func (a *action) newTiming(own, base providers.Timing) (providers.Timing, error) {
	if !a.key.idempotent() {
		if own.Window != 0 || own.Margin != 0 {
			return own, fmt.Errorf("window and margin belong to a key by which the gateway knows a repeat, and it has none")
		}
		base.Window, base.Margin = 0, 0
	}
	if a.key.ForEver {
		if own.Window != 0 || own.Margin != 0 {
			return own, fmt.Errorf("key.for_ever doesn't go with window and margin: keep one")
		}
		base.Window, base.Margin = 0, 0
	}
	margin := own.Margin + base.Margin // if there is one
	t, err := own.Or(base)
	if err != nil {
		return t, err
	}
	if a.key.idempotent() && !a.key.ForEver {
		if t.Window == 0 {
			return t, fmt.Errorf("window is missing: write how long the gateway knows a key, such as window: 24h, or key.for_ever: true if it never forgets one")
		}
		if margin == 0 {
			t.Margin = max(t.Lease, min(time.Hour, t.Window/4))
		}
		if t.Margin < t.Lease || t.Margin >= t.Window {
			return t, fmt.Errorf("margin (%s) is at least as long as lease (%s), which a last attempt may take, and shorter than window (%s)", t.Margin, t.Lease, t.Window)
		}
	}
	if a.lookup != nil && a.lookup.provesAbsence && t.Settle == 0 {
		return t, fmt.Errorf("settle is missing, and lookup.proves_absence needs it: write how long a request may go on running at the gateway after the connection broke, such as settle: 1m")
	}
	return t, nil
}

// Traits implements [providers.Provider]: what the configuration says of the gateway.
func (p *Provider) Traits(name string) (t providers.Traits, ok bool) {
	a := p.actions[name]
	if a == nil {
		return providers.Traits{}, false
	}
	t = providers.Traits{
		Deadline:     a.timing.Deadline,
		Lease:        a.timing.Lease,
		Settle:       a.timing.Settle,
		Window:       a.timing.Window,
		Margin:       a.timing.Margin,
		LimiterFirst: slices.ContainsFunc(a.rules, func(r ErrorRule) bool { return r.Status == 429 && r.Means == meansNotSent }),
		Currencies:   slices.Clone(a.currencies),
	}
	if a.key.idempotent() {
		t.Key, t.Reuse, t.CachesErrors = a.carrier(), providers.Reuse(orElse(a.key.Reuse, string(providers.ReuseActs))), !a.key.RetriesErrors
	}
	if a.lookup != nil {
		t.Lookup, t.LookupLag, t.ProvesAbsence = providers.LookupByKey, a.lookup.lag, a.lookup.provesAbsence
	}
	return t, true
}

func (a *action) carrier() providers.KeyCarrier {
	switch {
	case a.key.Header != "":
		return providers.KeyInHeader
	case a.key.Member != "":
		return providers.KeyInBody
	}
	return providers.KeyIsID
}

// states turns the lists of words around. Without a path to a status there are none.
func (s Statuses) states(expected bool) (map[string]ledger.State, error) {
	states := map[string]ledger.State{}
	for _, list := range []struct {
		name  string
		state ledger.State
		words []string
	}{{"accepted", ledger.Accepted, s.Accepted}, {"settled", ledger.Settled, s.Settled}, {"rejected", ledger.Rejected, s.Rejected}} {
		for _, w := range list.words {
			if !word.MatchString(w) {
				return nil, fmt.Errorf("statuses.%s has %q: a status is one word of letters, digits and any of . _ -", list.name, w)
			}
			if _, twice := states[w]; twice {
				return nil, fmt.Errorf("statuses has %s twice: a word means one thing", w)
			}
			states[w] = list.state
		}
	}
	switch {
	case !expected && len(states) > 0:
		return nil, fmt.Errorf("statuses is given, and answer.status isn't: write where the status stands in an answer")
	case !expected:
		return nil, nil
	case len(s.Accepted)+len(s.Settled) == 0:
		return nil, fmt.Errorf("statuses names no word for an object that is accepted or settled, and answer.status is given: without one, no answer is a success")
	}
	return states, nil
}
