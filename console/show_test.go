package console

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// nasty is text that would do harm if a page took it for more than text.
const nasty = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}'`

// Whatever a model, an orchestrator or a provider writes stays text.
func TestTextStaysText(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *Options) {
		o.Limits = func(context.Context) ([]Limit, error) {
			return []Limit{{Name: nasty, Action: nasty, Used: 1, Bound: 2, Currency: nasty, Digits: 2}}, nil
		}
		o.Actions = []string{nasty}
	})
	arguments, err := json.Marshal(map[string]any{nasty: nasty, "list": []string{nasty}, "deep": map[string]string{nasty: nasty}})
	if err != nil {
		t.Fatal(err)
	}
	r := refund(nasty, string(arguments))
	r.Tenant = nasty
	r.Intent.WorkflowID, r.Intent.BusinessObject, r.Intent.RunID = nasty, nasty, nasty
	r.Approval = nasty
	op := d.want(d.call(r), ledger.Planned)
	odd := ledger.Actor{Provider: nasty, Scope: "s", Promise: ledger.Promise{Deadline: 5 * time.Second, Lease: 10 * time.Second},
		Apply: func(context.Context, ledger.Attempt) ledger.Finding {
			value, err := json.Marshal(map[string]string{nasty: nasty})
			if err != nil {
				t.Error(err)
			}
			return ledger.Finding{Verdict: ledger.Done, Code: nasty, Receipt: ledger.Receipt{ProviderOperationID: nasty, ProviderStatus: nasty, State: ledger.Settled, Reference: value, Result: value, Evidence: value}}
		}}
	d.ledger.Actors["odd"+nasty] = odd
	done := refund("done", string(arguments))
	done.Action, done.Intent.BusinessOperationID = "odd"+nasty, nasty
	final := d.want(d.call(done), ledger.Succeeded)
	d.alarms.Note(ledger.Alarm{Kind: nasty, OperationID: nasty, Action: nasty, At: monday})

	v := d.as("anna")
	check := func(name string) {
		t.Helper()
		if v.status >= 500 || strings.Contains(v.page, "<script") || strings.Contains(v.page, "<img") || strings.Contains(v.page, "ZgotmplZ") {
			t.Errorf("%s: %d, and the text isn't text:\n%s", name, v.status, v.page)
		}
	}
	for _, path := range []string{"/console/", "/console/operations", of(op, ""), of(final, ""), "/console/limits", "/console/outcomes"} {
		v.get(path)
		check(path)
		if !strings.Contains(html.UnescapeString(v.page), "alert(1)") && path != "/console/outcomes" {
			t.Errorf("%s doesn't show the text at all", path)
		}
	}
	v.get(of(op, ""))
	v.submit(op, "arguments")
	check("arguments")
	v.submit(op, "deny", "reason", nasty)
	check("denied")
	for _, field := range []string{"name", "status", "action", "workflow", "run", "tenant", "needs", "from", "to", "after", "before", "done"} {
		v.get("/console/operations?" + field + "=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
		check(field)
	}
	v.get("/console/operations/%3Cscript%3E")
	check("an address")
	v.get("/console/enter?ticket=%22%3E%3Cscript%3E")
	check("a ticket")
}

// What changes how other text is seen is written out.
func TestHiddenCharacters(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"plain ä € 猫 🙂":          "plain ä € 猫 🙂",
		"a\u202eb":               "a⟨U+202E⟩b",
		"pay\u200bpal":           "pay⟨U+200B⟩pal",
		"two\nlines":             "two\nlines",
		"a\rb\tc":                "a⟨U+000D⟩b⟨U+0009⟩c",
		"tag\U000E0041":          "tag⟨U+E0041⟩",
		"filler\u3164":           "filler⟨U+3164⟩",
		"\ufefffirst":            "⟨U+FEFF⟩first",
		"broken \xff byte":       "broken ⟨U+FFFD⟩ byte",
		"line\u2028paragraph":    "line⟨U+2028⟩paragraph",
		"isolate\u2066x\u2069":   "isolate⟨U+2066⟩x⟨U+2069⟩",
		"variation\ufe0f":        "variation\ufe0f",
		"smuggled\U000E0101":     "smuggled⟨U+E0101⟩",
		"soft\u00adhyphen":       "soft⟨U+00AD⟩hyphen",
		"no-break\u00a0is a gap": "no-break\u00a0is a gap",
	} {
		if got := visible(given); got != want {
			t.Errorf("visible(%q) = %q, want %q", given, got, want)
		}
	}
}

