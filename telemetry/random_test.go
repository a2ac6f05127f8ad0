package telemetry_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
	"github.com/onceward/onceward/telemetry"
)

// A run is a random one: calls, what the provider makes of them, failing writes, and time.
type run struct {
	Acts, Looks []ledger.Verdict
	Steps       []string
}

var anna = ledger.Person{By: "anna", Reason: "test"}

func drawRun(t *rapid.T) run {
	some := func(label string, of ...ledger.Verdict) []ledger.Verdict {
		return rapid.SliceOfN(rapid.SampledFrom(of), 0, 8).Draw(t, label)
	}
	return run{
		Acts:  some("acts", ledger.Done, ledger.Refused, ledger.NotSent, ledger.Unclear, ledger.Contradiction),
		Looks: some("looks", ledger.Done, ledger.Refused, ledger.Unclear, ledger.Absent, ledger.Contradiction),
		Steps: rapid.SliceOfN(rapid.SampledFrom([]string{
			"call 1", "call 1", "call 2", "call 3", "reworded", "changed", "approve", "deny", "sweep", "sweep", "seconds", "minutes", "a day", "a write fails",
		}), 1, 60).Draw(t, "steps"),
	}
}

// The metrics after any run are what the database, the provider and the callers say.
func TestMetricsEqualTheHistory(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		r := drawRun(rt)
		n++
		path := filepath.Join(dir, fmt.Sprintf("%d.db", n))
		tel := newTelemetry(t, telemetry.Options{Metrics: true, Actions: []string{"refund"}})
		p := &scripted{script: findings(r.Acts), looks: findings(r.Looks)}
		told := map[string]map[string]float64{"replays": {}, "conflicts": {}}
		synctest.Test(t, func(t *testing.T) { r.play(t, tel, p, path, told) })
		families := scrape(t, tel)
		for metric, want := range map[string]map[string]float64{
			"onceward_operations_total": selected(t, path, entered),
			"onceward_attempts_total":   verdicts(p.found),
			"onceward_lookups_total":    verdicts(p.lookups),
			"onceward_replays_total":    told["replays"],
			"onceward_conflicts_total":  told["conflicts"],

			"onceward_unknown_open":      selected(t, path, `SELECT action_type, count(*) FROM agent_operations WHERE status = 'unknown' GROUP BY 1`),
			"onceward_reviews_open":      selected(t, path, `SELECT action_type, count(*) FROM agent_operations WHERE review_opened_at IS NOT NULL GROUP BY 1`),
			"onceward_approvals_waiting": selected(t, path, `SELECT action_type, count(*) FROM agent_operations WHERE status = 'planned' AND approval_state = 'waiting' GROUP BY 1`),
		} {
			if diff := cmp.Diff(want, counts(families, metric)); diff != "" {
				rt.Errorf("%s (-want +got):\n%s", metric, diff)
			}
		}
	})
}

func (r run) play(t *testing.T, tel *telemetry.Telemetry, p *scripted, path string, told map[string]map[string]float64) {
	inner := openStore(t, path)
	defer func() {
		if err := inner.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	fails := 0
	failing := &ledgertest.Failing{Store: inner, Before: func(c ledgertest.Call) error {
		if c.Method == "Record" && fails > 0 {
			fails--
			return errors.New("the disk is full")
		}
		return nil
	}}
	l := newLedger(t, tel, failing, p.actor())
	execute := func(request ledger.Request) {
		a, err := l.Execute(t.Context(), request)
		refusal, refused := errors.AsType[*ledger.Refusal](err)
		switch {
		case refused && refusal.Code == ledger.OperationConflict:
			told["conflicts"]["refund"]++
		case refused: // a reconciliation met the failing write
		case err == nil && a.Replayed:
			told["replays"]["refund "+string(a.Status)]++
		}
	}
	waits := call("3", "9.00", "")
	waits.Approval = "always"
	for _, step := range r.Steps {
		switch step {
		case "call 1":
			execute(call("1", "1.00", "first"))
		case "call 2":
			execute(call("2", "2.00", "first"))
		case "call 3":
			execute(waits)
		case "reworded":
			execute(call("1", "1.00", "other"))
		case "changed":
			execute(call("1", "7.00", "first"))
		case "approve", "deny":
			decide := l.Approve
			if step == "deny" {
				decide = l.Deny
			}
			_, _ = decide(t.Context(), waits.Key.String(), anna) // it may not be there, or be settled
		case "sweep":
			_ = l.Sweep(t.Context()) // it may meet the failing write
		case "seconds":
			time.Sleep(3 * time.Second) // the bubble's clock
		case "minutes":
			time.Sleep(10 * time.Minute)
		case "a day":
			time.Sleep(25 * time.Hour)
		case "a write fails":
			fails = 1
		}
	}
	if err := l.Drain(t.Context()); err != nil {
		t.Errorf("Drain: %v", err)
	}
	if err := tel.Read(t.Context(), telemetry.Source{List: l.List}); err != nil {
		t.Errorf("Read: %v", err)
	}
}

func findings(verdicts []ledger.Verdict) []ledger.Finding {
	var all []ledger.Finding
	for i, v := range verdicts {
		f := ledger.Finding{Verdict: v, Code: "a_code"}
		if v == ledger.Done {
			f = ledger.Finding{Verdict: v, Receipt: ledger.Receipt{
				ProviderOperationID: fmt.Sprintf("re_s%d", i), State: ledger.Settled, Evidence: []byte(`{"id":"re"}`), Result: []byte(`{}`)}}
		}
		all = append(all, f)
	}
	return all
}

func verdicts(found map[ledger.Verdict]int) map[string]float64 {
	want := map[string]float64{}
	for v, n := range found {
		want["refund scripted "+string(v)] = float64(n)
	}
	return want
}

// entered counts how often operations entered a status.
const entered = `SELECT o.action_type || ' ' || h.to_status, count(*) FROM transitions h JOIN agent_operations o USING (operation_id)
	WHERE coalesce(h.from_status, '') <> h.to_status GROUP BY 1`

// selected counts in the database, past the ledger.
func selected(t *testing.T, path, query string) map[string]float64 {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // read to its end
	want := map[string]float64{}
	for rows.Next() {
		var labels string
		var n int
		if err := rows.Scan(&labels, &n); err != nil {
			t.Fatal(err)
		}
		want[labels] = float64(n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return want
}
