package telemetry

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/onceward/onceward/ledger"
)

// An instrument is one metric: what OpenTelemetry calls it. Prometheus' name has underscores,
// the unit and "_total"; docs/metrics.md lists those.
type instrument struct {
	name, unit, help string
	labels           []string
	bounds           []float64 // of a histogram, in seconds
}

var (
	operations   = instrument{"onceward.operations", "{operation}", "Times that operations entered a status, as it was committed by this process.", []string{"action_type", "status"}, nil}
	replays      = instrument{"onceward.replays", "{call}", "Calls that were answered from the ledger: nothing was sent for them.", []string{"action_type", "status"}, nil}
	conflicts    = instrument{"onceward.conflicts", "{call}", "Calls that were refused because they named an action and had other critical arguments.", []string{"action_type"}, nil}
	refusals     = instrument{"onceward.refusals", "{call}", "Calls that were refused, by code.", []string{"tool", "code"}, nil}
	attempts     = instrument{"onceward.attempts", "{attempt}", "Attempts to have a provider act, by what they proved.", []string{"provider", "action_type", "verdict"}, nil}
	lookups      = instrument{"onceward.lookups", "{lookup}", "Look-ups at a provider, by what they proved.", []string{"provider", "action_type", "verdict"}, nil}
	alarmsRaised = instrument{"onceward.alarms", "{alarm}", "Alarms, by kind.", []string{"kind"}, nil}
	ledgerErrors = instrument{"onceward.ledger.errors", "{error}", "Calls to the ledger's store that failed.", []string{"method", "kind"}, nil}

	callTime = instrument{"onceward.call.duration", "s", "How long calls of tools took, by what they were told.", []string{"tool", "status"},
		[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 60}}
	providerTime = instrument{"onceward.provider.duration", "s", "How long requests to providers took.", []string{"provider", "action_type", "request"},
		[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}}
	ledgerTime = instrument{"onceward.ledger.duration", "s", "How long calls to the ledger's store took.", []string{"method"},
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}}
)

// metrics are all that is counted where it happens; gauges.go has what is read now and then.
type metrics struct {
	operations, replays, conflicts, refusals counter
	attempts, lookups, alarms, ledgerErrors  counter
	callTime, providerTime, ledgerTime       histogram
	inFlight                                 atomic.Int64
	gauges                                   gauges
}

// measure makes the metrics and the registry that shows them.
func (t *Telemetry) measure(o Options, about *resource.Resource) error {
	t.registry = prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(t.registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo(),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return err
	}
	t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(about))
	meter := t.meters.Meter(scope)
	m := &metrics{}
	for _, c := range []struct {
		to *counter
		i  instrument
	}{
		{&m.operations, operations}, {&m.replays, replays}, {&m.conflicts, conflicts}, {&m.refusals, refusals},
		{&m.attempts, attempts}, {&m.lookups, lookups}, {&m.alarms, alarmsRaised}, {&m.ledgerErrors, ledgerErrors},
	} {
		if *c.to, err = newCounter(meter, c.i); err != nil {
			return err
		}
	}
	for _, h := range []struct {
		to *histogram
		i  instrument
	}{{&m.callTime, callTime}, {&m.providerTime, providerTime}, {&m.ledgerTime, ledgerTime}} {
		if *h.to, err = newHistogram(meter, h.i); err != nil {
			return err
		}
	}
	m.show(o.Actions)
	t.metrics = m
	if err := t.gauge(meter, o); err != nil {
		return err
	}
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := t.registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// show makes what an alert waits for visible as 0.
func (m *metrics) show(actions []string) {
	for _, action := range actions {
		for _, status := range ledger.Statuses() {
			m.operations.show(action, string(status))
		}
		m.conflicts.show(action)
	}
	for _, kind := range []string{
		string(ledger.OperationConflict), "second_intent", "late_success", "rejected_later", "review_opened", "review_overdue", "key_reused",
		ledger.ReviewContradiction, ledger.CodeUnsealed, ledger.CodePanic, "credentials_refused", "unexpected_answer", "clock_skew",
	} {
		m.alarms.show(kind)
	}
	for _, method := range []string{"Begin", "Record", "Find", "Sealed", "History", "Prune", "Remember", "Recall", "Usage"} {
		m.ledgerErrors.show(method, errorFailed)
		m.ledgerErrors.show(method, errorCommitLost)
	}
}

// gauge makes the gauges: what is the case now.
func (t *Telemetry) gauge(meter metric.Meter, o Options) error {
	m := t.metrics
	m.gauges.actions = o.Actions
	build := metric.WithAttributeSet(attribute.NewSet(attribute.String("version", o.Version)))
	if _, err := meter.Int64ObservableGauge("onceward.build.info", metric.WithDescription("Always 1; the version is its label."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(1, build); return nil })); err != nil {
		return err
	}
	if _, err := meter.Int64ObservableGauge("onceward.calls.in_flight", metric.WithUnit("{call}"), metric.WithDescription("Calls of tools that are being answered."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(m.inFlight.Load()); return nil })); err != nil {
		return err
	}
	if err := t.gaugeWebhook(meter); err != nil {
		return err
	}
	return t.gaugeLedger(meter)
}
