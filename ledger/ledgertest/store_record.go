package ledgertest

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// lives are stories of operations: what each step leaves must be what is stored.
var lives = map[string]struct {
	planned bool
	steps   []step
}{
	"succeeds":                     {steps: []step{succeeds}},
	"succeeds, may turn rejected":  {steps: []step{succeedsForNow, conflicts, isAsked}},
	"is refused":                   {steps: []step{fails, conflicts}},
	"is refused, late success":     {steps: []step{fails, succeeds}},
	"is tried again":               {steps: []step{isPostponed, isClaimed, isPostponed, fails}},
	"postponed, late success":      {steps: []step{isPostponed, succeeds}},
	"is sent again under its key":  {steps: []step{isDoubted, isClaimedUnsettled, isDoubted, succeeds}},
	"unsettled attempt succeeds":   {steps: []step{isDoubted, isClaimedUnsettled, succeeds}},
	"was absent, is tried anew":    {steps: []step{isDoubted, isClaimedAnew, isPostponed, isClaimed, succeeds}},
	"was doubted, then rejected":   {steps: []step{isDoubted, fails}},
	"is asked about":               {steps: []step{isAsked, isLetGo, isClaimed, succeeds}},
	"is asked about while doubted": {steps: []step{isDoubted, isAsked, fails}},
	"is approved":                  {planned: true, steps: []step{isApproved, isClaimed, succeeds}},
	"is denied":                    {planned: true, steps: []step{isDenied}},
	"gets new arguments":           {planned: true, steps: []step{isDenied, isReplanned, isApproved, isClaimed, succeeds}},
}

var recordTests = map[string]func(*tester){
	"keeps each step of each life, its history and its payload": func(t *tester) {
		i := 0
		for name, life := range lives {
			i++
			op := strict(i)
			if life.planned {
				op = t.plan(op)
			} else {
				op = t.insert(op)
			}
			payload := string(seal(op))
			history := []ledger.Transition{line("", op)}
			t.wantAt(name, op, payload, history)
			for _, step := range life.steps {
				m, err := step(op)
				from := op.Status
				op = t.record(m, err)
				history = append(history, line(from, op))
				if m.Seal() != nil {
					payload = string(m.Seal())
				}
				if op.Status.Final() {
					payload = ""
				}
				t.wantAt(name, op, payload, history)
			}
		}
	},
	"keeps every field": func(t *tester) {
		op := t.full()
		if unset := unsetFields(reflect.ValueOf(op), ""); !cmp.Equal(unset, []string{".Pruned"}) {
			t.Fatalf("the test leaves fields unset: %v; only Pruned can't be set by a move", unset)
		}
		t.wantStored(op)
	},
	"clears every field that a step clears": func(t *tester) {
		op := t.full()
		op = t.record(op.Observe(op.UpdatedAt, ledger.Note{Actor: "person:anna"}, func(o *ledger.Operation) {
			kept := *o
			*o = ledger.Operation{
				ID: kept.ID, Key: kept.Key, BaseKey: kept.BaseKey, Tenant: kept.Tenant, Action: kept.Action, Intent: kept.Intent,
				Fingerprint: kept.Fingerprint, Content: kept.Content, Alike: kept.Alike, Fields: kept.Fields, Amount: kept.Amount,
				Status: kept.Status, Attempts: kept.Attempts, Moves: kept.Moves, Last: kept.Last,
				Provider: kept.Provider, ProviderKey: kept.ProviderKey, Generation: kept.Generation,
				NextCheckAt: kept.NextCheckAt, CreatedAt: kept.CreatedAt, UpdatedAt: kept.UpdatedAt,
			}
		}))
		t.wantStored(op)
	},
	"a stale move changes nothing": func(t *tester) {
		op := t.insert(strict(1))
		done := t.succeed(op)
		m, err := fails(op)
		if err != nil {
			t.Fatal(err)
		}
		t.wantStale(m)
		t.wantStored(done)
		if got := len(t.history(op.ID)); got != 2 {
			t.Errorf("the history has %d lines, want 2", got)
		}
	},
	"an insert of what exists is stale": func(t *tester) {
		op := t.insert(strict(1))
		m, err := strict(1).Insert(aClaim(strict(1)), nil, note("claimed"))
		if err != nil {
			t.Fatal(err)
		}
		t.wantStale(m)
		t.wantStored(op)
	},
	"a move of what doesn't exist is stale": func(t *tester) {
		m, _ := strict(1).Insert(aClaim(strict(1)), nil, note("claimed"))
		m, err := succeeds(m.To())
		if err != nil {
			t.Fatal(err)
		}
		t.wantStale(m)
		t.wantNothing()
	},
	"an unknown operation has no payload and no history": func(t *tester) {
		if got := t.sealed("op_none"); got != "" {
			t.Errorf("Sealed = %q, want nothing", got)
		}
		if got := t.history("op_none"); len(got) != 0 {
			t.Errorf("History = %v, want nothing", got)
		}
	},
}

