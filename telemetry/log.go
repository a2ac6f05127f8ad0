package telemetry

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// LogHandler returns a handler that adds trace_id and span_id to lines that are logged with
// the context of a traced call, and leaves all others as they are.
func LogHandler(h slog.Handler) slog.Handler { return &logHandler{Handler: h, base: h} }

type logHandler struct {
	slog.Handler
	// base is the handler before the first group, and steps lead from there to Handler: the ids
	// stand outside of every group.
	base  slog.Handler
	steps []func(slog.Handler) slog.Handler
}

// Handle implements [slog.Handler].
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	ids := []slog.Attr{slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String())}
	if len(h.steps) == 0 {
		r = r.Clone()
		r.AddAttrs(ids...)
		return h.Handler.Handle(ctx, r)
	}
	inner := h.base.WithAttrs(ids)
	for _, step := range h.steps {
		inner = step(inner)
	}
	return inner.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := &logHandler{Handler: h.Handler.WithAttrs(attrs), base: h.base, steps: h.steps}
	if len(h.steps) == 0 {
		next.base = next.Handler
		return next
	}
	next.steps = append(slices.Clip(h.steps), func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
	return next
}

// WithGroup implements [slog.Handler].
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &logHandler{
		Handler: h.Handler.WithGroup(name), base: h.base,
		steps: append(slices.Clip(h.steps), func(h slog.Handler) slog.Handler { return h.WithGroup(name) }),
	}
}
