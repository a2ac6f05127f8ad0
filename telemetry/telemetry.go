package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope names this package to OpenTelemetry.
const scope = "github.com/onceward/onceward/telemetry"

// flushFor bounds how long the last spans may take to leave.
const flushFor = 5 * time.Second

// Options say what is told.
type Options struct {
	Metrics bool     // counted, and served by Handler
	Version string   // of the server
	Actions []string // the action types that are served: their counts are shown from the start, as 0
	// Spans takes the traces. nil: they go by OTLP over HTTP to where the standard
	// environment variables say, and nowhere if those name no endpoint.
	Spans sdktrace.SpanExporter
	Log   *slog.Logger     // nil: slog.Default
	Now   func() time.Time // nil: time.Now
}

// A Telemetry counts and traces. A nil one does neither, and its methods hand on what they
// were given.
type Telemetry struct {
	log      *slog.Logger
	now      func() time.Time
	metrics  *metrics                 // nil: none
	tracer   trace.Tracer             // nil: no spans are made
	webhook  atomic.Pointer[Webhook]  // whose deliveries are counted
	registry *prometheus.Registry     // nil: none
	meters   *sdkmetric.MeterProvider // nil: none
	traces   *sdktrace.TracerProvider // nil: none
	ended    atomic.Bool
}

// New makes what the options ask for. Traces begin when OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, or Options.Spans; nothing is connected to yet.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	t := &Telemetry{log: o.Log, now: o.Now}
	if t.log == nil {
		t.log = slog.Default()
	}
	if t.now == nil {
		t.now = time.Now
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "onceward"), attribute.String("service.version", o.Version)),
		resource.WithFromEnv()) // the last one wins
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES, or OTEL_SERVICE_NAME: %w", err)
	}
	if err := t.trace(ctx, o.Spans, about); err != nil {
		return nil, err
	}
	if !o.Metrics {
		return t, nil
	}
	if err := t.measure(o, about); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), t.Shutdown(ctx))
	}
	return t, nil
}

// Handler serves the metrics in Prometheus' formats. It answers 404 where there are none.
// Whoever may ask is the caller's matter: it tells nothing personal, but how much is done.
func (t *Telemetry) Handler() http.Handler {
	if t == nil || t.registry == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	})
}

// Shutdown sends the spans that wait, for at most five seconds, and ends. A nil error
// means that all have left. A second call does nothing.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if t == nil || t.ended.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushFor)
	defer cancel()
	var err error
	if t.traces != nil {
		err = t.traces.Shutdown(ctx)
	}
	if t.meters != nil {
		err = errors.Join(err, t.meters.Shutdown(ctx))
	}
	return err
}

// off reports whether there is nothing to be done at all.
func (t *Telemetry) off() bool { return t == nil || t.metrics == nil && t.tracer == nil }
