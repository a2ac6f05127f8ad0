package telemetry_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/telemetry"
)

const (
	parentTrace = "4bf92f3577b34da6a3ce929d0e0e4736" // the example of the W3C specification
	parentSpan  = "00f067aa0ba902b7"
	parent      = "00-" + parentTrace + "-" + parentSpan + "-01"
)

// kept takes spans and keeps them past its shutdown.
type kept struct{ *tracetest.InMemoryExporter }

func (kept) Shutdown(context.Context) error { return nil }

// A spanLine is what a test compares of a span.
type spanLine struct{ Name, Kind, Parent, Attributes, Status string }

// lines are the spans in the order of their beginning. Parents are named; ids that change are
// replaced.
func lines(stubs tracetest.SpanStubs, operationID string) []spanLine {
	names := map[trace.SpanID]string{}
	for _, s := range stubs {
		names[s.SpanContext.SpanID()] = s.Name
	}
	slices.SortStableFunc(stubs, func(a, b tracetest.SpanStub) int { // a server's span begins what it calls for
		return cmp.Or(a.StartTime.Compare(b.StartTime), cmp.Compare(a.SpanKind, b.SpanKind))
	})
	var all []spanLine
	for _, s := range stubs {
		up := names[s.Parent.SpanID()]
		if up == "" && s.Parent.IsValid() {
			up = s.Parent.SpanID().String()
		}
		var attributes []string
		for _, a := range s.Attributes {
			attributes = append(attributes, strings.ReplaceAll(string(a.Key)+"="+fmt.Sprint(a.Value.AsInterface()), operationID, "OP"))
		}
		slices.Sort(attributes)
		all = append(all, spanLine{s.Name, s.SpanKind.String(), up, strings.Join(attributes, " "), s.Status.Code.String()})
	}
	return all
}

