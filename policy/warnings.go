package policy

import (
	"fmt"
	"maps"
	"slices"
)

// A Warning is something that may be meant, and that is worth a second thought.
type Warning struct {
	Path string // below the tool; empty: the tool itself
	Text string
}

// Warnings are what a careful reader of the policy would ask about.
func (p *Policy) Warnings() []Warning {
	var found []Warning
	warn := func(path, text string, args ...any) { found = append(found, Warning{path, fmt.Sprintf(text, args...)}) }
	if p.movesMoney() {
		if p.each == "" && len(p.above) == 0 {
			warn("approval", "money moves, and nobody has to agree first, however much it is")
		}
		if len(p.limitedCurrencies()) == 0 {
			warn("limits", "money moves, and nothing limits the amount in all; limits.per_day.amount would")
		}
	}
	for _, above := range p.above {
		for _, l := range p.Rules.Limits {
			if l.Currency == above.Currency && l.Max <= above.Minor {
				warn("approval.above."+above.Currency, "it is never reached: limits.%s allows only %s", l, l.Text)
				break
			}
		}
	}
	switch {
	case p.tool.AcceptUnverifiable && !p.unverifiable():
		warn("accept_unverifiable", "it says nothing here: the provider has a key or a look-up")
	case p.tool.AcceptUnverifiable && p.each == "":
		warn("accept_unverifiable", "whatever loses its answer has to be settled by a person, who may have nothing to go by")
	}
	return found
}

// limitedCurrencies are those with a bound on the amount, sorted.
func (p *Policy) limitedCurrencies() []string {
	found := map[string]bool{}
	for _, l := range p.Rules.Limits {
		if l.Currency != "" {
			found[l.Currency] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