// Nowhere does a page show text in another order than it is written in.
func TestHiddenCharactersOnPages(t *testing.T) {
	t.Parallel()
	const turned = "100\u202e001"
	d := newDesk(t, nil)
	r := refund(turned, `{"amount":"`+turned+`","list":["`+turned+`"],"`+turned+`":{"deep":"`+turned+`"}}`)
	r.Intent.WorkflowID, r.Intent.BusinessObject, r.Intent.RunID, r.Tenant, r.Approval = turned, turned, turned, turned, turned
	op := d.want(d.call(r), ledger.Planned)
	v := d.as("anna")
	check := func(name string) {
		t.Helper()
		if strings.Contains(v.page, "\u202e") || !strings.Contains(html.UnescapeString(v.page), "100⟨U+202E⟩001") {
			t.Errorf("%s shows text in another order than it is written in:\n%s", name, v.page)
		}
	}
	for _, path := range []string{"/console/", "/console/operations", of(op, "")} {
		v.get(path)
		check(path)
	}
	v.submit(op, "arguments")
	check("arguments")
}

// Arguments are on the one page that an approver asked for, and nowhere else.
func TestNothingPersonal(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op, open := d.planned("notice"), d.inReview("lost")
	v := d.as("anna")
	for _, path := range []string{"/console/", "/console/operations", of(op, ""), of(open, ""), "/console/limits", "/console/outcomes"} {
		if strings.Contains(v.get(path), "planted-note") {
			t.Errorf("%s shows arguments", path)
		}
	}
	for _, shown := range []ledger.Operation{op, open} {
		v.get(of(shown, ""))
		if !strings.Contains(v.submit(shown, "arguments"), "planted-note") {
			t.Error("an approver who asks isn't shown the arguments")
		}
		if v.header.Get("Cache-Control") != "no-store" {
			t.Errorf("a page with arguments may be kept: %q", v.header.Get("Cache-Control"))
		}
		if strings.Contains(v.get(of(shown, "")), "planted-note") {
			t.Error("arguments stay on the page")
		}
	}
	log := d.logged()
	if strings.Contains(log, "planted-note") || !strings.Contains(log, "arguments were shown") || !strings.Contains(log, "by=anna") {
		t.Errorf("the log: %s", log)
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	for given, want := range map[string][]fact{
		``:                                nil,
		`null`:                            nil,
		`{}`:                              nil,
		`{"b":"1","a":[ "x","y" ]}`:       {{"b", []string{"1"}, false}, {"a", []string{"x", "y"}, false}},
		`{"n":1.50,"o":{"k":[1]},"z":[]}`: {{"n", []string{"1.50"}, false}, {"o", []string{`{"k":[1]}`}, false}, {"z", nil, false}},
		`{"t":"a\nb"}`:                    {{"t", []string{"a\nb"}, true}},
		`"alone"`:                         {{"", []string{"alone"}, false}},
		`{"broken":`:                      {{"", []string{`{"broken":`}, false}},
		`{"null":null}`:                   {{"null", []string{"null"}, false}},
	} {
		if diff := cmp.Diff(want, facts(json.RawMessage(given))); diff != "" {
			t.Errorf("facts(%s) (-want +got):\n%s", given, diff)
		}
	}
}

func TestLimitTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit       Limit
		used, bound string
		percent     int
		level       string
	}{
		{Limit{Used: 7, Bound: 20}, "7", "20", 35, "low"},
		{Limit{Used: 19_999, Bound: 20_000}, "19\u202f999", "20\u202f000", 99, "high"},
		{Limit{Used: 20, Bound: 20}, "20", "20", 100, "full"},
		{Limit{Used: 21, Bound: 20}, "21", "20", 100, "full"},
		{Limit{Used: 1, Bound: 0}, "1", "0", 100, "full"},
		{Limit{Used: 5, Bound: 500_000, Currency: "USD", Digits: 2}, "0.05 USD", "5\u202f000.00 USD", 0, "low"},
		{Limit{Used: 1234, Bound: 1234, Currency: "JPY"}, "1\u202f234 JPY", "1\u202f234 JPY", 100, "full"},
		{Limit{Used: 1, Bound: 1_000_000, Currency: "BHD", Digits: 3}, "0.001 BHD", "1\u202f000.000 BHD", 0, "low"},
		{Limit{Used: 9_223_372_036_854_775_806, Bound: 9_223_372_036_854_775_807}, "9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f806", "9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f807", 100, "full"},
	} {
		if got := c.limit.UsedText(); got != c.used {
			t.Errorf("%+v: used %q, want %q", c.limit, got, c.used)
		}
		if got := c.limit.BoundText(); got != c.bound {
			t.Errorf("%+v: bound %q, want %q", c.limit, got, c.bound)
		}
		if p, l := c.limit.Percent(), c.limit.Level(); p != c.percent || l != c.level {
			t.Errorf("%+v: %d %%, %s; want %d %%, %s", c.limit, p, l, c.percent, c.level)
		}
	}
}

