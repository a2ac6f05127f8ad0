package compare_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
)

// table prints results for a terminal.
func table(r results) string {
	var b bytes.Buffer
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(columns, "what happens")
	for _, w := range ways {
		fmt.Fprintf(columns, "\t%s", w.name)
	}
	fmt.Fprintln(columns)
	for row, s := range scenarios {
		fmt.Fprint(columns, label(s))
		for i := range ways {
			fmt.Fprintf(columns, "\t%s", r[row][i])
		}
		fmt.Fprintln(columns)
	}
	columns.Flush()
	return b.String()
}

func label(s scenario) string {
	if s.mistake {
		return "mistake: " + s.name
	}
	return s.name
}

// String names what there is, the best first.
func (t tally) String() string {
	var texts []string
	for _, p := range t.parts() {
		text := fmt.Sprintf("%d %s", p.n, p.what)
		if p.misled > 0 {
			text += fmt.Sprintf(" (%d told %s)", p.misled, p.as)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// A part is how many runs ended in one way, and in how many of them an agent hears as the
// last word what isn't so.
type part struct {
	what   string
	n      int
	misled int
	as     string
}

func (t tally) parts() []part {
	all := []part{{"right", t.right, t.toldFailed, "failed"}, {"twice", t.twice, 0, ""}, {"blocked", t.blocked, t.toldDone, "done"}}
	return slices.DeleteFunc(all, func(p part) bool { return p.n == 0 })
}

// markdown prints results for the documentation.
func markdown(r results, mistakes bool) string {
	var b strings.Builder
	b.WriteString("| what happens |")
	for _, w := range ways {
		b.WriteString(" " + w.name + " |")
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(ways)) + "\n")
	for row, s := range scenarios {
		if s.mistake != mistakes {
			continue
		}
		b.WriteString("| " + s.name + " |")
		for i := range ways {
			text := r[row][i].String()
			if t := r[row][i]; t.right-t.toldFailed < t.total() {
				text = "**" + text + "**"
			}
			b.WriteString(" " + text + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (t tally) total() int { return t.right + t.twice + t.blocked }

const (
	goldenTable = "testdata/table.txt"
	docs        = "../docs/why-the-key.md"
	chartFile   = "../docs/why-the-key.svg"
)

// checkDocumentation compares the first runs' figures with what is written about them.
func checkDocumentation(t *testing.T, r results) {
	t.Helper()
	was := read(t, docs)
	text := put(t, was, "figures", markdown(r, false))
	text = put(t, text, "mistakes", markdown(r, true))
	for path, want := range map[string]string{goldenTable: table(r), chartFile: chart(r), docs: text} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(want, read(t, path)); diff != "" {
			t.Errorf("%s isn't what the runs show; look why, and if it is meant: go test ./compare -update (-want +got):\n%s", path, diff)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// put replaces what stands between a pair of marks.
func put(t *testing.T, text, name, fresh string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for %s: write %q and %q", docs, name, begin, end)
	}
	return before + begin + fresh + end + after
}
