package telemetry_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/telemetry"
)

// served is every metric, after each was touched once.
func served(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	tel := newTelemetry(t, telemetry.Options{Metrics: true, Version: "1.2.3", Actions: []string{"refund"}})
	w, err := telemetry.NewWebhook(telemetry.WebhookOptions{URL: "https://alarms.example.com/x", Secret: webhookSecret})
	if err != nil {
		t.Fatal(err)
	}
	tel.Deliveries(w)
	inner := openStore(t, t.TempDir()+"/ledger.db")
	defer func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	}()
	p := &scripted{script: findings([]ledger.Verdict{ledger.Unclear})}
	l := newLedger(t, tel, inner, p.actor())
	for _, amount := range []string{"1.00", "1.00", "1.00", "2.00"} {
		ctx, c := tel.Call(t.Context(), "refund", nil, http.Header{})
		_, err := l.Execute(ctx, call("1", amount, ""))
		c.End(nil, err != nil)
	}
	err = tel.Read(t.Context(), telemetry.Source{
		List: l.List, Held: func() int { return 0 },
		Fills: func(context.Context) ([]telemetry.Fill, error) {
			return []telemetry.Fill{{Action: "refund", Limit: "per_run.count", Max: 1}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return scrape(t, tel)
}

// ours are the names of this program's metrics, with their types and labels.
func ours(families map[string]*dto.MetricFamily) map[string]string {
	named := map[string]string{}
	for name, f := range families {
		if !strings.HasPrefix(name, "onceward_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		named[name] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ", ")
	}
	return named
}

// A row of the table in docs/metrics.md: name, type, labels, meaning, when to worry.
var docsRow = regexp.MustCompile("(?m)^\\| `(onceward_\\w+)` \\| (\\w+) \\| ([^|]*) \\| ([^|]+) \\| ([^|]+) \\|$")

func TestDocsListTheMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range docsRow.FindAllStringSubmatch(string(text), -1) {
		var labels []string
		for label := range strings.SplitSeq(strings.ReplaceAll(row[3], "`", ""), ",") {
			if label = strings.TrimSpace(label); label != "–" {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		documented[row[1]] = row[2] + " " + strings.Join(labels, ", ")
	}
	if diff := cmp.Diff(ours(served(t)), documented); diff != "" {
		t.Errorf("docs/metrics.md (-served +documented):\n%s", diff)
	}
}

var (
	metricName = regexp.MustCompile(`\b(onceward|go|process|promhttp)_[a-z0-9_]+`)
	matcher    = regexp.MustCompile(`\b(\w+)\{([^}]*)\}`)
	labelName  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`\bby\s*\(([^)]*)\)`)
	template   = regexp.MustCompile(`\{\{\s*\$labels\.(\w+)`)
)

// Labels that Prometheus adds, and the one of a histogram's buckets.
var added = []string{"instance", "job", "le"}

// checkExpression demands that an expression's metrics exist, and have the labels that it names.
func checkExpression(t *testing.T, where, expression string, families map[string]*dto.MetricFamily) {
	t.Helper()
	labels := map[string]bool{}
	for _, l := range added {
		labels[l] = true
	}
	names := metricName.FindAllString(expression, -1)
	if len(names) == 0 {
		t.Errorf("%s: %q names no metric", where, expression)
	}
	for _, name := range names {
		f := family(families, name)
		if f == nil {
			t.Errorf("%s: there is no metric %s", where, name)
		}
		maps.Copy(labels, labelsOf(f))
	}
	for _, m := range matcher.FindAllStringSubmatch(expression, -1) {
		has := labelsOf(family(families, m[1]))
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if !has[l[1]] && !slices.Contains(added, l[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], l[1])
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expression, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			if !labels[strings.TrimSpace(l)] {
				t.Errorf("%s: nothing in %q has the label %s", where, expression, l)
			}
		}
	}
	for _, pair := range []string{"()", "[]", "{}"} {
		if strings.Count(expression, pair[:1]) != strings.Count(expression, pair[1:]) {
			t.Errorf("%s: %q isn't balanced", where, expression)
		}
	}
}

// family is the metric that a name in an expression belongs to. Only a histogram has parts.
func family(families map[string]*dto.MetricFamily, name string) *dto.MetricFamily {
	if f := families[name]; f != nil && f.GetType() != dto.MetricType_HISTOGRAM {
		return f
	}
	for _, part := range []string{"_bucket", "_count", "_sum"} {
		if whole, ok := strings.CutSuffix(name, part); ok {
			if f := families[whole]; f.GetType() == dto.MetricType_HISTOGRAM {
				return f
			}
		}
	}
	return nil
}

func labelsOf(f *dto.MetricFamily) map[string]bool {
	labels := map[string]bool{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = true
		}
	}
	return labels
}

func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	type panel struct {
		ID          int
		Title, Type string
		Description string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr, RefID string }
	}
	var dashboard struct {
		Title, UID string
		Panels     []panel
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	families, shown, ids := served(t), map[string]bool{}, map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q has another one's id, or is too wide", p.Title)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q says nothing", p.Title)
		}
		for _, target := range p.Targets {
			checkExpression(t, p.Title, target.Expr, families)
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				shown[family(families, name).GetName()] = true
			}
		}
	}
	if len(shown) < 15 {
		t.Errorf("the dashboard shows %d metrics", len(shown))
	}
}

func TestTheAlertsAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				KeepFiringFor       string `yaml:"keep_firing_for"`
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	families, alerts := served(t), map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if alerts[r.Alert] {
				t.Errorf("there are two alerts %s", r.Alert)
			}
			alerts[r.Alert] = true
			checkExpression(t, r.Alert, r.Expr, families)
			if !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: a rule has a severity of page or ticket, a summary and a description", r.Alert)
			}
			for _, said := range r.Annotations {
				for _, l := range template.FindAllStringSubmatch(said, -1) {
					whole := !strings.Contains(r.Expr, "by (") && slices.Contains(added, l[1])
					if !whole && !strings.Contains(r.Expr, l[1]) {
						t.Errorf("%s speaks of the label %s, which its expression doesn't keep", r.Alert, l[1])
					}
				}
			}
		}
	}
	for _, want := range []string{
		"OncewardUnknownTooLong", "OncewardReviewOpen", "OncewardReviewOverdue", "OncewardConflicts", "OncewardLedgerErrors",
		"OncewardOutcomesHeld", "OncewardProviderFailing", "OncewardLateSuccess", "OncewardGaugesStale", "OncewardWebhookLosesAlarms",
	} {
		if !alerts[want] {
			t.Errorf("there is no alert %s", want)
		}
	}
}
