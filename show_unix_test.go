//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/onceward/onceward/ledger"
)

// stopAfterClaim makes the program stop itself, once, between the commit of its claim and
// the sending: as a laptop that is closed at that moment does. The server has no hook for
// it; what it gets is a Store that stops the process.
const stopAfterClaim = "ONCEWARD_TEST_STOP_AFTER_CLAIM"

func init() {
	beforeProgram = append(beforeProgram, func() {
		if os.Getenv(stopAfterClaim) != "" {
			os.Exit(serveAndStop(os.Args[1:]))
		}
	})
}

// serveAndStop is serve with that Store, over stdio.
func serveAndStop(args []string) int {
	s := streams{os.Stdin, os.Stdout, os.Stderr}
	err := func() error {
		ctx := context.Background()
		c, err := parseServe(args)
		if err != nil {
			return err
		}
		log := c.logger(s)
		front, err := c.front(log)
		if err != nil {
			return err
		}
		o, err := openOffice(ctx, c.officeFlags, log, true)
		if err != nil {
			return err
		}
		o.store = &stoppingStore{Store: o.store}
		if err := c.open(ctx, o, front, s, log); err != nil {
			return err
		}
		return o.close()
	}()
	if err != nil {
		fmt.Fprintln(s.err, err)
		return exitUsage
	}
	return exitDone
}

// A stoppingStore stops its process when the first claim is durable and the worker has in
// hand what it will send. It is the last moment before it looks at the clock.
type stoppingStore struct {
	ledger.Store
	stopped bool // calls of this test come one by one
}

func (s *stoppingStore) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	err := s.Store.Begin(ctx, sought, decide)
	if err != nil || s.stopped {
		return err
	}
	s.stopped = true
	awake := make(chan os.Signal, 1)
	signal.Notify(awake, syscall.SIGCONT)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	<-awake // the stop may take a moment to reach this thread
	return nil
}

// A worker that sleeps for longer than its lease has lost its turn: another server has
// looked, found nothing, and made the attempt. Without keys, a second one would act again.
func TestStoppedBetweenClaimAndSending(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	flags := append([]string{"--no-sandbox-idempotent", "--reconcile-every", "1h"}, shortLease...)
	sleeper := startChild(t, dir, []string{stopAfterClaim + "=1"}, flags...)
	call := with(refundIntent, refundArgs)
	answer, err := sleeper.send("refund", call)
	if err != nil {
		t.Fatal(err)
	}
	for len(listed(ctx, t, dir)) == 0 {
		if !pause(ctx) {
			t.Fatalf("nothing is claimed:\n%s", sleeper.log)
		}
	}
	if claimed := onlyOperation(ctx, t, dir); claimed["status"] != "executing" {
		t.Fatalf("it is %v, want executing", claimed["status"])
	}

	other := startLocal(t, "stdio", dir, flags...)
	var said outcome
	for said.Status != "succeeded" {
		if said = talk(ctx, t, other, "refund", call); said.Status == "failed_final" || !pause(ctx) {
			t.Fatalf("the other server: %+v", said)
		}
	}
	wantEffects(t, dir, map[string]int{"refund": 1})

	if err := sleeper.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	late, err := sleeper.wait(ctx, answer)
	if err != nil {
		t.Fatalf("%v\n%s", err, sleeper.log)
	}
	if late.Status != "succeeded" || late.ProviderOperationID != said.ProviderOperationID || late.Attempts < 2 {
		t.Errorf("the sleeper says %+v, want the result of the second attempt, %+v", late, said)
	}
	if code := sleeper.end(t); code != exitDone {
		t.Errorf("the sleeper ended with %d:\n%s", code, sleeper.log)
	}
	if !strings.Contains(sleeper.log.String(), "verdict=not_sent code=lease_") {
		t.Errorf("the sleeper's log doesn't say that it lost its turn:\n%s", sleeper.log)
	}
	other.stop()
	wantEffects(t, dir, map[string]int{"refund": 1})
}

// A signal in the middle of an effect: it is finished and answered, and nothing new begins.
func TestSignalDuringAnEffect(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			ctx, dir := waiting(t), dataDir(t)
			child := startChild(t, dir, nil, "--sandbox-faults", "refund:hang", "--sandbox-deadline", "2s", "--sandbox-lease", "10s")
			answer, err := child.send("refund", with(refundIntent, refundArgs))
			if err != nil {
				t.Fatal(err)
			}
			for countEffects(t, dir)["refund"] == 0 {
				if !pause(ctx) {
					t.Fatalf("it never acts:\n%s", child.log)
				}
			}
			if err := child.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			said, err := child.wait(ctx, answer)
			if err != nil {
				t.Fatalf("%v\n%s", err, child.log)
			}
			if said.Status != "unknown" || said.Attempts != 1 {
				t.Errorf("%+v, want unknown: the provider didn't answer in time", said)
			}
			if code := child.exitCode(t); code != exitDone {
				t.Errorf("ended with %d:\n%s", code, child.log)
			}
			again := startLocal(t, "stdio", dir)
			if said := talk(ctx, t, again, "refund", with(refundIntent, refundArgs)); said.Status != "succeeded" || !said.Replayed {
				t.Errorf("the next server: %+v, want the first attempt's success", said)
			}
			again.stop()
			wantEffects(t, dir, map[string]int{"refund": 1})
		})
	}
}