func (t *tester) wantStale(m ledger.Move) {
	t.Helper()
	if err := t.store.Record(t.Context(), m); !errors.Is(err, ledger.ErrStale) {
		t.Errorf("Record = %v, want ErrStale", err)
	}
}

func (t *tester) wantAt(life string, op ledger.Operation, payload string, history []ledger.Transition) {
	t.Helper()
	if diff := cmp.Diff(&op, t.get(op.ID)); diff != "" {
		t.Errorf("%s, at %s: stored operation (-want +got):\n%s", life, op.Last.Reason, diff)
	}
	if diff := cmp.Diff(history, t.history(op.ID)); diff != "" {
		t.Errorf("%s, at %s: history (-want +got):\n%s", life, op.Last.Reason, diff)
	}
	if got := t.sealed(op.ID); got != payload {
		t.Errorf("%s, at %s: Sealed = %q, want %q", life, op.Last.Reason, got, payload)
	}
}

// line is what a step leaves in the history.
func line(from ledger.Status, op ledger.Operation) ledger.Transition {
	return ledger.Transition{
		Seq: op.Moves, From: from, To: op.Status, Attempt: op.Attempts,
		Reason: op.Last.Reason, Evidence: op.Last.Evidence, Actor: op.Last.Actor, At: op.UpdatedAt,
	}
}

// labelled fills in what only an insert can set.
func labelled(op ledger.Operation) ledger.Operation {
	op.Tenant = "acme"
	op.Intent.Step, op.Intent.BusinessObject, op.Intent.BusinessOperationID, op.Intent.RunID = "send", "order-1", "refund_1", "run-1"
	return op
}

// full stores an operation of which every field is set that a move can set.
func (t *tester) full() ledger.Operation {
	op := labelled(revision(1, 1))
	op.Amount = ledger.Amount{Minor: 10000, Currency: "USD"}
	op = t.record(isDoubted(t.insert(op)))
	again := next(op, false)
	again.Generation = 3
	op = t.record(op.Claim(again, note("claimed")))
	return t.record(everything(t.record(isDoubted(op))))
}

func everything(op ledger.Operation) (ledger.Move, error) {
	at := start.Add(9 * hour)
	return op.Observe(at, byPerson("everything"), func(o *ledger.Operation) {
		o.ProviderOperationID, o.ProviderStatus = "re_1", "pending"
		o.Reference, o.Result = json.RawMessage(`{"a":1}`), json.RawMessage(`{"b":"ü"}`)
		o.LeaseOwner, o.Checks, o.ExpiresAt = "host-2", 4, at.Add(minute)
		o.Approval = ledger.Approval{State: ledger.Spent, Reason: "alike", Run: true}
		o.Reserved, o.Chain = "run,day$2026-11-30", chainOf(op.ID, 1)
		o.Review = ledger.Review{OpenedAt: at, Reason: "unverifiable"}
		o.Repeat = ledger.Repeat{Until: at.Add(hour), SameContent: true}
		o.Conflicts, o.CompletedAt = 5, at.Add(second)
	})
}

// unsetFields names the fields that hold their zero value.
func unsetFields(v reflect.Value, path string) []string {
	if v.Kind() != reflect.Struct || v.NumField() == 0 || !v.Type().Field(0).IsExported() {
		if v.IsZero() {
			return []string{path}
		}
		return nil
	}
	var unset []string
	for i := range v.NumField() {
		unset = append(unset, unsetFields(v.Field(i), path+"."+v.Type().Field(i).Name)...)
	}
	return unset
}
