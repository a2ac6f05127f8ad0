package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
)

// A test's world begins on 1 January 2000, UTC. What is sent then may be booked for two
// days; so the fourth is the first day whose end closes the question.
func january(day int) time.Time { return time.Date(2000, time.January, day, 0, 0, 0, 0, time.UTC) }

func everything(ledger.Operation, ledger.Payload) bool { return true }

// tillTheFourth is the least that proves absence.
var tillTheFourth = ledger.Coverage{From: january(0), Through: january(4), Shows: everything}

// amountOfArgs reads what args.prepare sealed.
func amountOfArgs(p ledger.Payload) (int64, string, error) {
	decimal, _, _ := strings.Cut(string(p.Arguments), "|")
	minor, err := strconv.ParseInt(strings.Replace(decimal, ".", "", 1), 10, 64)
	return minor, "USD", err
}

func statementOf(covered ledger.Coverage, entries ...ledger.StatementEntry) ledger.Statement {
	return ledger.Statement{
		Digest: "5f2c", Entries: entries, Covered: covered, Amounts: map[string]ledger.AmountOf{"refund": amountOfArgs},
	}
}

// bearing is a booked entry over the amount of theArgs.
func bearing(references ...string) ledger.StatementEntry {
	return ledger.StatementEntry{References: references, ID: "entry-7", Minor: 10000, Currency: "USD", Booked: january(2)}
}

func (e entryChange) of(entry ledger.StatementEntry) ledger.StatementEntry {
	e(&entry)
	return entry
}

type entryChange func(*ledger.StatementEntry)

var (
	pending  = entryChange(func(e *ledger.StatementEntry) { e.Pending, e.Booked = true, time.Time{} })
	reversed = entryChange(func(e *ledger.StatementEntry) { e.Reversed = true })
	dearer   = entryChange(func(e *ledger.StatementEntry) { e.Minor++ })
	foreign  = entryChange(func(e *ledger.StatementEntry) { e.Currency = "EUR" })
	untold   = entryChange(func(e *ledger.StatementEntry) { e.Minor, e.Currency = 0, "" })
	early    = entryChange(func(e *ledger.StatementEntry) { e.Booked = january(-1) })
	justIn   = entryChange(func(e *ledger.StatementEntry) { e.Booked = january(0) })
)

func (s *server) read(statement ledger.Statement) ledger.StatementOutcome {
	s.w.Helper()
	outcomes, err := s.ReconcileStatement(s.w.Context(), statement, anna)
	if err != nil || len(outcomes) != 1 {
		s.w.Fatalf("ReconcileStatement = %d outcomes, %v; want one", len(outcomes), err)
	}
	return outcomes[0]
}

