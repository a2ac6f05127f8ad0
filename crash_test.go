package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onceward/onceward/providers/sandbox"
)

// The crash explorer. A caller's process is killed before each of its COMMITs in turn, those of
// the ledger and those of the outside world; another process makes the same call, and is killed
// in turn; the next one may live. Every state that can be durable is met. Then the effects
// are counted.

// A crashCase is one call, and the world it is made in.
type crashCase struct {
	crashScript
	fresh bool // begins without a data directory; else with one that is only opened
	deep  int  // how many processes in a row are killed
	grace time.Duration
}

var crashTools = map[string]string{
	"email_send":           `{"to":["jane@example.com"],"subject":"Your refund","body":"It is on its way."}`,
	"payment_order_create": `{"debit_account":"DE02120300000000202051","payee_account":"DE02500105170137075030","payee_name":"Example","amount":"1250.00","currency":"EUR","business_reference":"invoice-1"}`,
	"refund":               `{"payment_id":"pay_8812","amount":"100.00","currency":"USD"}`,
}

var crashActions = map[string]string{"email_send": "email.send", "payment_order_create": "payment_order.create", "refund": "refund"}

const crashIntent = `{"workflow_id":"case-1842","step":"settle","business_object":"order-1"}`

// aCrash is a case with a fault or none; asked and idempotent are what the sandbox can do.
func aCrash(tool, fault string, asked, idempotent bool) crashCase {
	c := crashCase{deep: 2, grace: 10 * time.Millisecond}
	c.Tool, c.Arguments, c.Intent, c.Calls = tool, crashTools[tool], crashIntent, true
	c.Asked, c.Idempotent = asked, idempotent
	if fault != "" {
		c.Faults = crashActions[tool] + ":" + fault
	}
	return c
}

func TestCrashAtEveryCommit(t *testing.T) {
	t.Parallel()
	sweeping := func(c crashCase) crashCase { c.Sweeps = true; return c }
	shallow := func(c crashCase) crashCase { c.deep = 1; return c }
	first := aCrash("refund", "", true, true)
	first.fresh, first.deep = true, 1
	cases := map[string]crashCase{
		"refund":                                 aCrash("refund", "", true, true),
		"refund, the reply is lost":              sweeping(aCrash("refund", "lose-reply", true, true)),
		"email":                                  shallow(sweeping(aCrash("email_send", "", true, true))),
		"email, the reply is lost":               aCrash("email_send", "lose-reply", true, true),
		"payment order":                          shallow(aCrash("payment_order_create", "", true, true)),
		"payment order, the reply is lost":       sweeping(aCrash("payment_order_create", "lose-reply", true, true)),
		"refund, only a look-up":                 aCrash("refund", "", true, false),
		"refund, only a key":                     aCrash("refund", "", false, true),
		"refund, nobody can tell":                aCrash("refund", "", false, false),
		"email, nobody can tell, the reply lost": sweeping(aCrash("email_send", "lose-reply", false, false)),
		"payment order, nobody can tell":         shallow(aCrash("payment_order_create", "", false, false)),
		"refund, on a first start":               first,
	}
	for name, c := range cases {
		if testing.Short() || raceDetector {
			c.deep = 1
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := c.explore(t)
			if x.wrong != "" {
				t.Fatal(x.wrong)
			}
			if x.kills < 3 {
				t.Errorf("only %d processes were killed: the COMMITs aren't met any more", x.kills)
			}
			t.Logf("%d processes, %d of them killed", x.processes, x.kills)
		})
	}
}

// With a bug planted the explorer must notice it, or it would prove nothing.
func TestCrashesFindPlantedBugs(t *testing.T) {
	if raceDetector {
		t.Skip("the bugs show in processes as quick as a user's; .ci/run does this without the race detector")
	}
	t.Parallel()
	for bug, c := range map[string]crashCase{
		bugTellsEarly:   aCrash("refund", "", false, false),
		bugRunsAgain:    aCrash("refund", "", true, false),
		bugActsFirst:    aCrash("refund", "", false, false),
		bugFailsOnDoubt: aCrash("refund", "lose-reply", true, true),
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			c.Bug, c.deep, c.grace = bug, 1, time.Second
			if bug != bugTellsEarly {
				c.grace = 0
			}
			x := c.explore(t)
			if x.wrong == "" {
				t.Fatalf("%d processes were killed, and nobody noticed", x.kills)
			}
			t.Logf("noticed: %s", x.wrong)
		})
	}
}

