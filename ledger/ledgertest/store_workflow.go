package ledgertest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

var workflowTests = map[string]func(*tester){
	"finds the newest revision, and the one with the same content": func(t *tester) {
		one := t.succeed(t.insert(revision(1, 1)))
		two := t.succeed(t.insert(revision(1, 2)))
		t.insert(revision(2, 3)) // of another action
		t.wantFound(ledger.Sought{BaseKey: one.BaseKey, Content: one.Content}, ledger.Found{Operation: &two, SameContent: &one})
		t.wantFound(ledger.Sought{BaseKey: one.BaseKey, Content: two.Content}, ledger.Found{Operation: &two, SameContent: &two})
		t.wantFound(ledger.Sought{BaseKey: one.BaseKey, Content: ledger.Hash(digest("new", 1))}, ledger.Found{Operation: &two})
		t.wantFound(ledger.Sought{BaseKey: one.BaseKey}, ledger.Found{Operation: &two})
	},
	"finds the newest revision whose content is the same": func(t *tester) {
		first, second := revision(1, 1), revision(1, 2)
		second.Content = first.Content
		t.succeed(t.insert(first))
		second = t.succeed(t.insert(second))
		third := t.insert(revision(1, 3))
		t.wantFound(ledger.Sought{BaseKey: first.BaseKey, Content: first.Content}, ledger.Found{Operation: &third, SameContent: &second})
	},
	"finds the newest alike operation under another base key": func(t *tester) {
		mine, older, newer, foreign := revision(1, 1), revision(2, 1), revision(3, 1), revision(4, 1)
		older.Alike, newer.Alike, foreign.Alike = mine.Alike, mine.Alike, mine.Alike
		foreign.Tenant = "other"
		mine = t.insert(mine)
		older, newer = t.insert(older), t.insert(newer)
		foreign = t.insert(foreign)
		sought := ledger.Sought{BaseKey: ledger.Key(digest("base", 9)), Alike: mine.Alike, Since: start}
		t.wantFound(sought, ledger.Found{Alike: &newer})
		sought.BaseKey = newer.BaseKey
		t.wantFound(sought, ledger.Found{Operation: &newer, Alike: &older})
		sought.Tenant = "other"
		t.wantFound(sought, ledger.Found{Operation: &newer, Alike: &foreign})
		sought.Tenant, sought.BaseKey = "", ledger.Key(digest("base", 9))
		sought.Since = newer.CreatedAt
		t.wantFound(sought, ledger.Found{}) // created after that, not at that moment
		sought.Since, sought.Alike = start, ledger.FieldHash{}
		t.wantFound(sought, ledger.Found{})
	},
	"a revision that comes between reading and writing is seen": func(t *tester) {
		t.succeed(t.insert(revision(1, 1)))
		intruded, last := false, 0
		t.begin(ledger.Sought{BaseKey: revision(1, 1).BaseKey}, func(f ledger.Found) (ledger.Move, error) {
			last = f.Operation.Intent.Revision
			if !intruded {
				intruded = true
				t.elsewhere(func() { t.insert(revision(1, 2)) })
			}
			op := revision(1, last+1)
			return op.Insert(aClaim(op), seal(op), note("claimed"))
		})
		if got := t.all(); last != 2 || len(got) != 3 {
			t.Errorf("the last decision saw revision %d of then %d operations, want 2 and 3", last, len(got))
		}
	},
	"an alike operation that comes between reading and writing is seen": func(t *tester) {
		mine, other := revision(1, 1), revision(2, 1)
		other.Alike = mine.Alike
		intruded, seen := false, false
		t.begin(ledger.Sought{BaseKey: mine.BaseKey, Alike: mine.Alike, Since: start.Add(-hour)}, func(f ledger.Found) (ledger.Move, error) {
			seen = f.Alike != nil
			if !intruded {
				intruded = true
				t.elsewhere(func() { t.insert(other) })
			}
			if seen {
				return mine.Plan(mine.CreatedAt, mine.CreatedAt.Add(hour), ledger.Approval{Reason: "alike"}, seal(mine), note("alike"))
			}
			return mine.Insert(aClaim(mine), seal(mine), note("claimed"))
		})
		if got := t.get(mine.ID); !seen || got == nil || got.Status != ledger.Planned {
			t.Errorf("the decision saw the alike operation: %v; it is stored as %v, want planned", seen, got)
		}
	},
	"refuses a second operation with one base key and revision": func(t *tester) {
		op := t.insert(revision(1, 1))
		other := revision(1, 2)
		other.Intent.Revision = 1
		t.refuses(other)
		t.wantStored(op)
	},
}

// wantFound demands that a decision sees exactly this.
func (t *tester) wantFound(sought ledger.Sought, want ledger.Found) {
	t.Helper()
	var got ledger.Found
	t.begin(sought, func(f ledger.Found) (ledger.Move, error) {
		got = f
		return ledger.Move{}, nil
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}
