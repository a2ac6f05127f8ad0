package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/onceward/onceward/drill"
	"github.com/onceward/onceward/policy"
)

// A verifyPrinter shows the results, one table for each action type.
type verifyPrinter struct {
	out      io.Writer
	subjects []drill.Subject
	results  []drill.Result
	rows     []drill.Result // of the action type that is under way
	broken   []drill.Result
}

func newVerifyPrinter(out io.Writer, subjects []drill.Subject) *verifyPrinter {
	return &verifyPrinter{out: out, subjects: subjects}
}

func (p *verifyPrinter) add(r drill.Result) {
	p.results, p.rows = append(p.results, r), append(p.rows, r)
	if r.Verdict == drill.Broken {
		p.broken = append(p.broken, r)
	}
}

// printWhole prints the action type's table once it is whole: its columns are aligned.
func (p *verifyPrinter) printWhole() {
	subject := p.subjects[0]
	if len(p.rows) < drill.Count(subject) {
		return
	}
	fmt.Fprintf(p.out, "%s\n%s\n\n", subject.Action, proof(subject.Provider, subject.Traits))
	table := tabwriter.NewWriter(p.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "  SCENARIO\tWHAT HAPPENED\tEFFECTS\tVERDICT")
	for _, r := range p.rows {
		effects, happened := fmt.Sprint(r.Effects), r.Happened
		if r.Verdict == drill.DoesNotApply {
			effects = "-"
		}
		if r.Verdict == drill.Broken {
			happened = r.Problem + ": " + happened
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", r.Scenario, happened, effects, r.Verdict)
	}
	_ = table.Flush() // a broken pipe shows elsewhere
	p.printCount(subject.Action, p.rows)
	p.printReviews()
	p.subjects, p.rows = p.subjects[1:], nil
}

func (p *verifyPrinter) printCount(about string, rows []drill.Result) {
	n := map[drill.Verdict]int{}
	for _, r := range rows {
		n[r.Verdict]++
	}
	fmt.Fprintf(p.out, "\n%s: %d scenarios: %d held, %d end at a person, %d don't apply, %d BROKEN.\n",
		about, len(rows), n[drill.Held], n[drill.PersonAsked], n[drill.DoesNotApply], n[drill.Broken])
}

// printReviews says where automation ends at a person, how soon that is known, and what would
// spare it. What is the same for several scenarios is said once.
func (p *verifyPrinter) printReviews() {
	type review struct{ asked, setting string }
	var order []review
	after := map[review][]string{}
	for _, r := range p.rows {
		if r.Verdict != drill.PersonAsked || r.Setting == "" {
			continue
		}
		v := review{r.Asked, r.Setting}
		if after[v] == nil {
			order = append(order, v)
		}
		after[v] = append(after[v], fmt.Sprintf("%s (%s)", r.Scenario, howSoon(time.Duration(r.KnownAfter))))
	}
	if len(order) > 0 {
		fmt.Fprintln(p.out, "\nA person is asked after:")
	}
	for _, v := range order {
		for _, scenario := range after[v] {
			fmt.Fprintf(p.out, "  - %s\n", scenario)
		}
		fmt.Fprintf(p.out, "  %s\n  What would spare that: %s\n", v.asked, v.setting)
	}
	fmt.Fprintln(p.out)
}

func howSoon(d time.Duration) string {
	if d < time.Second {
		return "at once"
	}
	return "after " + policy.Text(d.Round(time.Second))
}

func (p *verifyPrinter) printSummary() {
	p.printCount("All", p.results)
	if len(p.broken) == 0 {
		fmt.Fprintln(p.out, "Every promise holds with this configuration.")
	}
}

// verdict is an error where a promise doesn't hold.
func (p *verifyPrinter) verdict() error {
	if len(p.broken) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString("a promise doesn't hold with this configuration:")
	said := map[string]bool{}
	for _, r := range p.broken {
		fmt.Fprintf(&text, "\n  %s, %s: %s", r.Action, r.Scenario, r.Problem)
		if !said[r.Setting] {
			fmt.Fprintf(&text, "\n    %s", r.Setting)
		}
		said[r.Setting] = true
	}
	return &verifyError{text.String()}
}

// A verifyError is a promise that doesn't hold.
type verifyError struct{ text string }

func (e *verifyError) Error() string { return e.text }

func (e *verifyError) Unwrap() error { return errRefused }