// An exploration is what became of a case.
type exploration struct {
	crashCase
	t         *testing.T
	processes int
	kills     int
	wrong     string
}

func (c crashCase) explore(t *testing.T) *exploration {
	x := &exploration{crashCase: c, t: t}
	start := t.TempDir()
	if !c.fresh {
		opens := c.crashScript
		opens.Calls, opens.Dir = false, start
		x.run(opens, 0)
	}
	x.from(start, nil, nil)
	return x
}

// from kills a process at each of its COMMITs in turn, starting from a copy of what the
// processes before it have left, and goes on from there.
func (x *exploration) from(dir string, kills []int, told []crashAnswer) {
	for n := 1; x.wrong == ""; n++ {
		c := x.crashScript
		c.Dir = copyDir(x.t, dir)
		deep := len(kills)+1 < x.deep
		kills := append(kills[:len(kills):len(kills)], n)
		answers, killed := x.run(c, n)
		answers = append(told[:len(told):len(told)], answers...)
		switch {
		case !killed:
			x.judge(c, kills, answers)
			return // it has no more COMMITs than that
		case deep:
			x.from(c.Dir, kills, answers)
		default:
			last, _ := x.run(c, 0)
			x.judge(c, kills, append(answers, last...))
		}
	}
}

// run starts one process and returns what it was told, and whether it was killed.
func (x *exploration) run(c crashScript, killAt int) (answers []crashAnswer, killed bool) {
	x.t.Helper()
	x.processes++
	script, err := json.Marshal(c)
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(x.t.Context(), 2*crashPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", crashCall+"="+string(script),
		crashBefore+"="+strconv.Itoa(killAt), crashGrace+"="+x.grace.String())
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && killAt > 0 && killedBySignal(exit):
		killed = true
		x.kills++
	default:
		x.t.Fatalf("a process that should die before COMMIT %d ended with %v:\n%s", killAt, err, &log)
	}
	for lines := json.NewDecoder(&out); ; {
		var a crashAnswer
		if err := lines.Decode(&a); err != nil {
			return answers, killed // a killed process may have printed half a line
		}
		answers = append(answers, a)
	}
}

func killedBySignal(e *exec.ExitError) bool {
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// judge says what went wrong, if anything did.
func (x *exploration) judge(c crashScript, kills []int, told []crashAnswer) {
	effects := crashEffects(x.t, c.Dir)
	wrong := func(format string, a ...any) {
		if x.wrong == "" {
			x.wrong = fmt.Sprintf("killed before the COMMITs %v: ", kills) + fmt.Sprintf(format, a...) + fmt.Sprintf("\neffects %v, answers %+v", effects, told)
		}
	}
	if len(effects) > 1 {
		wrong("%d effects", len(effects))
	}
	if len(told) == 0 {
		wrong("the last process got no answer")
		return
	}
	id := ""
	for _, a := range told {
		switch {
		case a.Status == "failed_final" || a.Status == "refused":
			wrong("a caller was told that it is %s (%s)", a.Status, a.Code)
		case a.Status == "succeeded" && (len(effects) == 0 || effects[0] != a.ProviderOperationID):
			wrong("a caller was told of a success that isn't there")
		case id != "" && a.ProviderOperationID != id:
			wrong("a caller was told of success, and a later one of %q", a.Status)
		case a.Status == "succeeded":
			id = a.ProviderOperationID
		}
	}
	switch last := told[len(told)-1]; {
	case last.Status == "succeeded":
	case (x.Asked || x.Idempotent) && c.Bug == "":
		wrong("in the end it is %q", last.Status)
	case last.Status != "unknown" || !last.Review:
		wrong("in the end it is %q, and no person is asked", last.Status)
	}
}

// crashEffects lists what the outside world has done.
func crashEffects(t *testing.T, dir string) (ids []string) {
	t.Helper()
	box, err := sandbox.Inspect(t.Context(), journalPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	for effect, err := range box.Effects(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, effect.ProviderOperationID)
	}
	return ids
}

var crashDirs atomic.Int64

// copyDir copies what processes that are no more have left, as it lies on the disk.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), strconv.FormatInt(crashDirs.Add(1), 10))
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}
