package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/onceward/onceward/ledger"
)

// Alarm returns what a ledger's Alarm is set to: it counts each alarm and hands it to all of
// next that aren't nil. They don't block: the ledger is in the middle of something.
func (t *Telemetry) Alarm(next ...func(ledger.Alarm)) func(ledger.Alarm) {
	return func(a ledger.Alarm) {
		if t != nil && t.metrics != nil {
			t.metrics.alarms.inc(word(a.Kind, "other"))
		}
		for _, tell := range next {
			if tell != nil {
				tell(a)
			}
		}
	}
}

// Deliveries shows a webhook's deliveries among the metrics.
func (t *Telemetry) Deliveries(w *Webhook) {
	if t != nil {
		t.webhook.Store(w)
	}
}

// gaugeWebhook makes the metrics of the webhook; without one they aren't shown.
func (t *Telemetry) gaugeWebhook(m metric.Meter) error {
	if _, err := m.Int64ObservableCounter("onceward.webhook.deliveries", metric.WithUnit("{delivery}"),
		metric.WithDescription("Alarms for the webhook, by what became of them; failed is one try of several."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			w := t.webhook.Load()
			if w == nil {
				return nil
			}
			d := w.Deliveries()
			o.Observe(d.Delivered, labelled("result", "delivered"))
			o.Observe(d.Failed, labelled("result", "failed"))
			o.Observe(d.Lost, labelled("result", "lost"))
			return nil
		})); err != nil {
		return err
	}
	_, err := m.Int64ObservableGauge("onceward.webhook.waiting", metric.WithUnit("{alarm}"), metric.WithDescription("Alarms that the webhook hasn't taken yet."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if w := t.webhook.Load(); w != nil {
				o.Observe(int64(w.Deliveries().Waiting))
			}
			return nil
		}))
	return err
}
