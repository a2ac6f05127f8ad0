package telemetry_test

import (
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/onceward/onceward/telemetry"
)

// Expected ids are what https://www.w3.org/TR/trace-context/ says of each text.
func TestExtract(t *testing.T) {
	t.Parallel()
	const other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for name, test := range map[string]struct {
		meta   map[string]any
		header http.Header
		want   string // the span that is gone on from, and its trace state
	}{
		"nothing":                 {nil, nil, ""},
		"meta":                    {map[string]any{"traceparent": parent}, nil, parentSpan},
		"meta with state":         {map[string]any{"traceparent": parent, "tracestate": "rojo=1"}, nil, parentSpan + " rojo=1"},
		"header":                  {nil, http.Header{"Traceparent": {parent}, "Tracestate": {"rojo=1", "congo=2"}}, parentSpan + " rojo=1,congo=2"},
		"meta goes before header": {map[string]any{"traceparent": parent}, http.Header{"Traceparent": {other}}, parentSpan},
		"invalid meta, header":    {map[string]any{"traceparent": "00-0-0-0"}, http.Header{"Traceparent": {other}}, "b7ad6b7169203331"},
		"state without parent":    {map[string]any{"tracestate": "rojo=1"}, nil, ""},
		"bad state":               {map[string]any{"traceparent": parent, "tracestate": "no state"}, nil, parentSpan},
		"long state":              {map[string]any{"traceparent": parent, "tracestate": "a=" + strings.Repeat("x", 5000)}, nil, parentSpan},
		"not a text":              {map[string]any{"traceparent": 7.0}, nil, ""},
		"upper case":              {map[string]any{"traceparent": strings.ToUpper(parent)}, nil, ""},
		"all zero trace":          {map[string]any{"traceparent": "00-" + strings.Repeat("0", 32) + "-" + parentSpan + "-01"}, nil, ""},
		"all zero span":           {map[string]any{"traceparent": "00-" + parentTrace + "-0000000000000000-01"}, nil, ""},
		"version ff":              {map[string]any{"traceparent": "ff" + parent[2:]}, nil, ""},
		"version 00 and more":     {map[string]any{"traceparent": parent + "-more"}, nil, ""},
		"a later version":         {map[string]any{"traceparent": "01" + parent[2:] + "-more"}, nil, parentSpan},
		"two parents":             {nil, http.Header{"Traceparent": {parent, other}}, ""},
		"a million characters":    {map[string]any{"traceparent": strings.Repeat("0", 1e6)}, nil, ""},
	} {
		span := trace.SpanContextFromContext(telemetry.Extract(t.Context(), test.meta, test.header))
		got := ""
		if span.IsValid() {
			got = strings.TrimSpace(span.SpanID().String() + " " + span.TraceState().String())
		}
		if got != test.want {
			t.Errorf("%s: goes on from %q, want %q", name, got, test.want)
		}
	}
}