func TestWhatAStatementProves(t *testing.T) {
	const unverifiable, contradiction = ledger.ReviewUnverifiable, ledger.ReviewContradiction
	uuid := func(k string) string {
		return k[:8] + "-" + k[8:12] + "-" + k[12:16] + "-" + k[16:20] + "-" + k[20:]
	}
	type entries = []ledger.StatementEntry
	for name, tc := range map[string]struct {
		covered ledger.Coverage
		entries func(key string) entries
		finding ledger.StatementFinding
		why     string
	}{
		"the key":                      {ledger.Coverage{}, func(k string) entries { return entries{bearing("INV-1", k)} }, ledger.Presence, ""},
		"the key as a UUID":            {ledger.Coverage{}, func(k string) entries { return entries{bearing(uuid(k))} }, ledger.Presence, ""},
		"an entry twice named":         {ledger.Coverage{}, func(k string) entries { return entries{bearing(k, uuid(k), k)} }, ledger.Presence, ""},
		"the key among others":         {tillTheFourth, func(k string) entries { return entries{bearing("INV-1"), bearing(k), dearer.of(bearing("INV-2"))} }, ledger.Presence, ""},
		"booked and announced":         {tillTheFourth, func(k string) entries { return entries{pending.of(bearing(k)), bearing(k)} }, ledger.Presence, ""},
		"booked the day before, there": {ledger.Coverage{}, func(k string) entries { return entries{justIn.of(bearing(k))} }, ledger.Presence, ""},

		"another amount":            {tillTheFourth, func(k string) entries { return entries{dearer.of(bearing(k))} }, ledger.Conflict, "other_amount"},
		"another currency":          {tillTheFourth, func(k string) entries { return entries{foreign.of(bearing(k))} }, ledger.Conflict, "other_amount"},
		"two entries":               {tillTheFourth, func(k string) entries { return entries{bearing(k), bearing(k)} }, ledger.Conflict, "two_entries"},
		"two, one in capitals":      {tillTheFourth, func(k string) entries { return entries{bearing(k), bearing(strings.ToUpper(k))} }, ledger.Conflict, "two_entries"},
		"money that came back":      {tillTheFourth, func(k string) entries { return entries{bearing(k), reversed.of(bearing(k))} }, ledger.Conflict, "reversed"},
		"only its coming back":      {tillTheFourth, func(k string) entries { return entries{reversed.of(bearing(k))} }, ledger.Conflict, "reversed"},
		"booked before it was sent": {tillTheFourth, func(k string) entries { return entries{early.of(bearing(k))} }, ledger.Conflict, "booked_too_early"},

		"nothing":                       {tillTheFourth, func(string) entries { return nil }, ledger.Absence, ""},
		"others' entries":               {tillTheFourth, func(string) entries { return entries{dearer.of(bearing("INV-1")), foreign.of(bearing("INV-2"))} }, ledger.Absence, ""},
		"its amount, before it":         {tillTheFourth, func(string) entries { return entries{early.of(bearing("INV-1"))} }, ledger.Absence, ""},
		"its amount, coming in":         {tillTheFourth, func(string) entries { return entries{reversed.of(bearing("INV-1"))} }, ledger.Absence, ""},
		"its amount, under no name":     {tillTheFourth, func(string) entries { return entries{bearing()} }, ledger.Unchanged, "look_alike"},
		"its amount, under another":     {tillTheFourth, func(string) entries { return entries{bearing("INV-1")} }, ledger.Unchanged, "look_alike"},
		"its amount, announced":         {tillTheFourth, func(string) entries { return entries{pending.of(bearing())} }, ledger.Unchanged, "look_alike"},
		"an entry without an amount":    {tillTheFourth, func(string) entries { return entries{untold.of(bearing())} }, ledger.Unchanged, "look_alike"},
		"the key in capitals":           {tillTheFourth, func(k string) entries { return entries{dearer.of(bearing(strings.ToUpper(k)))} }, ledger.Unchanged, "look_alike"},
		"the key, announced":            {tillTheFourth, func(k string) entries { return entries{pending.of(bearing(k))} }, ledger.Unchanged, "pending"},
		"the key, of another amount":    {tillTheFourth, func(k string) entries { return entries{pending.of(dearer.of(bearing(k)))} }, ledger.Unchanged, "pending"},
		"the key, without an amount":    {tillTheFourth, func(k string) entries { return entries{untold.of(bearing(k))} }, ledger.Unchanged, "amount_missing"},
		"the key in a longer reference": {ledger.Coverage{}, func(k string) entries { return entries{bearing("ref " + k)} }, ledger.Unchanged, "not_covered"},

		"nothing, and no days":         {ledger.Coverage{}, func(string) entries { return nil }, ledger.Unchanged, "not_covered"},
		"nothing, of another account":  {ledger.Coverage{From: january(0), Through: january(4)}, func(string) entries { return nil }, ledger.Unchanged, "not_covered"},
		"nothing, till too early":      {ledger.Coverage{From: january(0), Through: january(3), Shows: everything}, func(string) entries { return nil }, ledger.Unchanged, "not_covered"},
		"nothing, from too late":       {ledger.Coverage{From: january(1), Through: january(9), Shows: everything}, func(string) entries { return nil }, ledger.Unchanged, "not_covered"},
		"nothing, from nobody knows":   {ledger.Coverage{Through: january(9), Shows: everything}, func(string) entries { return nil }, ledger.Unchanged, "not_covered"},
		"nothing, and a slow bank":     {ledger.Coverage{From: january(0), Through: january(4), Margin: 72 * time.Hour, Shows: everything}, func(string) entries { return nil }, ledger.Unchanged, "not_covered"},
		"nothing, from a slow bank":    {ledger.Coverage{From: january(0), Through: january(5), Margin: 72 * time.Hour, Shows: everything}, func(string) entries { return nil }, ledger.Absence, ""},
		"nothing, till the margin end": {ledger.Coverage{From: january(0), Through: january(2), Margin: time.Nanosecond, Shows: everything}, func(string) entries { return nil }, ledger.Absence, ""},
	} {
		inWorldNamed(t, name, func(t *world) {
			s := t.start()
			before := t.inReview(s, losesRequest)
			pass(10 * 24 * time.Hour)
			statement := statementOf(tc.covered, tc.entries(before.ProviderKey)...)
			got := s.read(statement)
			if got.Finding != tc.finding || got.Why != tc.why {
				t.Fatalf("the finding is %q (%s), want %q (%s)", got.Finding, got.Why, tc.finding, tc.why)
			}
			after := t.now(before.ID)
			if diff := cmp.Diff(after, got.Operation); diff != "" {
				t.Errorf("the outcome's operation isn't what is stored (-stored +outcome):\n%s", diff)
			}
			status, review, alarms := ledger.Unknown, unverifiable, 0
			switch tc.finding {
			case ledger.Presence:
				status, review = ledger.Succeeded, ""
			case ledger.Conflict:
				review, alarms = contradiction, 1
			case ledger.Absence:
				review = ""
			case ledger.Unchanged:
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("it proves nothing, and changed (-before +after):\n%s", diff)
				}
			}
			t.wantStatus(before.ID, status, review, 0)
			if got := t.alarmed(contradiction); got != alarms {
				t.Errorf("%d alarms, want %d", got, alarms)
			}
			// The same again changes nothing more.
			if again, err := s.ReconcileStatement(t.Context(), statement, anna); err != nil || len(again) > 0 && again[0].Finding != ledger.Unchanged {
				t.Errorf("the second time: %+v, %v; want it unchanged", again, err)
			}
			if diff := cmp.Diff(after, t.now(before.ID)); diff != "" {
				t.Errorf("the second time changed it (-first +second):\n%s", diff)
			}
			// What may be sent follows from absence alone.
			s.sweep()
			requests := 1
			if tc.finding == ledger.Absence {
				requests = 2
			}
			if got, _ := t.provider.tally(); got != requests {
				t.Errorf("the provider got %d requests, want %d", got, requests)
			}
		})
	}
}

