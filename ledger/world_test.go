package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
	"github.com/onceward/onceward/ledger/sqlite"
)

// These tests run in a bubble whose clock moves on only when everybody waits: an hour
// passes at once, and a schedule is the same each time.

const (
	deadline = 5 * time.Second
	lease    = 10 * time.Second
	settle   = 3 * time.Second
	lag      = 2 * time.Second
)

// A world is a database, a provider, and the servers that work on both.
type world struct {
	*testing.T
	store    ledger.Store
	provider *provider
	policy   ledger.Policy
	rules    ledger.Rules
	audit    *ledger.Auditor

	mu     sync.Mutex
	alarms []string
}

// inWorld runs a test in a world of its own.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}()
		w := &world{T: t, store: store, provider: newProvider(bothTraits())}
		defer w.provider.letGo()
		test(w)
	})
}

func inWorldNamed(t *testing.T, name string, test func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inWorld(t, test) })
}

// A server is one process: a Ledger on the world's database. It can die.
type server struct {
	*ledger.Ledger
	w       *world
	failing *ledgertest.Failing
	dead    atomic.Bool
	// sleeps is done once this server has claimed, before it sends; nil does nothing.
	sleeps func()
}

var errDead = errors.New("this process is no more")

var lastServer atomic.Int32

func (w *world) start() *server {
	w.Helper()
	sealer, err := ledger.NewSealer([]byte("a seal key for tests"))
	if err != nil {
		w.Fatal(err)
	}
	s := &server{w: w}
	s.failing = &ledgertest.Failing{Store: w.store}
	s.Ledger = &ledger.Ledger{
		Store: mortal{s}, Sealer: sealer, Policy: w.policy, Rules: map[string]ledger.Rules{"refund": w.rules}, Audit: w.audit, Log: slog.New(slog.DiscardHandler),
		Owner: fmt.Sprintf("server-%d", lastServer.Add(1)), Actors: map[string]ledger.Actor{"refund": w.provider.actor()},
		Alarm: func(a ledger.Alarm) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.alarms = append(w.alarms, a.Kind)
		},
	}
	return s
}

// A mortal store writes nothing once its process is dead.
type mortal struct{ s *server }

func (m mortal) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	if m.s.dead.Load() {
		return errDead
	}
	err := m.s.failing.Begin(ctx, sought, decide)
	if m.s.sleeps != nil {
		m.s.sleeps()
	}
	return err
}

func (m mortal) Record(ctx context.Context, move ledger.Move) error {
	if m.s.dead.Load() {
		return errDead
	}
	return m.s.failing.Record(ctx, move)
}

func (m mortal) Find(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	return m.s.failing.Find(ctx, f)
}

func (m mortal) Sealed(ctx context.Context, id string) ([]byte, error) {
	return m.s.failing.Sealed(ctx, id)
}

func (m mortal) History(ctx context.Context, id string) ([]ledger.Transition, error) {
	return m.s.failing.History(ctx, id)
}

func (m mortal) Prune(ctx context.Context, what ledger.Prunable, bury func(ledger.Operation, []ledger.Transition) ledger.Operation) (int, error) {
	return m.s.failing.Prune(ctx, what, bury)
}

func (m mortal) Recall(ctx context.Context, name string) ([]byte, error) {
	return m.s.failing.Recall(ctx, name)
}

func (m mortal) Usage(ctx context.Context, buckets []string) (map[string]int64, error) {
	return m.s.failing.Usage(ctx, buckets)
}

func (m mortal) Remember(ctx context.Context, name string, value []byte) ([]byte, error) {
	return m.s.failing.Remember(ctx, name, value)
}

func (m mortal) Close() error { return nil }

// pass lets time go by, and whoever waits for it act.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// args are a call's arguments: amount is critical, note isn't.
type args struct{ amount, note string }

var theArgs = args{"100.00", "sorry"}

func sum(parts ...string) [32]byte {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return [32]byte(h.Sum(nil))
}

func (a args) digest() ledger.Digest {
	amount, note := sum("amount", a.amount), sum("note", a.note)
	return ledger.Digest{
		Fingerprint: sum("fingerprint", a.amount), Content: sum("content", a.amount, a.note),
		Fields:   ledger.FieldHashes{"amount": ledger.FieldHash(amount[:8]), "note": ledger.FieldHash(note[:8])},
		Critical: []string{"amount"},
	}
}

