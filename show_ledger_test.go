package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A look-up that begins while a request could still be running, and ends when none can, has
// proved nothing. It is no reason to ask a person either: the next look-up will prove it.
func TestLookUpThatOutlastsTheLease(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	box := defaultSandbox()
	box.SandboxFaults, box.SandboxIdempotent = "refund:lose-request", false
	o, err := openOffice(ctx, officeFlags{dataFlags: dataFlags{DataDir: dir}, sandboxFlags: box}, slog.New(slog.DiscardHandler), true)
	if err != nil {
		t.Fatal(err)
	}
	var passed atomic.Int64 // beside the real time
	o.ledger.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	actor := o.ledger.Actors["refund"]
	lookup := actor.Lookup
	actor.Lookup = func(ctx context.Context, q ledger.Question) ledger.Finding {
		f := lookup(ctx, q)
		passed.CompareAndSwap(0, int64(box.SandboxLease)) // the first one takes long
		return f
	}
	o.ledger.Actors["refund"] = actor
	d, err := newDeskOf(o)
	if err != nil {
		t.Fatal(err)
	}
	call := with(refundIntent, refundArgs)
	var said outcome
	for i, want := range []string{"unknown", "unknown", "succeeded", "succeeded"} {
		if said, err = d.call(ctx, "refund", call); err != nil {
			t.Fatal(err)
		}
		if said.Status != want || said.Review {
			t.Errorf("call %d: %+v, want %s and no review", i+1, said, want)
		}
	}
	if said.Attempts != 2 {
		t.Errorf("%d attempts, want 2", said.Attempts)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
	wantEffects(t, dir, map[string]int{"refund": 1})
}

// When a server has ended, its ledger is one file that is whole, and nothing holds it open:
// whoever copies it away has everything.
func TestAnEndedServersLedgerIsOneFile(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	s := startLocal(t, "stdio", dir)
	first := talk(ctx, t, s, "refund", with(refundIntent, refundArgs))
	s.stop()
	copied := t.TempDir()
	for _, name := range []string{"ledger.db", "secret", "seal_key"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.Stat(filepath.Join(dir, "ledger.db-wal")); err == nil {
		t.Errorf("a write-ahead log of %d bytes is left beside it", left.Size())
	}
	found := listed(ctx, t, copied)
	if len(found) != 1 || found[0]["operation_id"] != first.OperationID {
		t.Errorf("the copy has %d operations, want the one", len(found))
	}
}