func TestAStatementLeavesItsEvidence(t *testing.T) {
	for name, tc := range map[string]struct {
		entries func(key string) []ledger.StatementEntry
		reason  string
		want    map[string]string
	}{
		"presence": {func(k string) []ledger.StatementEntry { return []ledger.StatementEntry{bearing(k)} }, "found_on_statement",
			map[string]string{"statement": "5f2c", "entry": "entry-7", "booked": "2000-01-02", "by": "anna", "reason": anna.Reason}},
		"conflict": {func(k string) []ledger.StatementEntry { return []ledger.StatementEntry{dearer.of(bearing(k))} }, "contradiction_on_statement",
			map[string]string{"statement": "5f2c", "entry": "entry-7", "found": "other_amount", "by": "anna", "reason": anna.Reason}},
		"absence": {func(string) []ledger.StatementEntry { return nil }, "absent_on_statement",
			map[string]string{"statement": "5f2c", "covered_from": "1999-12-31", "covered_through": "2000-01-04", "by": "anna", "reason": anna.Reason}},
		"an entry's name that can't be kept": {func(k string) []ledger.StatementEntry {
			e := bearing(k)
			e.ID = "line\nbreak"
			return []ledger.StatementEntry{e}
		}, "found_on_statement", map[string]string{"statement": "5f2c", "entry": "", "booked": "2000-01-02", "by": "anna", "reason": anna.Reason}},
		"an entry's name that is a novel": {func(k string) []ledger.StatementEntry {
			e := bearing(k)
			e.ID = strings.Repeat("x", 129)
			return []ledger.StatementEntry{e}
		}, "found_on_statement", map[string]string{"statement": "5f2c", "entry": "", "booked": "2000-01-02", "by": "anna", "reason": anna.Reason}},
	} {
		inWorldNamed(t, name, func(t *world) {
			s := t.start()
			op := t.inReview(s, losesRequest)
			pass(10 * 24 * time.Hour)
			s.read(statementOf(tillTheFourth, tc.entries(op.ProviderKey)...))
			last := t.now(op.ID).Last
			var got map[string]string
			if err := json.Unmarshal(last.Evidence, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || last.Actor != "person:anna" || last.Reason != tc.reason {
				t.Errorf("%s says %q; evidence (-want +got):\n%s", last.Actor, last.Reason, diff)
			}
		})
	}
}

func TestASuccessOnAStatementIsReplayed(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		op := t.inReview(s, losesReply)
		s.read(statementOf(ledger.Coverage{}, bearing(op.ProviderKey)))
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerSucceeded, 1)
		if !a.Replayed || a.Operation.ProviderStatus != "booked" {
			t.Errorf("the next call got %+v", a)
		}
	})
}

