package telemetry

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maxSeries bounds how many combinations of labels a metric has. Labels come from short lists,
// so it isn't reached; if one day it is, what comes after is counted as "other".
const maxSeries = 256

// values are the values of up to three labels.
type values [3]string

// A table keeps one T for each combination of labels. Reading it takes no lock: the path of
// every call leads here.
type table[T any] struct {
	labels []string
	make   func(attribute.Set) T
	mu     sync.Mutex
	known  atomic.Pointer[map[values]T]
}

func newTable[T any](labels []string, create func(attribute.Set) T) *table[T] {
	t := &table[T]{labels: labels, make: create}
	t.known.Store(&map[values]T{})
	return t
}

func (t *table[T]) of(v values) T {
	if one, ok := (*t.known.Load())[v]; ok {
		return one
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := *t.known.Load()
	if len(known) >= maxSeries {
		v = values{"other", "other", "other"}
	}
	if one, ok := known[v]; ok {
		return one
	}
	set := make([]attribute.KeyValue, len(t.labels))
	for i, label := range t.labels {
		set[i] = attribute.String(label, v[i])
	}
	more := maps.Clone(known)
	more[v] = t.make(attribute.NewSet(set...))
	t.known.Store(&more)
	return more[v]
}

// A counter is added to in a few nanoseconds; OpenTelemetry asks for its counts when somebody
// looks.
type counter struct{ *table[*count] }

type count struct {
	n      atomic.Int64
	labels metric.ObserveOption
}

func newCounter(m metric.Meter, i instrument) (counter, error) {
	c := counter{newTable(i.labels, func(s attribute.Set) *count { return &count{labels: metric.WithAttributeSet(s)} })}
	_, err := m.Int64ObservableCounter(i.name, metric.WithDescription(i.help), metric.WithUnit(i.unit),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, one := range *c.known.Load() {
				o.Observe(one.n.Load(), one.labels)
			}
			return nil
		}))
	return c, err
}

func (c counter) inc(v ...string) {
	var key values
	copy(key[:], v)
	c.of(key).n.Add(1)
}

// show makes a combination visible before anything was counted, as 0: what begins with 1
// looks to Prometheus as if it had never risen.
func (c counter) show(v ...string) {
	var key values
	copy(key[:], v)
	c.of(key)
}

// A histogram counts durations, in seconds.
type histogram struct {
	h metric.Float64Histogram
	*table[[]metric.RecordOption]
}

func newHistogram(m metric.Meter, i instrument) (histogram, error) {
	h, err := m.Float64Histogram(i.name, metric.WithDescription(i.help), metric.WithUnit(i.unit), metric.WithExplicitBucketBoundaries(i.bounds...))
	return histogram{h, newTable(i.labels, func(s attribute.Set) []metric.RecordOption {
		return []metric.RecordOption{metric.WithAttributeSet(s)}
	})}, err
}

// record takes ctx for the trace that is shown as an example of a duration.
func (h histogram) record(ctx context.Context, seconds float64, v ...string) {
	var key values
	copy(key[:], v)
	h.h.Record(ctx, seconds, h.of(key)...)
}
