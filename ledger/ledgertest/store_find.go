package ledgertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

var findTests = map[string]func(*tester){
	"every filter chooses what it says, in both orders": func(t *tester) {
		all := t.population()
		for name, f := range filters(all) {
			for _, newest := range []bool{false, true} {
				f.Newest = newest
				if diff := cmp.Diff(ids(choose(all, f)), ids(t.find(f))); diff != "" {
					t.Errorf("%s, newest first %v (-want +got):\n%s", name, newest, diff)
				}
			}
		}
	},
	"what is due is what Operation.Due says": func(t *tester) {
		all := t.population()
		moments := map[time.Time]bool{}
		for _, op := range all {
			for _, at := range []time.Time{op.LeaseUntil, op.NextCheckAt, op.ExpiresAt} {
				if !at.IsZero() {
					moments[at], moments[at.Add(-time.Microsecond)] = true, true
				}
			}
		}
		for at := range moments {
			f := ledger.Filter{Due: at}
			if diff := cmp.Diff(ids(choose(all, f)), ids(t.find(f))); diff != "" {
				t.Errorf("due at %v (-want +got):\n%s", at, diff)
			}
		}
	},
	"pages through all, in both orders": func(t *tester) {
		all := t.population()
		for _, newest := range []bool{false, true} {
			want := ids(choose(all, ledger.Filter{Newest: newest}))
			var got []string
			f := ledger.Filter{Newest: newest, Limit: 3}
			for page := t.find(f); len(page) > 0; page = t.find(f) {
				if len(page) > f.Limit {
					t.Fatalf("a page has %d operations, want at most %d", len(page), f.Limit)
				}
				got = append(got, ids(page)...)
				f.After = got[len(got)-1]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("pages, newest first %v (-want +got):\n%s", newest, diff)
			}
		}
	},
	"finds whole operations": func(t *tester) {
		all := t.population()
		if diff := cmp.Diff(all, t.all()); diff != "" {
			t.Errorf("operations (-want +got):\n%s", diff)
		}
	},
	"an empty store has nothing": func(t *tester) { t.wantNothing() },
}

// population stores operations in every status, and says what they are, oldest first.
func (t *tester) population() []ledger.Operation {
	var all []ledger.Operation
	add := func(op ledger.Operation, steps ...step) {
		for _, s := range steps {
			m, err := s(op)
			op = t.record(m, err)
		}
		all = append(all, op)
	}
	i := 0
	next := func() ledger.Operation {
		i++
		op := strict(i)
		op.Intent.WorkflowID = fmt.Sprintf("case-%d", i%3)
		op.Intent.RunID = fmt.Sprintf("run-%d", i%4)
		if i%2 == 0 {
			op.Tenant, op.Action = "acme", "email.send"
		}
		return op
	}
	for range 2 {
		add(t.insert(next()))
		add(t.insert(next()), succeeds)
		add(t.insert(next()), succeedsForNow)
		add(t.insert(next()), succeedsForNow, isAsked)
		add(t.insert(next()), fails)
		add(t.insert(next()), fails, isAsked)
		add(t.insert(next()), isPostponed)
		add(t.insert(next()), isDoubted)
		add(t.insert(next()), isDoubted, isAsked)
		add(t.insert(next()), isDoubted, isClaimedUnsettled)
		add(t.plan(next()))
		add(t.plan(next()), isApproved)
		add(t.plan(next()), isDenied)
		add(t.plan(next()), isDenied, isReplanned)
	}
	other := next()
	c := aClaim(other)
	c.Provider = "smtp"
	add(t.add(other.Insert(c, nil, note("claimed"))))
	return all
}

func filters(all []ledger.Operation) map[string]ledger.Filter {
	acme, none := "acme", ""
	fs := map[string]ledger.Filter{
		"nothing":           {},
		"id":                {ID: all[3].ID},
		"an unknown id":     {ID: "op_none"},
		"key":               {Key: all[4].Key},
		"tenant":            {Tenant: &acme},
		"without tenant":    {Tenant: &none},
		"action":            {Action: "email.send"},
		"workflow":          {WorkflowID: "case-1"},
		"run":               {RunID: "run-2"},
		"provider":          {Provider: "smtp"},
		"open statuses":     {Statuses: []ledger.Status{ledger.Unknown, ledger.Executing}},
		"mixed statuses":    {Statuses: []ledger.Status{ledger.Succeeded, ledger.Unknown}},
		"review":            {Review: true},
		"due":               {Due: start.Add(hour)},
		"limit":             {Limit: 4},
		"after":             {After: all[9].ID},
		"after an unknown":  {After: "op_none"},
		"several at a time": {Tenant: &acme, Action: "email.send", WorkflowID: "case-2", Statuses: []ledger.Status{ledger.Succeeded, ledger.Planned}, After: all[1].ID},
		"due and a status":  {Due: start.Add(9 * hour), Statuses: []ledger.Status{ledger.Unknown}},
	}
	for _, s := range ledger.Statuses() {
		fs["status "+string(s)] = ledger.Filter{Statuses: []ledger.Status{s}}
	}
	return fs
}

// choose is what a Filter says, in Go.
func choose(all []ledger.Operation, f ledger.Filter) []ledger.Operation {
	ordered := slices.Clone(all)
	if f.Newest {
		slices.Reverse(ordered)
	}
	var chosen []ledger.Operation
	reached := f.After == ""
	for _, op := range ordered {
		fits := reached &&
			(f.ID == "" || op.ID == f.ID) &&
			(f.Key.IsZero() || op.Key == f.Key) &&
			(f.Tenant == nil || op.Tenant == *f.Tenant) &&
			(f.Action == "" || op.Action == f.Action) &&
			(f.WorkflowID == "" || op.Intent.WorkflowID == f.WorkflowID) &&
			(f.RunID == "" || op.Intent.RunID == f.RunID) &&
			(f.Provider == "" || op.Provider == f.Provider) &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, op.Status)) &&
			(!f.Review || op.Review.Open()) &&
			(f.Due.IsZero() || op.Due(f.Due))
		if fits && (f.Limit == 0 || len(chosen) < f.Limit) {
			chosen = append(chosen, op)
		}
		reached = reached || op.ID == f.After
	}
	return chosen
}

func ids(ops []ledger.Operation) []string {
	var names []string
	for _, op := range ops {
		names = append(names, op.ID)
	}
	return names
}
