package policy

import (
	"maps"
	"slices"
	"strconv"

	"github.com/onceward/onceward/ledger"
)

// limits reads the bounds, from the narrowest span to the widest.
func (p *Policy) limits() error {
	l := p.tool.Limits
	if l.PerRun == nil || l.PerRun.Count == nil {
		p.Rules.Limits = append(p.Rules.Limits, count(ledger.PerRun, defaultPerRun))
	}
	for _, span := range []struct {
		scope  ledger.LimitScope
		bounds *Bounds
	}{{ledger.PerRun, l.PerRun}, {ledger.PerWorkflow, l.PerWorkflow}, {ledger.PerTenant, l.PerTenant}, {ledger.PerDay, l.PerDay}} {
		if span.bounds == nil {
			continue
		}
		if err := p.bounds(span.scope, *span.bounds); err != nil {
			return err
		}
	}
	return p.overlapping()
}

func (p *Policy) bounds(scope ledger.LimitScope, b Bounds) error {
	path := "limits.per_" + string(scope)
	switch {
	case b.Count == nil && b.Amount == nil:
		return refuse(path, "it has no bound: write count, amount or both")
	case b.Count != nil && *b.Count < 1:
		return refuse(path+".count", "a limit is at least 1; to let nothing happen without a person, write approval: always")
	case b.Amount != nil && !p.movesMoney():
		return refuse(path+".amount", "%s moves no money; write count", p.action)
	case b.Amount != nil && len(b.Amount) == 0:
		return refuse(path+".amount", "it names no amount: write one per currency, such as {USD: \"500.00\"}")
	}
	if b.Count != nil {
		p.Rules.Limits = append(p.Rules.Limits, count(scope, int64(*b.Count)))
	}
	for _, code := range slices.Sorted(maps.Keys(b.Amount)) {
		m, err := money(path+".amount", code, b.Amount[code])
		if err != nil {
			return err
		}
		p.Rules.Limits = append(p.Rules.Limits, ledger.Limit{Scope: scope, Currency: m.Currency, Max: m.Minor, Text: m.Decimal() + " " + m.Currency})
	}
	return nil
}

func count(scope ledger.LimitScope, n int64) ledger.Limit {
	return ledger.Limit{Scope: scope, Max: n, Text: strconv.FormatInt(n, 10)}
}

// overlapping refuses a bound on one tenant's day that the bound on all tenants' day always
// meets first: whoever wrote it meant something else.
func (p *Policy) overlapping() error {
	for _, day := range p.Rules.Limits {
		if day.Scope != ledger.PerDay {
			continue
		}
		for _, tenant := range p.Rules.Limits {
			if tenant.Scope == ledger.PerTenant && tenant.Currency == day.Currency && tenant.Max >= day.Max {
				return refuse("limits."+tenant.String(), "it is never reached: limits.%s allows %s to all tenants together; lower it or remove it", day, day.Text)
			}
		}
	}
	return nil
}
