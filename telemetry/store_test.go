package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
	"github.com/onceward/onceward/telemetry"
)

// A wrapped store is a Store like any other.
func TestStore(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, telemetry.Options{Metrics: true})
	ledgertest.TestStore(t, func(t *testing.T) func() ledger.Store {
		path := filepath.Join(t.TempDir(), "new", "ledger.db")
		return func() ledger.Store {
			s := openStore(t, path)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			return tel.Store(s)
		}
	})
}

type waiter struct{ ledger.Store }

func (waiter) Moved(string) (<-chan struct{}, func()) { return nil, func() {} }

type clocked struct{ ledger.Store }

func (clocked) ClockSkew(context.Context) (time.Duration, error) { return time.Minute, nil }

type both struct {
	waiter
	clocked
	ledger.Store
}

func TestOptionalInterfacesPassThrough(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, telemetry.Options{Metrics: true})
	failing := &ledgertest.Failing{}
	for name, test := range map[string]struct {
		store        ledger.Store
		waits, tells bool
	}{
		"neither": {failing, false, false},
		"waits":   {waiter{failing}, true, false},
		"tells":   {clocked{failing}, false, true},
		"both":    {both{Store: failing}, true, true},
	} {
		wrapped := tel.Store(test.store)
		if _, waits := wrapped.(ledger.Waiter); waits != test.waits {
			t.Errorf("%s: a Waiter: %v, want %v", name, waits, test.waits)
		}
		c, tells := wrapped.(ledger.Clocked)
		if tells != test.tells {
			t.Errorf("%s: Clocked: %v, want %v", name, tells, test.tells)
		}
		if tells {
			if off, err := c.ClockSkew(t.Context()); off != time.Minute || err != nil {
				t.Errorf("%s: ClockSkew is %v, %v", name, off, err)
			}
		}
	}
}

// An interface that the ledger asks its store for, and that the wrapper doesn't know, would
// be lost without a sound.
func TestTheWrapperKnowsAllOptionalInterfaces(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../ledger/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source files, %v", err)
	}
	asked := regexp.MustCompile(`Store\.\((\w+)\)`)
	var got []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range asked.FindAllStringSubmatch(string(text), -1) {
			got = append(got, match[1])
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"Clocked", "Waiter"}, slices.Compact(got)); diff != "" {
		t.Errorf("interfaces that the ledger asks a store for (-known to the wrapper +asked for):\n%s", diff)
	}
}

// What isn't durable isn't counted, errors come back as they are, and only the store's own
// count as its failures.
func TestOnlyWhatIsCommittedCounts(t *testing.T) {
	t.Parallel()
	broken, decided := errors.New("the disk is full"), errors.New("no such thing")
	lost := fmt.Errorf("%w: the server went away", ledger.ErrCommitLost)
	var before, after error
	inner := openStore(t, filepath.Join(t.TempDir(), "ledger.db"))
	defer func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	}()
	tel := newTelemetry(t, telemetry.Options{Metrics: true})
	s := tel.Store(&ledgertest.Failing{Store: inner,
		Before: func(ledgertest.Call) error { return before }, After: func(ledgertest.Call) error { return after }})
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	claim := ledger.Claim{Owner: "w", At: now, Lease: lease, Provider: "scripted", Scope: "s", Settled: true}
	begin := func(id string, refuse error) error {
		r := call(id, "1.00", "")
		op := ledger.Operation{ID: id, Key: r.Key, Action: "refund", Intent: r.Intent, Fingerprint: r.Digest.Fingerprint, Content: r.Digest.Content, Provider: "scripted"}
		return s.Begin(t.Context(), ledger.Sought{Key: r.Key}, func(ledger.Found) (ledger.Move, error) {
			m, err := op.Insert(claim, []byte("sealed"), ledger.Note{Actor: "call:w", Reason: "claimed"})
			return m, errors.Join(err, refuse)
		})
	}
	for _, step := range []struct {
		id                    string
		before, after, refuse error
		want                  error
	}{
		{id: "op_1", before: broken, want: broken},
		{id: "op_2", refuse: decided, want: decided},
		{id: "op_3", after: lost, want: lost},
		{id: "op_4"},
	} {
		before, after = step.before, step.after
		if err := begin(step.id, step.refuse); !errors.Is(err, step.want) {
			t.Errorf("%s: Begin: %v, want %v", step.id, err, step.want)
		}
	}
	before, after = nil, nil
	found, err := s.Find(t.Context(), ledger.Filter{ID: "op_4"})
	if err != nil || len(found) != 1 {
		t.Fatalf("Find: %d operations, %v", len(found), err)
	}
	m, err := found[0].Doubt(now.Add(lease), "timeout", now.Add(time.Hour), ledger.Note{Actor: "sweep:w", Reason: "lease_expired"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), m); !errors.Is(err, ledger.ErrStale) {
		t.Errorf("Record again: %v, want ErrStale", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	before = context.Canceled
	if err := s.Record(gone, m); !errors.Is(err, context.Canceled) {
		t.Errorf("Record: %v", err)
	}
	families := scrape(t, tel)
	if diff := cmp.Diff(map[string]float64{"refund executing": 1, "refund unknown": 1}, counts(families, "onceward_operations_total")); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"failed Begin": 1, "commit_lost Begin": 1}, counts(families, "onceward_ledger_errors_total")); diff != "" {
		t.Errorf("errors, by kind and method (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"Begin": 4, "Record": 3, "Find": 1}, counts(families, "onceward_ledger_duration_seconds")); diff != "" {
		t.Errorf("timed (-want +got):\n%s", diff)
	}
}

