package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	refundArgs   = `{"payment_id":"pay_8812","amount":"100.00","currency":"USD"}`
	refundIntent = `{"business_operation_id":"refund_request_8812_1","workflow_id":"case-1842"}`
)

// Times for servers that are killed or stopped: short enough to wait for, and long enough
// for a slow machine to send in.
var shortLease = []string{
	"--sandbox-deadline", (slowness * 500 * time.Millisecond).String(), "--sandbox-lease", (slowness * 1500 * time.Millisecond).String(),
}

func waiting(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func wantEffects(t *testing.T, dir string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, countEffects(t, dir)); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// One action called for sixty times at once, in as many words, on three processes that were
// all started at once on an empty directory.
func TestSixtyCallsOnThreeServers(t *testing.T) {
	t.Parallel()
	const servers, calls = 3, 20
	ctx, dir := waiting(t), filepath.Join(t.TempDir(), "data")
	var children []*childServer
	for range servers {
		children = append(children, startChild(t, dir, nil))
	}
	var mu sync.Mutex
	var all []outcome
	var callers sync.WaitGroup
	for i, child := range children {
		for j := range calls {
			callers.Go(func() {
				args := fmt.Sprintf(`{"to":["anna@example.com"],"subject":"Wording %d of server %d","body":"b"}`, j, i)
				said, err := child.call(ctx, "email_send", with(`{"business_operation_id":"notice-1"}`, args))
				if err != nil {
					t.Errorf("server %d, call %d: %v\n%s", i, j, err, child.log)
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, said)
			})
		}
	}
	callers.Wait()
	seen := map[string]int{}
	for _, said := range all {
		seen[fmt.Sprintf("%s, replayed %v", said.Status, said.Replayed)]++
		if said.ProviderOperationID != all[0].ProviderOperationID || said.OperationID != all[0].OperationID {
			t.Errorf("two results of one action: %+v and %+v", said, all[0])
		}
	}
	want := map[string]int{"succeeded, replayed false": 1, "succeeded, replayed true": servers*calls - 1}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	for i, child := range children {
		if code := child.end(t); code != exitDone {
			t.Errorf("server %d ended with %d:\n%s", i, code, child.log)
		}
	}
	wantEffects(t, dir, map[string]int{"email.send": 1})
}

// The process dies when the refund is made and not yet recorded.
func TestKilledAfterTheEffect(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	flags := append([]string{"--sandbox-faults", "refund:crash-after"}, shortLease...)
	first := startChild(t, dir, nil, flags...)
	for said, err := first.call(ctx, "refund", with(refundIntent, refundArgs)); err == nil; said, err = first.call(ctx, "refund", with(refundIntent, refundArgs)) {
		if said.Status != "failed_retryable" || !pause(ctx) { // too slow to send in time
			t.Fatalf("the server answered %+v; it should have died", said)
		}
	}
	if code := first.exitCode(t); code != -1 {
		t.Fatalf("the server ended with %d; it should have been killed:\n%s", code, first.log)
	}
	wantEffects(t, dir, map[string]int{"refund": 1})

	second := startChild(t, dir, nil, flags...)
	said, err := second.call(ctx, "refund", with(refundIntent, refundArgs))
	if err != nil {
		t.Fatal(err)
	}
	if said.Status != "succeeded" || !said.Replayed {
		t.Errorf("after the restart: %+v; want the first process's success, replayed", said)
	}
	found, err := effectsIn(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].ProviderOperationID != said.ProviderOperationID {
		t.Errorf("effects %+v, and the answer says %q", found, said.ProviderOperationID)
	}
	if code := second.end(t); code != exitDone {
		t.Errorf("ended with %d", code)
	}
}

// Reconcilers that all see the same absence make one attempt together.
func TestReconcilersOnOneAbsence(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	// Without keys: a second attempt would be a second effect.
	flags := append([]string{"--no-sandbox-idempotent"}, shortLease...)
	server := startLocal(t, "stdio", dir, append(flags, "--sandbox-faults", "refund:lose-request", "--reconcile-every", "1h")...)
	first := talk(ctx, t, server, "refund", with(refundIntent, refundArgs))
	for first.Status == "failed_retryable" && pause(ctx) { // too slow to send in time
		first = talk(ctx, t, server, "refund", with(refundIntent, refundArgs))
	}
	if first.Status != "unknown" || first.Review {
		t.Fatalf("%+v, want unknown", first)
	}
	server.stop()
	wantEffects(t, dir, map[string]int{})

	var reconcilers sync.WaitGroup
	for range 8 {
		reconcilers.Go(func() {
			args := append([]string{"operations", "reconcile", first.OperationID, "--data-dir", dir}, flags...)
			for {
				code, out, errOut := command(ctx, args...)
				if code != exitDone {
					t.Errorf("ended with %d: %s%s", code, out, errOut)
					return
				}
				if strings.Contains(out, "succeeded") || !pause(ctx) {
					return
				}
			}
		})
	}
	reconcilers.Wait()
	wantEffects(t, dir, map[string]int{"refund": 1})
	if got := onlyOperation(ctx, t, dir); got["attempt_count"] != float64(first.Attempts+1) || got["status"] != "succeeded" {
		t.Errorf("%v attempts and %v, want one more than %d and succeeded", got["attempt_count"], got["status"], first.Attempts)
	}
}

// talk makes one call as a new client.
func talk(ctx context.Context, t *testing.T, s *localServer, tool string, call toolCall) outcome {
	t.Helper()
	c := &client{wire: s.dial(t, nil), era: statelessEra}
	said, err := c.call(ctx, tool, call)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	o, err := said.outcome()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What stands open at one provider's account is not tried at another's.
func TestAnotherSandboxIsAnotherScope(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ fault, status string }{
		{"lose-request", "unknown"},
		{"lose-reply", "unknown"},
		{"unavailable", "failed_retryable"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			ctx, dir := waiting(t), dataDir(t)
			server := startLocal(t, "stdio", dir, "--sandbox-faults", "refund:"+test.fault, "--reconcile-every", "1h")
			done := talk(ctx, t, server, "email_send", with(`{"business_operation_id":"notice-1"}`, `{"to":["anna@example.com"],"subject":"s","body":"b"}`))
			open := talk(ctx, t, server, "refund", with(refundIntent, refundArgs))
			if open.Status != test.status {
				t.Fatalf("%+v, want %s", open, test.status)
			}
			server.stop()
			for _, name := range []string{"sandbox.db", "sandbox.db-wal", "sandbox.db-shm"} {
				if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}

			again := startLocal(t, "stdio", dir, "--reconcile-every", "50ms")
			for {
				open = talk(ctx, t, again, "refund", with(refundIntent, refundArgs))
				if open.Review || !pause(ctx) {
					break
				}
			}
			if open.Status != test.status || !open.Review || open.Attempts != 1 {
				t.Errorf("in another scope: %+v; want %s, a review and no attempt", open, test.status)
			}
			replay := talk(ctx, t, again, "email_send", with(`{"business_operation_id":"notice-1"}`, `{"to":["anna@example.com"],"subject":"s","body":"b"}`))
			if replay.Status != "succeeded" || !replay.Replayed || replay.ProviderOperationID != done.ProviderOperationID {
				t.Errorf("a replay in another scope: %+v, want that of %+v", replay, done)
			}
			again.stop()
			wantEffects(t, dir, map[string]int{})
			var reasons []any
			for _, op := range listed(ctx, t, dir, "--review") {
				reasons = append(reasons, op["review_reason"])
			}
			if diff := cmp.Diff([]any{"scope_changed"}, reasons); diff != "" {
				t.Errorf("reasons of reviews (-want +got):\n%s", diff)
			}
		})
	}
}

