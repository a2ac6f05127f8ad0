package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

var (
	listed = regexp.MustCompile(`<span class="id">(op_[0-9a-f-]+)</span>`)
	older  = regexp.MustCompile(`<a class="button" rel="next" href="([^"]+)">`)
)

// all reads a list to its end, by the links that a person follows.
func (v *visitor) all(path string) (ids []string, pages int) {
	v.Helper()
	for path != "" {
		v.get(path)
		if v.status != http.StatusOK {
			v.Fatalf("%s: %d", path, v.status)
		}
		for _, m := range listed.FindAllStringSubmatch(v.page, -1) {
			ids = append(ids, m[1])
		}
		path = ""
		if m := older.FindStringSubmatch(v.page); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
		if pages++; pages > 100 {
			v.Fatal("the list doesn't end")
		}
	}
	return ids, pages
}

// Every way through the pages shows every operation that matches once, newest first.
func TestPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	var made []ledger.Operation
	for i := range 3*perPage + 7 {
		d.pass(time.Duration(i%9) * 5 * time.Hour) // several at the same time, and days with none
		r := refund(fmt.Sprint("step-", i), theArguments)
		r.Intent.RunID = fmt.Sprint("run-", i%2)
		if i%10 == 0 {
			r.Action = "email.send"
		}
		if i%25 == 0 {
			r.Approval = "above"
		}
		made = append(made, d.read(d.call(r).ID))
	}
	slices.Reverse(made)
	first, last := made[len(made)-1].CreatedAt, made[0].CreatedAt
	middle := first.Add(last.Sub(first) / 2).Truncate(24 * time.Hour)
	v := d.as("vera")
	for query, match := range map[string]func(ledger.Operation) bool{
		"":                                     func(ledger.Operation) bool { return true },
		"run=run-1":                            func(op ledger.Operation) bool { return op.Intent.RunID == "run-1" },
		"action=email.send":                    func(op ledger.Operation) bool { return op.Action == "email.send" },
		"status=succeeded":                     func(op ledger.Operation) bool { return op.Status == ledger.Succeeded },
		"status=planned":                       func(op ledger.Operation) bool { return op.Status == ledger.Planned },
		"status=failed_final":                  func(ledger.Operation) bool { return false },
		"needs=approval":                       waiting,
		"needs=review":                         func(ledger.Operation) bool { return false },
		"workflow=case-1842":                   func(ledger.Operation) bool { return true },
		"workflow=case":                        func(ledger.Operation) bool { return false },
		"tenant=acme":                          func(ledger.Operation) bool { return false },
		"from=" + middle.Format(time.DateOnly): func(op ledger.Operation) bool { return !op.CreatedAt.Before(middle) },
		"to=" + middle.Format(time.DateOnly):   func(op ledger.Operation) bool { return op.CreatedAt.Before(middle.AddDate(0, 0, 1)) },
		"run=run-0&to=" + middle.Format(time.DateOnly): func(op ledger.Operation) bool {
			return op.Intent.RunID == "run-0" && op.CreatedAt.Before(middle.AddDate(0, 0, 1))
		},
		"workflow=case-1842&from=" + middle.Format(time.DateOnly) + "&to=" + middle.Format(time.DateOnly): func(op ledger.Operation) bool {
			return !op.CreatedAt.Before(middle) && op.CreatedAt.Before(middle.AddDate(0, 0, 1))
		},
	} {
		var want []string
		for _, op := range made {
			if match(op) {
				want = append(want, op.ID)
			}
		}
		path := "/console/operations"
		if query != "" {
			path += "?" + query
		}
		got, pages := v.all(path)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
		if most := len(want)/perPage + 1; pages > most {
			t.Errorf("%s: %d pages, want at most %d", query, pages, most)
		}
	}
}

// Nothing is lost between two pages, though time goes by and servers write out of order: what
// another one began earlier may come into the ledger later.
func TestPagesWhileTimeGoesBy(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.done("long ago")
	d.pass(24 * time.Hour)
	const late = 10 * time.Minute
	var want []string
	for i := range 2*perPage + 1 {
		if i == 50 || i == 51 { // these come last in the list: they are older by their ids
			d.pass(-late)
			want = append([]string{d.done(fmt.Sprint("late-", i)).ID}, want...)
			d.pass(late)
			continue
		}
		d.pass(300 * time.Millisecond)
		want = append([]string{d.done(fmt.Sprint("step-", i)).ID}, want...)
	}
	for _, id := range slices.Clone(want[perPage-1 : perPage+1]) {
		i := slices.Index(want, id)
		want = append(slices.Delete(want, i, i+1), id)
	}
	v := d.as("vera")
	var got []string
	for path := "/console/operations?action=refund&from=2026-12-01"; path != ""; d.pass(58 * time.Second) {
		v.get(path)
		for _, m := range listed.FindAllStringSubmatch(v.page, -1) {
			got = append(got, m[1])
		}
		path = ""
		if m := older.FindStringSubmatch(v.page); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A search that finds little stops in time, and goes on where it stopped.
func TestSearchStopsInTime(t *testing.T) {
	t.Parallel()
	slow := &slowly{}
	d := newDesk(t, func(o *Options) { slow.Ledger = o.Ledger; o.Ledger = slow })
	slow.desk = d
	first := d.done("first")
	d.pass(100 * 24 * time.Hour)
	last := d.done("last")
	v := d.as("vera")
	slow.by = time.Second
	path := "/console/operations?action=refund"
	v.get(path)
	v.wants(http.StatusOK, "The search has come back to")
	v.wants(http.StatusOK, "Search on")
	slow.by = searchFor / 9
	ids, pages := v.all(path)
	if diff := cmp.Diff([]string{last.ID, first.ID}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pages < 2 {
		t.Errorf("it took %d page, and a long time", pages)
	}
}

// slowly is a ledger that takes its time.
type slowly struct {
	Ledger
	desk *desk
	by   time.Duration
}

func (s *slowly) List(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	s.desk.pass(s.by)
	return s.Ledger.List(ctx, f)
}

// What can't be searched for is said, and nothing is searched.
func TestSearchProblems(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op := d.done("one")
	v := d.as("vera")
	for query, want := range map[string]string{
		"status=done":                     "There is no such status.",
		"needs=help":                      "An operation needs an approval, a review, or nothing.",
		"from=yesterday":                  "The first day is written like 2026-11-30.",
		"to=2026-13-01":                   "The last day is written like 2026-11-30.",
		"from=2026-12-02&to=2026-12-01":   "The first day is after the last one.",
		"name=op_nobody":                  "There is no operation with this id or key.",
		"run=" + strings.Repeat("x", 600): "The field run is too long.",
		"before=now":                      "This address is broken",
		"to=2026-11-01&before=2026-12-24T00:00:00Z": "This address is broken",
		"after=" + strings.Repeat("x", 200):         "This address is broken",
	} {
		v.get("/console/operations?" + query)
		if !strings.Contains(v.page, want) || strings.Contains(v.page, op.ID) {
			t.Errorf("%s: want a page with %q, got %d:\n%s", query, want, v.status, v.page)
		}
	}
	for _, name := range []string{op.ID, " " + op.ID + " ", op.Key.String()} {
		v.get("/console/operations?name=" + url.QueryEscape(name))
		v.wants(http.StatusOK, "Timeline")
	}
	v.get("/console/operations?x=" + strings.Repeat("x", maxQuery))
	if v.status != http.StatusRequestURITooLong {
		t.Errorf("a long address: %d", v.status)
	}
}
