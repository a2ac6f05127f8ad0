package telemetry

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/onceward/onceward/ledger"
)

// readMost bounds how many operations of a kind are read to be counted: a gauge that shows as
// many means "or more".
const readMost = 1000

// readFor bounds how long one reading of the gauges may take.
const readFor = 10 * time.Second

// A Source is where the gauges are read from. Functions that are nil aren't asked.
type Source struct {
	List  func(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error)
	Fills func(ctx context.Context) ([]Fill, error)
	Held  func() int // outcomes that couldn't be recorded yet
}

// A Fill is how much is taken of one count of a limit. Counts of the same limit, such as
// those of two runs, become one gauge: the fullest.
type Fill struct {
	Action    string
	Limit     string // the limit's name in the configuration: "per_day.amount.USD"
	Used, Max int64
}

// limitName is what a limit is called. Whatever else comes, an id perhaps, is no label.
var limitName = regexp.MustCompile(`^per_(run|workflow|tenant|day)\.(count|amount\.[A-Z]{3})$`)

// A kind of open operations that people or automation have to settle.
type kind int

const (
	unknown kind = iota
	reviews
	approvals
	kinds
)

// filters select the kinds. A store answers each of them without reading what is final.
var filters = [kinds]ledger.Filter{
	unknown:   {Statuses: []ledger.Status{ledger.Unknown}, Limit: readMost},
	reviews:   {Review: true, Limit: readMost},
	approvals: {Approval: true, Limit: readMost},
}

// since is when the waiting began.
func (k kind) since(op *ledger.Operation) time.Time {
	switch {
	case k == unknown && !op.UnsettledSince.IsZero():
		return op.UnsettledSince
	case k == reviews:
		return op.Review.OpenedAt
	case k == approvals:
		return op.CreatedAt // a refused call moves it, and changes nothing for who waits
	}
	return op.UpdatedAt
}

// gauges are what was read last. Looking at them costs the ledger nothing.
type gauges struct {
	actions []string
	mu      sync.Mutex
	read    time.Time // when it succeeded last
	open    [kinds]map[string]int64
	oldest  [kinds]time.Time
	fills   map[[2]string]float64
	held    func() int
}

// Watch reads the gauges now and every interval, until ctx is done. What can't be read keeps
// its last value; onceward_gauges_read_timestamp_seconds tells how old that is.
func (t *Telemetry) Watch(ctx context.Context, from Source, every time.Duration) {
	if t == nil || t.metrics == nil {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := t.Read(ctx, from); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "the metrics' gauges can't be read from the ledger; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Read reads the gauges once.
func (t *Telemetry) Read(ctx context.Context, from Source) error {
	if t == nil || t.metrics == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	var fresh gauges
	var failed error
	for k := range kinds {
		fresh.open[k] = map[string]int64{}
		if from.List == nil {
			continue
		}
		found, err := from.List(ctx, filters[k])
		failed = errors.Join(failed, err)
		for i := range found {
			fresh.open[k][found[i].Action]++
			if since := k.since(&found[i]); fresh.oldest[k].IsZero() || since.Before(fresh.oldest[k]) {
				fresh.oldest[k] = since
			}
		}
	}
	if from.Fills != nil {
		all, err := from.Fills(ctx)
		failed = errors.Join(failed, err)
		fresh.fills = fullest(all)
	}
	g := &t.metrics.gauges
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = from.Held // it asks no ledger, so it is never stale
	if failed == nil {
		g.open, g.oldest, g.fills, g.read = fresh.open, fresh.oldest, fresh.fills, t.now()
	}
	return failed
}

func fullest(all []Fill) map[[2]string]float64 {
	fills := map[[2]string]float64{}
	for _, f := range all {
		if !limitName.MatchString(f.Limit) {
			f.Limit = "other"
		}
		ratio := 1.0 // nothing is allowed: it is full
		if f.Max > 0 {
			ratio = float64(f.Used) / float64(f.Max)
		}
		at := [2]string{f.Action, f.Limit}
		fills[at] = max(fills[at], ratio)
	}
	return fills
}

// gaugeLedger makes the gauges that show what was read.
func (t *Telemetry) gaugeLedger(m metric.Meter) error {
	g := &t.metrics.gauges
	var failed error
	count := func(name, unit, help string) metric.Int64ObservableGauge {
		made, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
		failed = errors.Join(failed, err)
		return made
	}
	measure := func(name, unit, help string) metric.Float64ObservableGauge {
		made, err := m.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
		failed = errors.Join(failed, err)
		return made
	}
	open := [kinds]metric.Int64ObservableGauge{
		unknown:   count("onceward.unknown.open", "{operation}", "Operations whose outcome is unknown; 1000 means that many or more."),
		reviews:   count("onceward.reviews.open", "{operation}", "Operations about which a person is asked; 1000 means that many or more."),
		approvals: count("onceward.approvals.waiting", "{operation}", "Operations that wait for an approval; 1000 means that many or more."),
	}
	oldest := [kinds]metric.Float64ObservableGauge{
		unknown:   measure("onceward.unknown.oldest.age", "s", "How long the oldest unknown outcome has been unknown; 0 if there is none."),
		reviews:   measure("onceward.reviews.oldest.age", "s", "How long the oldest open review has been open; 0 if there is none."),
		approvals: measure("onceward.approvals.oldest.age", "s", "How long the oldest operation has waited for an approval; 0 if there is none."),
	}
	fill := measure("onceward.limit.fill", "1", "How full the fullest count of a limit is, from 0 to 1.")
	held := count("onceward.outcomes.held", "{outcome}", "Outcomes that this process knows and couldn't record yet.")
	read := measure("onceward.gauges.read.timestamp", "s", "When what the gauges show was read from the ledger; 0 if it never was.")
	if failed != nil {
		return failed
	}
	all := []metric.Observable{fill, held, read}
	for k := range kinds {
		all = append(all, open[k], oldest[k])
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.held != nil {
			o.ObserveInt64(held, int64(g.held()))
		}
		o.ObserveFloat64(read, unix(g.read))
		if g.read.IsZero() {
			return nil // nobody knows, and 0 would say that all is well
		}
		for k := range kinds {
			for _, action := range g.actions {
				if _, ok := g.open[k][action]; !ok {
					o.ObserveInt64(open[k], 0, labelled("action_type", action))
				}
			}
			for action, n := range g.open[k] {
				o.ObserveInt64(open[k], n, labelled("action_type", action))
			}
			o.ObserveFloat64(oldest[k], age(t.now(), g.oldest[k]))
		}
		for at, ratio := range g.fills {
			o.ObserveFloat64(fill, ratio, labelled("action_type", at[0], "limit", at[1]))
		}
		return nil
	}, all...)
	return err
}

func labelled(pairs ...string) metric.ObserveOption {
	set := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		set = append(set, attribute.String(pairs[i], pairs[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(set...))
}

func age(now, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(now.Sub(since).Seconds(), 0)
}

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
