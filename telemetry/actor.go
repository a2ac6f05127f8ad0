package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/onceward/onceward/ledger"
)

// panicked stands for a verdict where a provider's code panicked: the ledger copes with it.
const panicked = "panic"

// Actor wraps how the ledger reaches a provider for an action type: each attempt and each
// look-up is counted, timed, and a span of its own, a child of the call's span where a call
// waits for it. What they return is handed on unchanged; so is a panic.
func (t *Telemetry) Actor(action string, a ledger.Actor) ledger.Actor {
	if t.off() {
		return a
	}
	common := []attribute.KeyValue{attribute.String("onceward.action_type", action), attribute.String("onceward.provider", a.Provider)}
	attempt, lookUp := "attempt "+action, "look-up "+action
	if t.metrics != nil {
		for _, v := range []ledger.Verdict{ledger.Done, ledger.Refused, ledger.NotSent, ledger.Unclear, ledger.Contradiction, panicked} {
			t.metrics.attempts.show(a.Provider, action, string(v))
		}
	}
	if apply := a.Apply; apply != nil {
		a.Apply = func(ctx context.Context, at ledger.Attempt) (f ledger.Finding) {
			ctx, span := t.client(ctx, attempt, common, at.OperationID)
			if span != nil {
				span.SetAttributes(attribute.Int("onceward.attempt", at.Number))
			}
			start, verdict := time.Now(), panicked
			defer func() { t.asked(ctx, span, request{a.Provider, action, "apply"}, start, verdict, f.Code) }()
			f = apply(ctx, at)
			verdict = string(f.Verdict)
			return f
		}
	}
	if lookup := a.Lookup; lookup != nil {
		a.Lookup = func(ctx context.Context, q ledger.Question) (f ledger.Finding) {
			ctx, span := t.client(ctx, lookUp, common, q.OperationID)
			start, verdict := time.Now(), panicked
			defer func() { t.asked(ctx, span, request{a.Provider, action, "lookup"}, start, verdict, f.Code) }()
			f = lookup(ctx, q)
			verdict = string(f.Verdict)
			return f
		}
	}
	return a
}

// client begins the span of a request to a provider; nil where nobody takes spans.
func (t *Telemetry) client(ctx context.Context, name string, common []attribute.KeyValue, operationID string) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, nil
	}
	return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(common...),
		trace.WithAttributes(attribute.String("onceward.operation_id", operationID)))
}

type request struct{ provider, action, kind string }

// asked counts a request to a provider, and ends its span. The provider's own code stands in
// the span only: nobody knows how many there are.
func (t *Telemetry) asked(ctx context.Context, span trace.Span, r request, start time.Time, verdict, code string) {
	if m := t.metrics; m != nil {
		m.providerTime.record(ctx, time.Since(start).Seconds(), r.provider, r.action, r.kind)
		counted := m.attempts
		if r.kind == "lookup" {
			counted = m.lookups
		}
		counted.inc(r.provider, r.action, verdict)
	}
	if span == nil {
		return
	}
	span.SetAttributes(attribute.String("onceward.verdict", verdict))
	switch ledger.Verdict(verdict) {
	case ledger.Done, ledger.Absent:
	case ledger.Refused, ledger.NotSent, ledger.Unclear, ledger.Contradiction, panicked:
		span.SetAttributes(attribute.String("error.type", word(code, verdict)))
		span.SetStatus(codes.Error, verdict)
	}
	span.End()
}

// word is a short code as an attribute; what isn't one is left out, it could be anything.
func word(code, otherwise string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-:/ ", r)
	}
	if code == "" || len(code) > 64 || strings.ContainsFunc(code, odd) {
		return otherwise
	}
	return code
}
