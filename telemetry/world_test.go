package telemetry_test

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
	"github.com/onceward/onceward/telemetry"
)

const (
	deadline = 5 * time.Second
	lease    = 10 * time.Second
)

// TestMain makes rapid try less than its hundred runs: each has a database of its own. Say
// -rapid.checks to have more.
func TestMain(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("10"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func newTelemetry(t *testing.T, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	tel, err := telemetry.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tel.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return tel
}

// A scripted provider is the outside world of a test: it finds what its script says, in order,
// and has done everything after that. It remembers what it found.
type scripted struct {
	mu             sync.Mutex
	script         []ledger.Finding // of attempts
	looks          []ledger.Finding // of look-ups
	n              int
	found, lookups map[ledger.Verdict]int
}

func (p *scripted) actor() ledger.Actor {
	p.found, p.lookups = map[ledger.Verdict]int{}, map[ledger.Verdict]int{}
	return ledger.Actor{
		Provider: "scripted", Scope: "scope-1",
		Promise: ledger.Promise{Deadline: deadline, Lease: lease, Idempotent: true, ProvesAbsence: true},
		Apply: func(_ context.Context, a ledger.Attempt) ledger.Finding {
			if err := a.MaySend(); err != nil {
				return ledger.Finding{Verdict: ledger.NotSent, Code: "lease_over"}
			}
			return p.next(&p.script, p.found)
		},
		Lookup: func(context.Context, ledger.Question) ledger.Finding { return p.next(&p.looks, p.lookups) },
	}
}

func (p *scripted) next(script *[]ledger.Finding, counted map[ledger.Verdict]int) ledger.Finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	f := ledger.Finding{Verdict: ledger.Done, Receipt: ledger.Receipt{
		ProviderOperationID: fmt.Sprintf("re_%d", p.n), ProviderStatus: "settled", State: ledger.Settled, Evidence: []byte(`{"id":"re"}`), Result: []byte(`{}`),
	}}
	if len(*script) > 0 {
		f, *script = (*script)[0], (*script)[1:]
	}
	counted[f.Verdict]++
	return f
}

// newLedger wires a ledger as a server does.
func newLedger(t *testing.T, tel *telemetry.Telemetry, s ledger.Store, a ledger.Actor) telemetry.Ledger {
	t.Helper()
	sealer, err := ledger.NewSealer([]byte("a seal key for tests"))
	if err != nil {
		t.Fatal(err)
	}
	return tel.Ledger(&ledger.Ledger{
		Store: tel.Store(s), Sealer: sealer, Log: slog.New(slog.DiscardHandler), Owner: "server-1",
		Actors: map[string]ledger.Actor{"refund": tel.Actor("refund", a)},
	})
}

func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call is a call of refund that its orchestrator named.
func call(name, amount, note string) ledger.Request {
	sum := func(parts ...string) [32]byte { return sha256.Sum256([]byte(strings.Join(parts, "\x00"))) }
	a, n := sum("amount", amount), sum("note", note)
	return ledger.Request{
		Action: "refund", Key: sum("key", name),
		Intent: ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-1842", Step: name, BusinessObject: "order-1", Revision: 1},
		Digest: ledger.Digest{
			Fingerprint: sum("fingerprint", amount), Content: sum("content", amount, note),
			Fields:   ledger.FieldHashes{"amount": ledger.FieldHash(a[:8]), "note": ledger.FieldHash(n[:8])},
			Critical: []string{"amount"},
		},
		Prepare: func(string, string) (ledger.Payload, error) {
			return ledger.Payload{Arguments: []byte(amount + note), Request: []byte(amount + note)}, nil
		},
	}
}

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T, tel *telemetry.Telemetry) map[string]*dto.MetricFamily {
	t.Helper()
	answer := httptest.NewRecorder()
	tel.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("/metrics answered %d: %s", answer.Code, answer.Body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// counts are a metric's values that aren't 0, by the values of its labels in their names' order.
func counts(families map[string]*dto.MetricFamily, name string) map[string]float64 {
	got := map[string]float64{}
	for _, m := range families[name].GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		if value != 0 {
			got[strings.Join(labels, " ")] = value
		}
	}
	return got
}