func TestAlarms(t *testing.T) {
	t.Parallel()
	var a Alarms
	for i := range alarmsKept + 3 {
		a.Note(ledger.Alarm{Moves: i})
	}
	recent := a.Recent()
	if len(recent) != alarmsKept || recent[0].Moves != alarmsKept+2 || recent[alarmsKept-1].Moves != 3 {
		t.Errorf("%d are kept, from %d to %d", len(recent), recent[0].Moves, recent[len(recent)-1].Moves)
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	hours := hourly(monday, []ledger.Operation{
		{Status: ledger.Succeeded, CreatedAt: monday}, {Status: ledger.Succeeded, CreatedAt: monday.Add(59 * time.Minute)},
		{Status: ledger.Unknown, CreatedAt: monday.Add(time.Hour)}, {Status: ledger.FailedFinal, CreatedAt: monday.Add(23 * time.Hour)},
		{Status: ledger.Planned, CreatedAt: monday.Add(23 * time.Hour)}, {Status: ledger.Executing, CreatedAt: monday.Add(24 * time.Hour)},
	})
	want := map[int]hour{0: {Succeeded: 2}, 1: {Unknown: 1}, 23: {Failed: 1, Open: 2}}
	for i, h := range hours {
		h.At = time.Time{}
		if diff := cmp.Diff(want[i], h); diff != "" {
			t.Errorf("hour %d (-want +got):\n%s", i, diff)
		}
	}
	hours[5] = hour{Succeeded: 1_000_000, Failed: 1, Open: 1, Unknown: 1}
	for _, b := range draw(hours).Bars {
		if b.H < 2 || b.Y < 0 || b.Y+b.H > chartHeight || b.X+b.W > chartWidth {
			t.Errorf("a bar that isn't seen: %+v", b)
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.done("old")
	d.pass(25 * time.Hour)
	d.done("new")
	d.inReview("lost")
	v := d.as("vera")
	v.get("/console/outcomes")
	v.wants(http.StatusOK, "created in the last 24 hours: 2.")
	for _, text := range []string{"11:00: 1 succeeded", "11:00: 1 unknown", `<th scope="row"><time datetime="2026-12-01T11:00:00Z">`} {
		v.wants(http.StatusOK, text)
	}
	if strings.Contains(v.page, "did not happen<") {
		t.Error("something that did not fail is drawn")
	}
}

func TestLimitsPage(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *Options) {
		o.Limits = func(context.Context) ([]Limit, error) {
			return []Limit{{Name: "per day", Action: "refund", Used: 425_00, Bound: 500_00, Currency: "USD", Digits: 2, FreesAt: monday.Add(3 * time.Hour)}}, nil
		}
	})
	v := d.as("vera")
	v.get("/console/limits")
	v.wants(http.StatusOK, "425.00 USD of 500.00 USD (85 %)")
	v.wants(http.StatusOK, "in 3 h")
}

func TestPrunedOperation(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op := d.done("old")
	d.pass(time.Hour)
	if n, err := d.ledger.Prune(t.Context(), ledger.Prunable{Before: d.now(), Limit: 10}, map[string][]string{}); err != nil || n != 1 {
		t.Fatalf("pruned %d, %v", n, err)
	}
	v := d.as("anna")
	v.get(of(op, ""))
	v.wants(http.StatusOK, fmt.Sprintf("%d steps are no longer kept", d.read(op.ID).Moves))
	v.wants(http.StatusOK, "Succeeded")
}

// A failing ledger is a page that says so, and says nothing else.
func TestLedgerThatFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *Options) { o.Ledger = broken{o.Ledger} })
	v := d.visitor()
	v.post("/console/login", "credential", d.owc["anna"])
	v.wants(http.StatusServiceUnavailable, "The ledger can&#39;t be reached")
	if strings.Contains(v.page, "secret detail") {
		t.Error("the page shows the cause")
	}
}

type broken struct{ Ledger }

func (broken) List(context.Context, ledger.Filter) ([]ledger.Operation, error) {
	return nil, &ledger.Refusal{Code: ledger.LedgerUnavailable, Cause: fmt.Errorf("secret detail")}
}
