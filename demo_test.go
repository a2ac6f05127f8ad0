package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/providers/sandbox"
)

const demoTable = `                                             CALLS  EFFECTS
1  The reply is lost                             2        1
2  The process is killed                         2        1
3  The amount changes                            2        1
4  Two clients at once                           2        1
5  A provider that can't be asked                3        1

11 calls, 5 effects, 5 business actions
`

// The demo, as a user sees it, with its settings in the user's environment. The effects
// are counted here once more, in what it leaves behind.
func TestDemo(t *testing.T) {
	t.Setenv(asProgram, "1")
	t.Setenv("ONCEWARD_SANDBOX_FAULTS", "refund:refuse:always")
	t.Setenv("ONCEWARD_SECRET", "too short")
	t.Setenv("ONCEWARD_TRANSPORT", "http")
	dir := filepath.Join(t.TempDir(), "kept")
	code, out, problems := demo(t.Context(), "--data-dir", dir)
	if code != exitDone || problems != "" {
		t.Fatalf("exit code %d, stderr:\n%s\nstdout:\n%s", code, problems, out)
	}
	if !strings.Contains(out, demoTable) {
		t.Errorf("the table is another one (-want +got):\n%s", cmp.Diff(demoTable, out))
	}
	for i, line := range strings.Split(out, "\n") {
		if len(line) > lineWidth && !strings.Contains(line, dir) {
			t.Errorf("line %d is wider than %d: %q", i+1, lineWidth, line)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("there is colour, and this is no terminal")
	}
	_, stories, _ := strings.Cut(out, "\n1  ")
	checkDemoAnswers(t, stories)
	want := map[string]int{"email.send": 1, "refund": 2, "payment_order.create": 2}
	if diff := cmp.Diff(want, journal(t, dir)); diff != "" {
		t.Errorf("effects in the journal (-want +got):\n%s", diff)
	}
}

// checkDemoAnswers compares what a model reads, scene by scene.
func checkDemoAnswers(t *testing.T, out string) {
	t.Helper()
	var got []string
	for _, m := range demoAnswer.FindAllStringSubmatch(out, -1) {
		got = append(got, m[1])
	}
	want := []string{
		"unknown", "succeeded  replayed: true  ignored_changes: subject",
		"nothing: the connection is gone, the server was killed", "succeeded  replayed: true",
		"succeeded  replayed: false", "refused  operation_conflict  fields: amount",
		"succeeded  replayed: false", "succeeded  replayed: true",
		"unknown  review: true", "unknown  review: true", "succeeded  replayed: true",
	}
	if len(got) == len(want) && strings.HasSuffix(got[6], "true") {
		got[6], got[7] = got[7], got[6] // either client may be the first
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

var demoAnswer = regexp.MustCompile(`(?m)^   (?:reads  |client \d) +(.*?)(?:  next: .*)?$`)

func demo(ctx context.Context, flags ...string) (code int, out, problems string) {
	var o, e bytes.Buffer
	code = run(ctx, append([]string{"demo"}, flags...), streams{strings.NewReader(""), &o, &e})
	return code, o.String(), e.String()
}

// journal counts the effects by action type.
func journal(t *testing.T, dir string) map[string]int {
	t.Helper()
	box, err := sandbox.Inspect(t.Context(), filepath.Join(dir, "sandbox.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	counted := map[string]int{}
	for effect, err := range box.Effects(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		counted[effect.ActionType]++
	}
	return counted
}
