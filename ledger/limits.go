package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Limit bounds how much of one action type may happen. What is reserved counts, from
// the claim on, until it is proven that nothing happened; a replay costs nothing.
type Limit struct {
	Scope    LimitScope
	Currency string // empty: operations are counted; else amounts in this currency
	Max      int64  // operations, or minor units of the currency
	Text     string // Max as people write it, such as "500.00 USD"
}

// A LimitScope says what a [Limit] is counted over.
type LimitScope string

const (
	// PerRun counts one run of a workflow; the workflow where the call names no run. A
	// call that names neither isn't counted by it.
	PerRun LimitScope = "run"
	// PerWorkflow counts one workflow. A call that names none isn't counted by it.
	PerWorkflow LimitScope = "workflow"
	// PerTenant counts one tenant's calendar day.
	PerTenant LimitScope = "tenant"
	// PerDay counts the calendar day of all tenants together.
	PerDay LimitScope = "day"
)

// String is the limit's name in the configuration, such as "per_day.amount.USD".
func (l Limit) String() string {
	if l.Currency == "" {
		return "per_" + string(l.Scope) + ".count"
	}
	return "per_" + string(l.Scope) + ".amount." + l.Currency
}

// An Amount is money in minor units, the zero value none.
type Amount struct {
	Minor    int64
	Currency string // ISO 4217
}

// A Taking is what a move takes of a limit, or gives back.
type Taking struct {
	Bucket string // names the limit's count, the same for all operations that share it
	N      int64
	Max    int64 // never more than that in all; 0: no bound
}

// A reservation is one entry of [Operation.Reserved]: which count an operation is in. Written
// "run", "day@2026-12-01", or "day$2026-12-01" for its amount.
type reservation struct {
	scope  LimitScope
	amount bool
	day    string
}

func (r reservation) String() string {
	mark := "@"
	if r.amount {
		mark = "$"
	} else if r.day == "" {
		mark = ""
	}
	return string(r.scope) + mark + r.day
}

func parseReservation(s string) reservation {
	i := strings.IndexAny(s, "@$")
	if i < 0 {
		return reservation{scope: LimitScope(s)}
	}
	return reservation{scope: LimitScope(s[:i]), amount: s[i] == '$', day: s[i+1:]}
}

// reservation is the count that op is in for a limit at a time; false means that the
// limit doesn't concern it.
func (op *Operation) reservation(l Limit, at time.Time, zone *time.Location) (reservation, bool) {
	r := reservation{scope: l.Scope, amount: l.Currency != ""}
	if r.amount && l.Currency != op.Amount.Currency {
		return r, false
	}
	switch l.Scope {
	case PerRun:
		return r, op.Intent.RunID != "" || op.Intent.WorkflowID != ""
	case PerWorkflow:
		return r, op.Intent.WorkflowID != ""
	case PerTenant, PerDay:
		r.day = at.In(zone).Format(time.DateOnly)
		return r, true
	}
	return r, false
}

// taking is how much op takes for a reservation, and of what.
func (op *Operation) taking(r reservation) Taking {
	t := Taking{N: 1}
	name := [6]string{op.Action, string(r.scope), op.Tenant, "", r.day}
	switch r.scope {
	case PerRun:
		name[3] = "run:" + op.Intent.RunID
		if op.Intent.RunID == "" {
			name[3] = "workflow:" + op.Intent.WorkflowID
		}
	case PerWorkflow:
		name[3] = op.Intent.WorkflowID
	case PerDay:
		name[2] = ""
	case PerTenant:
	}
	if r.amount {
		t.N, name[5] = op.Amount.Minor, op.Amount.Currency
	}
	bucket, err := json.Marshal(name) // so that no id can look like another's name
	if err != nil {
		panic("ledger: strings that can't be rendered: " + err.Error())
	}
	t.Bucket = string(bucket)
	return t
}

// holds reports whether op counts: it may have its effect, or has had it.
func (op *Operation) holds() bool {
	return op.Reserved != "" && (op.Status == Executing || op.Status == Unknown || op.Status == Succeeded)
}