func (a args) prepare(string, string) (ledger.Payload, error) {
	request := []byte(a.amount + "|" + a.note)
	return ledger.Payload{Arguments: request, Request: request}, nil
}

// strictly is a call that its orchestrator named.
func strictly(name string, a args) ledger.Request {
	return ledger.Request{
		Action: "refund", Key: sum("key", name), Digest: a.digest(), Prepare: a.prepare,
		Intent: ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-1842", Step: name, BusinessObject: "order-1", Revision: 1},
	}
}

// loosely is a call that names itself by its arguments.
func loosely(name string, a args) ledger.Request {
	r := strictly(name, a)
	r.Intent.Identity, r.Intent.Step, r.Intent.BusinessObject = ledger.Workflow, "", ""
	r.Key, r.BaseKey = ledger.Key{}, sum("base", name)
	r.KeyAt = func(revision int) ledger.Key { return sum("revision", name, fmt.Sprint(revision)) }
	alike := sum("alike", a.amount)
	r.Digest.Alike = ledger.FieldHash(alike[:8])
	return r
}

// call makes a call that must get an answer.
func (s *server) call(r ledger.Request) ledger.Answer {
	s.w.Helper()
	a, err := s.Execute(s.w.Context(), r)
	if err != nil {
		s.w.Fatalf("the call was refused: %v", err)
	}
	return a
}

// refused makes a call that must be refused.
func (s *server) refused(r ledger.Request) *ledger.Refusal {
	s.w.Helper()
	a, err := s.Execute(s.w.Context(), r)
	refusal, ok := errors.AsType[*ledger.Refusal](err)
	if !ok {
		s.w.Fatalf("the call got status %q, error %v; want a refusal", a.Status, err)
	}
	return refusal
}

func (s *server) sweep() {
	s.w.Helper()
	if err := s.Sweep(s.w.Context()); err != nil {
		s.w.Fatalf("Sweep: %v", err)
	}
}

// now is the operation as the database has it.
func (w *world) now(id string) ledger.Operation {
	w.Helper()
	found, err := w.store.Find(w.Context(), ledger.Filter{ID: id})
	if err != nil || len(found) != 1 {
		w.Fatalf("Find(%s) = %d operations, %v; want one", id, len(found), err)
	}
	return found[0]
}

// only is the one operation there is.
func (w *world) only() ledger.Operation {
	w.Helper()
	found, err := w.store.Find(w.Context(), ledger.Filter{})
	if err != nil || len(found) != 1 {
		w.Fatalf("there are %d operations, error %v; want one", len(found), err)
	}
	return found[0]
}

// want compares where an operation stands.
func (w *world) want(a ledger.Answer, status ledger.AnswerStatus, effects int) {
	w.Helper()
	if got := w.provider.count(); a.Status != status || got != effects {
		w.Fatalf("the answer is %q (%s) and there are %d effects; want %q and %d", a.Status, a.Operation.ErrorCode, got, status, effects)
	}
}

func (w *world) wantStatus(id string, status ledger.Status, review string, effects int) {
	w.Helper()
	op := w.now(id)
	if got := w.provider.count(); op.Status != status || op.Review.Reason != review || got != effects {
		w.Fatalf("it is %q with the review %q and %d effects; want %q, %q and %d", op.Status, op.Review.Reason, got, status, review, effects)
	}
}

func (w *world) alarmed(kind string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.alarms {
		if k == kind {
			n++
		}
	}
	return n
}

func (w *world) reasons(id string) (reasons []string) {
	w.Helper()
	history, err := w.store.History(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	for _, line := range history {
		reasons = append(reasons, line.Reason)
	}
	return reasons
}

func proof(id string) json.RawMessage { return fmt.Appendf(nil, `{"id":%q}`, id) }

var errDisk = errors.New("the disk is full")

// failOutcomes makes every outcome's write fail while on says so.
func (s *server) failOutcomes(on *bool) {
	s.failing.Before = func(c ledgertest.Call) error {
		if *on && c.Method == "Record" && c.Move.From().Status == ledger.Executing {
			return errDisk
		}
		return nil
	}
}
