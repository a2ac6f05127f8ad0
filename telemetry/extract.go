package telemetry

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// What W3C Trace Context calls its two fields, in HTTP and in an MCP message's _meta.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

// maxTraceState is more than the 512 characters that the specification has senders keep.
const maxTraceState = 4096

// Extract continues the caller's trace: what a call's _meta says of it, or else its HTTP
// headers. What isn't valid is ignored. Baggage isn't taken: nothing is sent on with it,
// and it may hold anything.
func Extract(ctx context.Context, meta map[string]any, header http.Header) context.Context {
	carried := propagation.MapCarrier{}
	if parent, ok := meta[traceparent].(string); ok {
		carried[traceparent] = parent
		if state, ok := meta[tracestate].(string); ok && len(state) <= maxTraceState {
			carried[tracestate] = state
		}
		if continued := (propagation.TraceContext{}).Extract(ctx, carried); continued != ctx {
			return continued
		}
	}
	parents := header.Values(traceparent)
	if len(parents) != 1 { // two parents are none
		return ctx
	}
	carried = propagation.MapCarrier{traceparent: parents[0]}
	if state := strings.Join(header.Values(tracestate), ","); len(state) <= maxTraceState {
		carried[tracestate] = state
	}
	return propagation.TraceContext{}.Extract(ctx, carried)
}
