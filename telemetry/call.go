package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/onceward/onceward/ledger"
)

// What a call was told, besides the statuses of an operation.
const (
	statusRefused  = "refused"
	statusAnswered = "answered" // a tool that only reads
	statusError    = "error"    // the server's own fault
)

// A Call is one call of a tool, from its arrival to its answer. A nil one is a call that
// nobody counts.
type Call struct {
	t     *Telemetry
	tool  string
	start time.Time
	span  trace.Span // nil: none
	ctx   context.Context

	status, code string // what Execute brought, if the call came to it
}

type callKey struct{}

// Call begins a call of a tool, named as it is listed. Its trace goes on from the caller's,
// which stands in meta (the message's _meta) or in the HTTP headers; both may be nil. The
// call's End must be called.
func (t *Telemetry) Call(ctx context.Context, tool string, meta map[string]any, header http.Header) (context.Context, *Call) {
	ctx = Extract(ctx, meta, header)
	if t.off() {
		return ctx, nil
	}
	c := &Call{t: t, tool: tool, start: time.Now()}
	if t.tracer != nil {
		// The names are those of OpenTelemetry's conventions for MCP.
		ctx, c.span = t.tracer.Start(ctx, "tools/call "+tool, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("mcp.method.name", "tools/call"), attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", tool)))
	}
	if t.metrics != nil {
		t.metrics.inFlight.Add(1)
	}
	c.ctx = context.WithValue(ctx, callKey{}, c)
	return c.ctx, c
}

// End ends a call with its result: the structured content, as JSON, and whether it says no.
func (c *Call) End(structured any, isError bool) {
	if c == nil {
		return
	}
	if c.status == "" {
		c.status = statusAnswered
		if isError {
			c.status, c.code = said(structured)
		}
	}
	if m := c.t.metrics; m != nil {
		m.inFlight.Add(-1)
		m.callTime.record(c.ctx, time.Since(c.start).Seconds(), c.tool, c.status)
		if c.status == statusRefused {
			m.refusals.inc(c.tool, c.code)
		}
	}
	if c.span == nil {
		return
	}
	c.span.SetAttributes(attribute.String("onceward.status", c.status))
	switch {
	case c.status == statusError:
		c.span.SetAttributes(attribute.String("error.type", "internal"))
		c.span.SetStatus(codes.Error, c.status)
	case isError: // a tool that said no did its work
		c.span.SetAttributes(attribute.String("error.type", "tool_error"), attribute.String("onceward.code", word(c.code, c.status)))
	}
	c.span.End()
}

// said reads what a call was told that never came to Execute.
func said(structured any) (status, code string) {
	raw, ok := structured.(json.RawMessage)
	if !ok {
		return statusError, ""
	}
	var answer struct{ Status, Code string }
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Status != statusRefused {
		return statusError, ""
	}
	return statusRefused, word(answer.Code, "other")
}

// A Ledger is a [ledger.Ledger] whose answers to calls are counted.
type Ledger struct {
	*ledger.Ledger
	t *Telemetry
}

// Ledger wraps a ledger for the tools.
func (t *Telemetry) Ledger(l *ledger.Ledger) Ledger { return Ledger{l, t} }

// Execute is [ledger.Ledger.Execute].
func (l Ledger) Execute(ctx context.Context, r ledger.Request) (ledger.Answer, error) {
	a, err := l.Ledger.Execute(ctx, r)
	if !l.t.off() {
		l.t.executed(ctx, r.Action, a, err)
	}
	return a, err
}

func (t *Telemetry) executed(ctx context.Context, action string, a ledger.Answer, err error) {
	status, code, operation := string(a.Status), a.Operation.ErrorCode, a.Operation.ID
	refusal, refused := errors.AsType[*ledger.Refusal](err)
	switch {
	case refused:
		status, code, operation = statusRefused, string(refusal.Code), refusal.OperationID
	case err != nil:
		status = statusError
	}
	if m := t.metrics; m != nil {
		switch {
		case refused && refusal.Code == ledger.OperationConflict:
			m.conflicts.inc(action)
		case err == nil && a.Replayed:
			m.replays.inc(action, status)
		}
	}
	c, ok := ctx.Value(callKey{}).(*Call)
	if !ok {
		return
	}
	c.status, c.code = status, code
	if c.span != nil {
		c.span.SetAttributes(attribute.Bool("onceward.replayed", a.Replayed))
		if operation != "" {
			c.span.SetAttributes(attribute.String("onceward.operation_id", operation))
		}
	}
}
