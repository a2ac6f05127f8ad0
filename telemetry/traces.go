package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// trace makes the tracer, where somebody takes spans. They are kept back and sent in
// batches; when nobody takes them fast enough they are dropped, and no call waits.
func (t *Telemetry) trace(ctx context.Context, spans sdktrace.SpanExporter, about *resource.Resource) error {
	if spans == nil {
		if !wanted(os.Getenv) {
			return nil
		}
		t.checkProtocol(os.Getenv)
		exporter, err := otlptracehttp.New(ctx) // reads the rest of the environment
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT, and what stands beside it: %w", err)
		}
		spans = exporter
		otel.SetErrorHandler(&complaints{log: t.log, now: t.now})
	}
	t.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(about))
	t.tracer = t.traces.Tracer(scope)
	return nil
}

// wanted reports whether the environment asks for traces:
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
// Without an endpoint nothing is sent, not even to the collector that the
// specification supposes on localhost.
func wanted(env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func (t *Telemetry) checkProtocol(env func(string) string) {
	protocol := env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = env("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	if protocol != "" && protocol != "http/protobuf" {
		t.log.Warn("traces are sent as http/protobuf, whatever OTEL_EXPORTER_OTLP_PROTOCOL says; give an endpoint that takes it, mostly on port 4318", "protocol", protocol)
	}
}

// complaintsEvery spaces what is logged of traces that can't be delivered.
const complaintsEvery = time.Minute

// complaints logs OpenTelemetry's errors, one a minute.
type complaints struct {
	log  *slog.Logger
	now  func() time.Time
	mu   sync.Mutex
	last time.Time
}

// Handle implements [otel.ErrorHandler].
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	now := c.now()
	quiet := now.Sub(c.last) < complaintsEvery
	if !quiet {
		c.last = now
	}
	c.mu.Unlock()
	if !quiet {
		c.log.Warn("traces can't be delivered; calls don't wait for them", "error", err)
	}
}
