package telemetry_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/telemetry"
)

func TestLogLinesNameTheirTrace(t *testing.T) {
	t.Parallel()
	const ids = `"trace_id":"` + parentTrace + `","span_id":"` + parentSpan + `"`
	traced := telemetry.Extract(t.Context(), map[string]any{"traceparent": parent}, nil)
	for name, test := range map[string]struct {
		log  func(l *slog.Logger)
		want string
	}{
		"no trace":   {func(l *slog.Logger) { l.InfoContext(t.Context(), "m", "a", 1) }, `{"msg":"m","a":1}`},
		"a trace":    {func(l *slog.Logger) { l.InfoContext(traced, "m", "a", 1) }, `{"msg":"m","a":1,` + ids + `}`},
		"attributes": {func(l *slog.Logger) { l.With("b", 2).InfoContext(traced, "m", "a", 1) }, `{"msg":"m","b":2,"a":1,` + ids + `}`},
		"a group":    {func(l *slog.Logger) { l.WithGroup("g").InfoContext(traced, "m", "a", 1) }, `{"msg":"m",` + ids + `,"g":{"a":1}}`},
		"two groups": {func(l *slog.Logger) {
			l.With("b", 2).WithGroup("g").With("c", 3).WithGroup("h").InfoContext(traced, "m", "a", 1)
		}, `{"msg":"m","b":2,` + ids + `,"g":{"c":3,"h":{"a":1}}}`},
		"empty group": {func(l *slog.Logger) { l.WithGroup("").InfoContext(traced, "m", "a", 1) }, `{"msg":"m","a":1,` + ids + `}`},
		"disabled":    {func(l *slog.Logger) { l.DebugContext(traced, "m") }, ""},
	} {
		var out bytes.Buffer
		plain := slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		}})
		test.log(slog.New(telemetry.LogHandler(plain)))
		if diff := cmp.Diff(test.want, string(bytes.TrimSpace(out.Bytes()))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
