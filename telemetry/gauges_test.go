package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
	"github.com/onceward/onceward/telemetry"
)

var gaugeNames = []string{
	"onceward_unknown_open", "onceward_reviews_open", "onceward_approvals_waiting",
	"onceward_unknown_oldest_age_seconds", "onceward_reviews_oldest_age_seconds", "onceward_approvals_oldest_age_seconds",
	"onceward_limit_fill_ratio", "onceward_outcomes_held",
}

func gauges(t *testing.T, tel *telemetry.Telemetry) map[string]map[string]float64 {
	t.Helper()
	families, got := scrape(t, tel), map[string]map[string]float64{}
	for _, name := range gaugeNames {
		if found := counts(families, name); len(found) > 0 {
			got[name] = found
		}
	}
	return got
}

func TestGauges(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	clock := ledgertest.NewClock(now)
	tel := newTelemetry(t, telemetry.Options{Metrics: true, Actions: []string{"refund", "email.send"}, Now: clock.Now})
	if got := gauges(t, tel); len(got) > 0 {
		t.Errorf("gauges of what nobody has read: %v", got)
	}
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	unknown := []ledger.Operation{
		{Action: "refund", UnsettledSince: ago(time.Minute), UpdatedAt: ago(0)},
		{Action: "refund", UnsettledSince: ago(time.Hour), UpdatedAt: ago(0)},
		{Action: "email.send", UpdatedAt: ago(time.Second)},
	}
	broken := errors.New("the disk is full")
	var fails error
	from := telemetry.Source{
		List: func(_ context.Context, f ledger.Filter) ([]ledger.Operation, error) {
			if f.Limit == 0 || f.Limit > 1000 {
				t.Errorf("a reading has the bound %d", f.Limit)
			}
			switch {
			case fails != nil && f.Review:
				return nil, fails
			case f.Review:
				return []ledger.Operation{{Action: "refund", Review: ledger.Review{OpenedAt: ago(2 * time.Hour)}}}, nil
			case f.Approval:
				return []ledger.Operation{{Action: "email.send", CreatedAt: ago(3 * time.Hour), UpdatedAt: ago(0)}}, nil
			}
			return unknown, nil
		},
		Fills: func(context.Context) ([]telemetry.Fill, error) {
			return []telemetry.Fill{
				{Action: "refund", Limit: "per_run.count", Used: 1, Max: 20}, {Action: "refund", Limit: "per_run.count", Used: 5, Max: 20},
				{Action: "refund", Limit: "per_day.amount.USD", Used: 50000, Max: 50000}, {Action: "refund", Limit: "per_tenant.count", Used: 0, Max: 0},
				{Action: "refund", Limit: "per run run-77", Used: 1, Max: 4},
			}, nil
		},
		Held: func() int { return 3 },
	}
	if err := tel.Read(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]float64{
		"onceward_unknown_open":                 {"refund": 2, "email.send": 1},
		"onceward_unknown_oldest_age_seconds":   {"": 3600},
		"onceward_reviews_open":                 {"refund": 1},
		"onceward_reviews_oldest_age_seconds":   {"": 7200},
		"onceward_approvals_waiting":            {"email.send": 1},
		"onceward_approvals_oldest_age_seconds": {"": 10800},
		"onceward_limit_fill_ratio":             {"refund per_run.count": 0.25, "refund per_day.amount.USD": 1, "refund per_tenant.count": 1, "refund other": 0.25},
		"onceward_outcomes_held":                {"": 3},
	}
	if diff := cmp.Diff(want, gauges(t, tel)); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
	// What can't be read stays as it was, but its ages go on, and the time of reading tells.
	fails, unknown = broken, nil
	clock.Advance(time.Minute)
	if err := tel.Read(t.Context(), from); !errors.Is(err, broken) {
		t.Errorf("Read: %v, want the reading's error", err)
	}
	for name, age := range map[string]float64{"unknown": 3660, "reviews": 7260, "approvals": 10860} {
		want["onceward_"+name+"_oldest_age_seconds"] = map[string]float64{"": age}
	}
	if diff := cmp.Diff(want, gauges(t, tel)); diff != "" {
		t.Errorf("gauges after a reading that failed (-want +got):\n%s", diff)
	}
	read := map[string]float64{"": float64(now.Unix())}
	if diff := cmp.Diff(read, counts(scrape(t, tel), "onceward_gauges_read_timestamp_seconds")); diff != "" {
		t.Errorf("read at (-want +got):\n%s", diff)
	}
	// What is settled is shown as 0, so that an alert ends.
	fails = nil
	if err := tel.Read(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	family := scrape(t, tel)["onceward_unknown_open"]
	if n := len(family.GetMetric()); n != 2 || len(counts(scrape(t, tel), "onceward_unknown_open")) != 0 {
		t.Errorf("unknown after all is settled: %v, want 0 for both action types", family)
	}
}