// An attempt that absence allowed is in doubt again like any other.
func TestAbsenceAllowsOneAttempt(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		op := t.inReview(s, losesRequest)
		pass(10 * 24 * time.Hour)
		s.read(statementOf(tillTheFourth))
		t.provider.will(losesReply)
		s.sweep()
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewUnverifiable, 1)
		if got := s.read(statementOf(tillTheFourth)); got.Why != "not_covered" {
			t.Errorf("the old statement says %q (%s) of the new attempt, want not_covered", got.Finding, got.Why)
		}
		s.sweep()
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewUnverifiable, 1)
	})
}

// Another statement shows, before the attempt that was allowed is made, what can't be.
func TestAConflictTakesAnAllowedAttemptBack(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		op := t.inReview(s, losesRequest)
		pass(10 * 24 * time.Hour)
		s.read(statementOf(tillTheFourth))
		s.read(statementOf(ledger.Coverage{}, dearer.of(bearing(op.ProviderKey))))
		s.sweep()
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 0)
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewContradiction, 0)
		if due := t.now(op.ID).NextCheckAt; !due.IsZero() {
			t.Errorf("automation is due at %v, want never: a person decides", due)
		}
	})
}

// A key that the provider had kept an error under is still the operation's name.
func TestEveryGenerationsKeyIsTheOperations(t *testing.T) {
	for generation := range 2 {
		inWorldNamed(t, fmt.Sprint(generation), func(t *world) {
			t.provider.traits.CachesErrors = true
			s := t.start()
			op := t.inReview(s, keepsError)
			pass(lease + settle + lag)
			if _, err := s.Resolve(t.Context(), op.ID, ledger.Retry, "", 1, anna); err != nil {
				t.Fatal(err)
			}
			t.provider.will(losesReply)
			s.sweep()
			if got := t.now(op.ID).Generation; got != 1 {
				t.Fatalf("the generation is %d, want 1", got)
			}
			got := s.read(statementOf(ledger.Coverage{}, bearing(ledger.ProviderKey(op.Key, generation))))
			if got.Finding != ledger.Presence {
				t.Errorf("the finding is %q (%s), want succeeded", got.Finding, got.Why)
			}
		})
	}
}

func TestAStatementLosesToWhoeverWasFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(t *world, other *server, op ledger.Operation)
		status    ledger.Status
		why       string
	}{
		"a success": {func(t *world, other *server, op ledger.Operation) {
			if _, err := other.Resolve(t.Context(), op.ID, ledger.Happened, "re_1", 1, anna); err != nil {
				t.Error(err)
			}
		}, ledger.Succeeded, "moved"},
		"another attempt": {func(t *world, other *server, op ledger.Operation) {
			if _, err := other.Resolve(t.Context(), op.ID, ledger.Retry, "", 1, anna); err != nil {
				t.Error(err)
			}
			t.provider.will(losesReply)
			other.sweep()
		}, ledger.Unknown, "not_covered"},
	} {
		inWorldNamed(t, name, func(t *world) {
			s, other, met := t.start(), t.start(), false
			op := t.inReview(s, losesRequest)
			other.Actors = s.Actors
			pass(10 * 24 * time.Hour)
			s.failing.Before = func(c ledgertest.Call) error {
				if c.Method == "Record" && !met {
					met = true
					tc.meanwhile(t, other, op)
				}
				return nil
			}
			got := s.read(statementOf(tillTheFourth))
			if !met || got.Finding != ledger.Unchanged || got.Why != tc.why {
				t.Errorf("the finding is %q (%s), want unchanged (%s)", got.Finding, got.Why, tc.why)
			}
			before := t.now(op.ID)
			if before.Status != tc.status {
				t.Errorf("it is %q, want %q", before.Status, tc.status)
			}
			s.sweep()
			if diff := cmp.Diff(before, t.now(op.ID)); diff != "" {
				t.Errorf("the sweep changed it (-before +after):\n%s", diff)
			}
		})
	}
}

// An entry over the same amount that bears another operation's name is that one's.
func TestAnotherOperationsEntryIsNoLookAlike(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		other := s.call(strictly("b", theArgs)).Operation
		op := t.inReview(s, losesRequest)
		pass(10 * 24 * time.Hour)
		got := s.read(statementOf(tillTheFourth, bearing(other.ProviderOperationID), bearing(other.ProviderKey)))
		if got.Finding != ledger.Absence || got.Operation.ID != op.ID {
			t.Errorf("the finding on %s is %q (%s), want absent on %s", got.Operation.ID, got.Finding, got.Why, op.ID)
		}
	})
}

func TestAStatementIsAboutMoneyThatCanBeRead(t *testing.T) {
	inWorldNamed(t, "other action types are left alone", func(t *world) {
		s := t.start()
		op := t.inReview(s, losesReply)
		st := statementOf(tillTheFourth, bearing(op.ProviderKey))
		st.Amounts = map[string]ledger.AmountOf{"payment_order.create": amountOfArgs}
		pass(10 * 24 * time.Hour)
		if outcomes, err := s.ReconcileStatement(t.Context(), st, anna); err != nil || len(outcomes) != 0 {
			t.Errorf("ReconcileStatement = %+v, %v; want nothing", outcomes, err)
		}
		t.wantStatus(op.ID, ledger.Unknown, ledger.ReviewUnverifiable, 1)
	})
	inWorldNamed(t, "an amount that can't be read", func(t *world) {
		s := t.start()
		op := t.inReview(s, losesReply)
		st := statementOf(tillTheFourth, bearing(op.ProviderKey))
		st.Amounts["refund"] = func(ledger.Payload) (int64, string, error) { return 0, "", errors.New("jane@example.com") }
		pass(10 * 24 * time.Hour)
		if got := s.read(st); got.Finding != ledger.Unchanged || got.Why != "payload_unreadable" {
			t.Errorf("the finding is %q (%s), want unchanged (payload_unreadable)", got.Finding, got.Why)
		}
	})
	inWorldNamed(t, "where nobody serves the action type, nothing is absent", func(t *world) {
		s := t.start()
		t.inReview(s, losesRequest)
		s.Actors = nil
		pass(10 * 24 * time.Hour)
		if got := s.read(statementOf(tillTheFourth)); got.Finding != ledger.Unchanged || got.Why != "not_covered" {
			t.Errorf("the finding is %q (%s), want unchanged (not_covered)", got.Finding, got.Why)
		}
	})
}

func TestAStatementThatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		covered ledger.Coverage
		who     ledger.Person
	}{
		"brought by nobody":           {ledger.Coverage{}, ledger.Person{}},
		"ends before it begins":       {ledger.Coverage{From: january(3), Through: january(2), Shows: everything}, anna},
		"closed through a day to be":  {ledger.Coverage{From: january(0), Through: january(4), Shows: everything}, anna},
		"closed through the new year": {ledger.Coverage{From: january(0), Through: january(400), Shows: everything}, anna},
	} {
		inWorldNamed(t, name, func(t *world) {
			s := t.start()
			op := t.inReview(s, losesRequest)
			pass(3*24*time.Hour + 9*time.Hour) // the 4th, where the sun rises first: still that day
			_, err := s.ReconcileStatement(t.Context(), statementOf(tc.covered, bearing(op.ProviderKey)), tc.who)
			t.wantUndecided(op, err)
		})
	}
}

// A stingy store returns two operations at a time.
type stingy struct{ ledger.Store }

func (s stingy) Find(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	f.Limit = min(f.Limit, 2)
	return s.Store.Find(ctx, f)
}

// More unknown operations than one reading brings, each settled by its own entry, and
// one whose look-alike a later reading explains.
func TestAStatementReachesEveryOperation(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.is(false, false)
		s := t.start()
		s.Store = stingy{s.Store}
		t.provider.will(losesRequest)
		lost := s.call(strictly("lost", theArgs)).Operation
		var entries []ledger.StatementEntry
		for i := range 6 {
			t.provider.will(losesReply)
			op := s.call(strictly(fmt.Sprint(i), theArgs)).Operation
			entries = append(entries, bearing(op.ProviderKey))
		}
		pass(10 * 24 * time.Hour)
		outcomes, err := s.ReconcileStatement(t.Context(), statementOf(tillTheFourth, entries...), anna)
		if err != nil || len(outcomes) != 7 {
			t.Fatalf("%d outcomes, error %v; want 7", len(outcomes), err)
		}
		for _, o := range outcomes {
			want := ledger.Presence
			if o.Operation.ID == lost.ID {
				want = ledger.Absence
			}
			if o.Finding != want {
				t.Errorf("%s is %q (%s), want %q", o.Operation.ID, o.Finding, o.Why, want)
			}
		}
	})
}

// Names and remittance texts stand beside the references in many an export.
func TestNothingPersonalStaysOfAStatement(t *testing.T) {
	inWorld(t, func(t *world) {
		s := t.start()
		op := t.inReview(s, losesRequest)
		pass(10 * 24 * time.Hour)
		s.read(statementOf(tillTheFourth, dearer.of(bearing("Jane Doe", "rent for May"))))
		outcome := s.read(statementOf(ledger.Coverage{}, bearing("Jane Doe", op.ProviderKey, "rent for May")))
		history, err := t.store.History(t.Context(), op.ID)
		if err != nil {
			t.Fatal(err)
		}
		if outcome.Finding != ledger.Presence {
			t.Fatalf("the finding is %q (%s), want succeeded", outcome.Finding, outcome.Why)
		}
		all := fmt.Sprintf("%+v %+v %+v %s", outcome, history, t.now(op.ID), t.now(op.ID).Last.Evidence)
		for _, h := range history {
			all += string(h.Evidence)
		}
		for _, personal := range []string{"Jane", "rent"} {
			if strings.Contains(all, personal) {
				t.Errorf("%q is kept: %s", personal, all)
			}
		}
	})
}