// Where nothing is wanted nothing is wrapped.
func TestOff(t *testing.T) {
	t.Parallel()
	silent, err := telemetry.New(t.Context(), telemetry.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for name, tel := range map[string]*telemetry.Telemetry{"nil": nil, "nothing wanted": silent} {
		s := &ledgertest.Failing{}
		if got := tel.Store(s); got != ledger.Store(s) {
			t.Errorf("%s: the store is wrapped in a %T", name, got)
		}
		a := (&scripted{}).actor()
		if got := tel.Actor("refund", a); fmt.Sprintf("%p", got.Apply) != fmt.Sprintf("%p", a.Apply) {
			t.Errorf("%s: the actor is wrapped", name)
		}
		ctx, c := tel.Call(t.Context(), "refund", nil, nil)
		c.End(nil, true)
		if ctx != t.Context() {
			t.Errorf("%s: a call has another context", name)
		}
		var told bool
		tel.Alarm(nil, func(ledger.Alarm) { told = true })(ledger.Alarm{Kind: "late_success"})
		if !told {
			t.Errorf("%s: an alarm isn't handed on", name)
		}
		tel.Deliveries(nil)
		tel.Watch(t.Context(), telemetry.Source{}, time.Hour)
		if err := tel.Shutdown(t.Context()); err != nil {
			t.Errorf("%s: Shutdown: %v", name, err)
		}
	}
}

// fickle is a store that lets a call be decided again, with fresher data, as one does whose
// transaction had to be repeated.
type fickle struct{ ledger.Store }

func (fickle) Begin(_ context.Context, _ ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	if _, err := decide(ledger.Found{}); err != nil {
		return err
	}
	_, err := decide(ledger.Found{Operation: &ledger.Operation{}})
	return err
}

// The move that was decided last is the one that was carried out.
func TestOnlyTheLastDecisionCounts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	claim := ledger.Claim{Owner: "w", At: now, Lease: lease, Provider: "scripted", Scope: "s", Settled: true}
	m, err := ledger.Operation{ID: "op_1", Action: "refund"}.Insert(claim, nil, ledger.Note{Reason: "claimed"})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		first, last ledger.Move
		want        map[string]float64
	}{
		"inserted after all":      {ledger.Move{}, m, map[string]float64{"refund executing": 1}},
		"somebody else was first": {m, ledger.Move{}, map[string]float64{}},
	} {
		tel := newTelemetry(t, telemetry.Options{Metrics: true})
		err := tel.Store(fickle{}).Begin(t.Context(), ledger.Sought{}, func(found ledger.Found) (ledger.Move, error) {
			if found.Operation == nil {
				return test.first, nil
			}
			return test.last, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, counts(scrape(t, tel), "onceward_operations_total")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