// Another secret would make other keys, and every repeat look new.
func TestAnotherSecretRefusesToStart(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	server := startLocal(t, "stdio", dir)
	first := talk(ctx, t, server, "refund", with(refundIntent, refundArgs))
	server.stop()
	secret := filepath.Join(dir, "secret")
	kept, err := os.ReadFile(secret)
	if err != nil {
		t.Fatal(err)
	}
	restore := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(secret, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refuses := func(name string, env []string, says string) {
		t.Helper()
		child := startChild(t, dir, env)
		if code := child.exitCode(t); code != exitUsage {
			t.Errorf("with %s: ended with %d, want %d", name, code, exitUsage)
		}
		if !strings.Contains(child.log.String(), says) || len(child.printed()) > 0 {
			t.Errorf("with %s it says %q and prints %q, want %q and nothing", name, child.log, child.printed(), says)
		}
	}
	refuses("another secret in the environment", []string{"ONCEWARD_SECRET=another secret of enough bytes"}, "not the one this ledger was made with")
	refuses("a short secret", []string{"ONCEWARD_SECRET=short"}, "ONCEWARD_SECRET")
	restore([]byte(strings.Repeat("ab", 32) + "\n"))
	refuses("another secret's file", nil, "not the one this ledger was made with")
	restore([]byte("not hexadecimal\n"))
	refuses("a damaged file", nil, "damaged")
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	refuses("no secret's file", nil, "missing")
	if _, err := os.Stat(secret); err == nil {
		t.Error("a new secret was made")
	}

	restore(kept)
	again := startLocal(t, "stdio", dir)
	replay := talk(ctx, t, again, "refund", with(refundIntent, refundArgs))
	if !replay.Replayed || replay.OperationID != first.OperationID {
		t.Errorf("with the right secret: %+v, want a replay of %+v", replay, first)
	}
	again.stop()
	wantEffects(t, dir, map[string]int{"refund": 1})
}