// A call goes on with its caller's trace; what it sends and asks hangs below it. What the
// sweep does has no caller.
func TestSpans(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	spans := kept{tracetest.NewInMemoryExporter()}
	tel, err := telemetry.New(t.Context(), telemetry.Options{Spans: spans, Metrics: true})
	if err != nil {
		t.Fatal(err)
	}
	var operationID string
	synctest.Test(t, func(t *testing.T) {
		inner := openStore(t, path)
		defer func() {
			if err := inner.Close(); err != nil {
				t.Error(err)
			}
		}()
		p := &scripted{script: findings([]ledger.Verdict{ledger.Unclear}), looks: findings([]ledger.Verdict{ledger.Unclear, ledger.Done})}
		a := p.actor()
		a.Promise.Idempotent = false // or it would be sent again, rather than asked about
		l := newLedger(t, tel, inner, a)
		calls := func(meta map[string]any, header http.Header) {
			time.Sleep(time.Second) // the bubble's clock: spans are told apart by it
			ctx, c := tel.Call(t.Context(), "refund", meta, header)
			a, err := l.Execute(ctx, call("1", "1.00", "personal: Anna Example"))
			if err != nil {
				t.Errorf("Execute: %v", err)
			}
			operationID = a.Operation.ID
			c.End(json.RawMessage(`{"status":"`+string(a.Status)+`"}`), false)
		}
		calls(map[string]any{"traceparent": parent}, nil)
		calls(nil, http.Header{"Traceparent": {parent}})
		time.Sleep(time.Hour)
		if err := l.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		calls(nil, nil)
		if err := l.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
	families := scrape(t, tel)
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := func(replayed bool, status string) string {
		return fmt.Sprintf("gen_ai.operation.name=execute_tool gen_ai.tool.name=refund mcp.method.name=tools/call onceward.operation_id=OP onceward.replayed=%v onceward.status=%s", replayed, status)
	}
	const asked = "onceward.action_type=refund onceward.operation_id=OP onceward.provider=scripted onceward.verdict="
	want := []spanLine{
		{"tools/call refund", "server", parentSpan, told(false, "unknown"), "Unset"},
		{"attempt refund", "client", "tools/call refund",
			"error.type=a_code onceward.action_type=refund onceward.attempt=1 onceward.operation_id=OP onceward.provider=scripted onceward.verdict=unclear", "Error"},
		{"tools/call refund", "server", parentSpan, told(true, "unknown"), "Unset"},
		{"look-up refund", "client", "tools/call refund", "error.type=a_code " + asked + "unclear", "Error"},
		{"look-up refund", "client", "", asked + "done", "Unset"},
		{"tools/call refund", "server", "", told(true, "succeeded"), "Unset"},
	}
	stubs := spans.GetSpans()
	if diff := gocmp.Diff(want, lines(stubs, operationID)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	inTrace := 0
	for _, s := range stubs {
		if s.SpanContext.TraceID().String() == parentTrace {
			inTrace++
		}
	}
	if inTrace != 4 {
		t.Errorf("%d spans are in the callers' trace, want 4", inTrace)
	}
	for _, personal := range []string{"Anna", "1.00"} {
		if text := fmt.Sprint(lines(stubs, operationID)); strings.Contains(text, personal) {
			t.Errorf("the spans hold %q: %s", personal, text)
		}
	}
	if diff := gocmp.Diff(map[string]float64{"succeeded refund": 1, "unknown refund": 2}, counts(families, "onceward_call_duration_seconds")); diff != "" {
		t.Errorf("calls, by status and tool (-want +got):\n%s", diff)
	}
}

// What a call was told is read from its answer where it never came to the ledger.
func TestCallsThatEndEarly(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, telemetry.Options{Metrics: true})
	for _, end := range []struct {
		structured any
		isError    bool
	}{
		{json.RawMessage(`{"status":"refused","code":"intent_missing"}`), true},
		{json.RawMessage(`{"status":"refused","code":"intent_missing"}`), true},
		{json.RawMessage(`{"status":"refused","code":"` + strings.Repeat("x", 1000) + `"}`), true},
		{json.RawMessage(`{"status":"refused","code":"Anna <anna@example.com>"}`), true},
		{json.RawMessage(`{"operations":[]}`), false},
		{json.RawMessage(`{"status`), true},
		{nil, true},
	} {
		_, c := tel.Call(t.Context(), "operation_list", nil, nil)
		c.End(end.structured, end.isError)
	}
	_, open := tel.Call(t.Context(), "operation_list", nil, nil)
	families := scrape(t, tel)
	if diff := gocmp.Diff(map[string]float64{"intent_missing operation_list": 2, "other operation_list": 2}, counts(families, "onceward_refusals_total")); diff != "" {
		t.Errorf("refusals, by code and tool (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[string]float64{"refused operation_list": 4, "answered operation_list": 1, "error operation_list": 2}, counts(families, "onceward_call_duration_seconds")); diff != "" {
		t.Errorf("calls, by status and tool (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[string]float64{"": 1}, counts(families, "onceward_calls_in_flight")); diff != "" {
		t.Errorf("in flight (-want +got):\n%s", diff)
	}
	open.End(nil, false)
	if got := counts(scrape(t, tel), "onceward_calls_in_flight"); len(got) != 0 {
		t.Errorf("in flight after all have ended: %v", got)
	}
}

// A panic of a provider goes on to the ledger, which knows what to do; it is counted, and its
// span ends.
func TestAPanicPassesThrough(t *testing.T) {
	t.Parallel()
	spans := kept{tracetest.NewInMemoryExporter()}
	tel := newTelemetry(t, telemetry.Options{Spans: spans, Metrics: true})
	bug := errors.New("a bug")
	a := tel.Actor("refund", ledger.Actor{Provider: "scripted",
		Apply: func(context.Context, ledger.Attempt) ledger.Finding { panic(bug) }})
	if a.Lookup != nil {
		t.Error("a provider that can't be asked became one that can")
	}
	func() {
		defer func() {
			if got := recover(); got != any(bug) {
				t.Errorf("the panic became %v", got)
			}
		}()
		a.Apply(t.Context(), ledger.Attempt{OperationID: "op_1", Number: 1})
	}()
	if diff := gocmp.Diff(map[string]float64{"refund scripted panic": 1}, counts(scrape(t, tel), "onceward_attempts_total")); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.GetSpans()); n != 1 {
		t.Errorf("%d spans ended, want 1", n)
	}
}

// However many names come, a metric stays small.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, telemetry.Options{Metrics: true})
	for i := range 1000 {
		_, c := tel.Call(t.Context(), fmt.Sprint("tool-", i), nil, nil)
		c.End(json.RawMessage(`{"status":"refused","code":"busy"}`), true)
	}
	got := counts(scrape(t, tel), "onceward_refusals_total")
	if len(got) > 257 {
		t.Errorf("there are %d series", len(got))
	}
	if diff := gocmp.Diff(744.0, got["other other"]); diff != "" {
		t.Errorf("what came too late is counted as other (-want +got):\n%s", diff)
	}
}