// takings are what op reserved, in the order of the buckets' names.
func (op *Operation) takings() []Taking {
	var all []Taking
	for entry := range strings.SplitSeq(op.Reserved, ",") {
		all = append(all, op.taking(parseReservation(entry)))
	}
	slices.SortFunc(all, func(a, b Taking) int { return strings.Compare(a.Bucket, b.Bucket) })
	return all
}

// Reserve is what the move takes of limits, sorted by bucket. A store adds it in the
// move's transaction, and carries the move out only if no bound is passed.
func (m Move) Reserve() []Taking {
	if m.from.holds() || !m.to.holds() {
		return nil
	}
	all := m.to.takings()
	for i := range all {
		all[i].Max = m.bounds[all[i].Bucket]
	}
	return all
}

// Release is what the move gives back to limits, sorted by bucket: it is proven that
// nothing happened.
func (m Move) Release() []Taking {
	if !m.from.holds() || m.to.holds() {
		return nil
	}
	return m.from.takings()
}

// An Allowance is what a claim takes of limits, and how far it may.
type Allowance struct {
	Reserved string           // see Operation.Reserved
	Bounds   map[string]int64 // by bucket
}

// allow says what op, claimed now, takes of its limits; the refusal says which one is
// used up.
func (r Rules) allow(op Operation, used map[string]int64, now time.Time) (Allowance, *Refusal) {
	a := Allowance{Bounds: map[string]int64{}}
	if refusal := r.unbounded(op); refusal != nil {
		return a, refusal
	}
	var entries []string
	for _, l := range r.Limits {
		entry, concerns := op.reservation(l, now, r.zone())
		if !concerns {
			continue
		}
		t := op.taking(entry)
		if used[t.Bucket]+t.N > l.Max {
			return a, r.exceeded(op, l, now)
		}
		entries = append(entries, entry.String())
		a.Bounds[t.Bucket] = l.Max
	}
	a.Reserved = strings.Join(entries, ",")
	return a, nil
}

// unbounded refuses an amount in a currency that a scope doesn't bound, where it bounds others: a
// model could pass the limit by choosing another currency.
func (r Rules) unbounded(op Operation) *Refusal {
	if op.Amount.Currency == "" {
		return nil
	}
	bounds := map[LimitScope]bool{}
	for _, l := range r.Limits {
		if l.Currency != "" {
			bounds[l.Scope] = bounds[l.Scope] || l.Currency == op.Amount.Currency
		}
	}
	for _, l := range r.Limits {
		if known, bounded := bounds[l.Scope]; bounded && !known {
			field := "limits.per_" + string(l.Scope) + ".amount." + op.Amount.Currency
			return &Refusal{Code: LimitExceeded, Fields: []string{field}, Message: field + " isn't set while other currencies have a limit, so nothing in this currency is let through. " +
				"It takes the operator to set it."}
		}
	}
	return nil
}

// buckets names the counts that a claim of op would be in.
func (r Rules) buckets(op Operation, now time.Time) []string {
	var names []string
	for _, l := range r.Limits {
		if entry, concerns := op.reservation(l, now, r.zone()); concerns {
			names = append(names, op.taking(entry).Bucket)
		}
	}
	return names
}

func (r Rules) exceeded(op Operation, l Limit, now time.Time) *Refusal {
	refusal := &Refusal{Code: LimitExceeded, Fields: []string{"limits." + l.String()}}
	frees := "It frees only if one of them is proven not to have happened, or if an operator raises the limit."
	if l.Scope == PerDay || l.Scope == PerTenant {
		midnight := r.midnight(now)
		refusal.RetryAfter = midnight.Sub(now)
		frees = "It frees at " + midnight.Format(time.RFC3339) + "."
	}
	scope := map[LimitScope]string{PerRun: "run", PerWorkflow: "workflow", PerTenant: "tenant and day", PerDay: "day"}[l.Scope]
	refusal.Message = fmt.Sprintf("%s allows %s of %s per %s, and this call would pass that. %s", refusal.Fields[0], l.bound(), op.Action, scope, frees)
	return refusal
}

func (l Limit) bound() string {
	if l.Text != "" {
		return l.Text
	}
	return strings.TrimSpace(fmt.Sprint(l.Max, " ", l.Currency))
}
