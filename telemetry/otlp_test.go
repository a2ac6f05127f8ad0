package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/onceward/onceward/telemetry"
)

// fromEnvironment makes a Telemetry as the environment says. Such tests don't run in parallel.
func fromEnvironment(t *testing.T, env map[string]string) *telemetry.Telemetry {
	t.Helper()
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		t.Setenv(name, env[name])
	}
	tel, err := telemetry.New(t.Context(), telemetry.Options{Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

// traced reports whether calls have spans of their own.
func traced(t *testing.T, tel *telemetry.Telemetry) bool {
	t.Helper()
	ctx, c := tel.Call(t.Context(), "refund", nil, nil)
	c.End(nil, false)
	return ctx != t.Context()
}

func TestTracesAreSentByOTLP(t *testing.T) {
	type posted struct{ path, name, span string }
	got := make(chan posted, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		var request coltrace.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil {
			t.Errorf("the collector got %v", err)
			return
		}
		p := posted{path: r.URL.Path}
		for _, a := range request.GetResourceSpans()[0].GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				p.name = a.GetValue().GetStringValue()
			}
		}
		p.span = request.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetName()
		got <- p
	}))
	defer collector.Close()
	tel := fromEnvironment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL})
	if !traced(t, tel) {
		t.Fatal("a call has no span")
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/v1/traces", "onceward", "tools/call refund"}, func() []string { p := <-got; return []string{p.path, p.name, p.span} }()); diff != "" {
		t.Errorf("what was sent when it ended (-want +got):\n%s", diff)
	}
}

func TestNoEndpointNoTraces(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"nothing":     {},
		"disabled":    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"no exporter": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			if traced(t, fromEnvironment(t, env)) {
				t.Error("a call has a span, want none")
			}
		})
	}
}

// A collector that hangs keeps neither a call nor the end of the server.
func TestACollectorThatHangs(t *testing.T) {
	release := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer collector.Close()
	defer close(release)
	tel := fromEnvironment(t, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.URL})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 10_000 { // more than are kept back
			traced(t, tel)
		}
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("calls wait for the collector")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := tel.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("Shutdown: %v, want that its time was over", err)
	}
}
