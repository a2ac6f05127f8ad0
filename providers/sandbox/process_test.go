package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/providers"
)

// The test binary runs itself as another process: one that is killed, or one of
// several on the same journal.

const childVariable = "ONCEWARD_SANDBOX_TEST_CHILD"

// A job is what a child does: Shared requests with keys that all children use, and Own
// ones with keys of its own.
type job struct {
	Path, Faults, Name string
	Shared, Own        int
}

// A tally is what it saw.
type tally struct {
	Scope   string
	Answers map[string]int
}

func TestMain(m *testing.M) {
	text := os.Getenv(childVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (j job) run() error {
	ctx := context.Background()
	o := DefaultOptions()
	faults, err := ParseFaults(j.Faults)
	if err != nil {
		return err
	}
	o.Faults = faults
	s, err := Open(ctx, j.Path, o)
	if err != nil {
		return err
	}
	request, err := s.Prepare(providers.Order{Arguments: repayment})
	if err != nil {
		return err
	}
	seen := tally{Scope: s.Scope(), Answers: map[string]int{}}
	for i := range max(j.Shared, j.Own) {
		var keys []string
		if i < j.Shared {
			keys = append(keys, "shared "+strconv.Itoa(i))
		}
		if i < j.Own {
			keys = append(keys, j.Name+" "+strconv.Itoa(i))
		}
		for _, key := range keys {
			r, err := s.Apply(ctx, providers.RefundCreate, attempt(key, request))
			seen.Answers[said(r, err)]++
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		return err
	}
	return s.Close()
}

func (j job) command(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), childVariable+"="+string(text))
	c.Stderr = os.Stderr
	return c
}

// killed reports that a process neither ended well nor by its own decision; where
// there are no signals, a killed one can't be told from one that failed.
func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && (!exit.Exited() || runtime.GOOS == "windows")
}

func TestCrash(t *testing.T) {
	t.Parallel()
	for fault, effectsAfter := range map[FaultKind]int{CrashBefore: 0, CrashAfter: 1} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			j := job{Path: fresh(t), Faults: "refund:" + string(fault), Shared: 1}
			out, err := j.command(t).Output()
			if !killed(err) || len(out) > 0 {
				t.Fatalf("the child ended with %v and said %q; want that it was killed", err, out)
			}
			s := open(t, j.Path, DefaultOptions())
			wantEffects(t, s, effectsAfter)
			// Its count is spent: the next process lives.
			out, err = j.command(t).Output()
			if err != nil {
				t.Fatal(err)
			}
			var seen tally
			if err := json.Unmarshal(out, &seen); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tally{s.Scope(), map[string]int{settled: 1}}, seen); diff != "" {
				t.Errorf("the next process saw (-want +got):\n%s", diff)
			}
			wantEffects(t, s, 1)
		})
	}
}

func TestSeveralProcesses(t *testing.T) {
	t.Parallel()
	const processes, shared, own, losses = 3, 10, 10, 7
	path := fresh(t)
	outputs := make(chan []byte, processes)
	for i := range processes {
		c := job{path, fmt.Sprintf("refund:lose-reply:%d", losses), fmt.Sprintf("own of %d", i), shared, own}.command(t)
		go func() {
			out, err := c.Output()
			if err != nil {
				t.Errorf("a process failed: %v", err)
			}
			outputs <- out
		}()
	}
	answers, scopes := map[string]int{}, map[string]bool{}
	for range processes {
		var seen tally
		if err := json.Unmarshal(<-outputs, &seen); err != nil {
			t.Error(err)
		}
		scopes[seen.Scope] = true
		for answer, n := range seen.Answers {
			answers[answer] += n
		}
	}
	want := map[string]int{lost: losses, settled: processes*(shared+own) - losses}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("answers of all (-want +got):\n%s", diff)
	}
	if len(scopes) != 1 {
		t.Errorf("%d scopes of one file that all opened at once", len(scopes))
	}
	s := open(t, path, DefaultOptions())
	wantEffects(t, s, shared+processes*own)
	perKey := map[string]int{}
	for _, e := range effects(t, s) {
		perKey[e.ProviderKey]++
	}
	for key, n := range perKey {
		if n != 1 {
			t.Errorf("%d effects of %q", n, key)
		}
	}
}
