package providertest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A world is one operation in a ledger, at a provider behind a bad line.
type world struct {
	*testing.T
	trial  *trial
	ledger *ledger.Ledger
	clock  *clock
	call   ledger.Request
	id     string
}

// A clock moves when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// to moves the clock on to a time, and a little if that is over.
func (c *clock) to(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !at.After(c.now) {
		at = c.now.Add(time.Second)
	}
	c.now = at
}

// newWorld is a ledger whose first attempt goes to the first endpoint, if one is given,
// and everything else to the peer.
func (h Harness) newWorld(t *testing.T, store ledger.Store, log *journal, first string) *world {
	t.Helper()
	tr := h.newTrial(t)
	w := &world{T: t, trial: tr, clock: &clock{now: time.Now().UTC()}}
	actor, ok := providers.Actor("tried", scope, h.Action, &detour{Provider: tr.provider, peer: tr.peer, first: h.at(t, first)})
	if !ok {
		t.Fatalf("the provider doesn't serve %s", h.Action)
	}
	w.ledger = &ledger.Ledger{
		Store: store, Sealer: newSealer(t), Log: log.logger(), Now: w.clock.Now,
		Policy: ledger.Policy{RetryFor: 1000 * time.Hour, MaxBackoff: time.Minute},
		Actors: map[string]ledger.Actor{h.Action: actor},
	}
	fingerprint := sha256.Sum256([]byte(fmt.Sprintf("%#v", h.Arguments)))
	w.call = ledger.Request{
		Action: h.Action, Key: sha256.Sum256(append(fingerprint[:], t.Name()...)), // another payment's is another one
		Intent:  ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-1842", Step: "tried", BusinessObject: "order-1", Revision: 1},
		Digest:  ledger.Digest{Fingerprint: fingerprint, Content: fingerprint},
		Prepare: w.prepare,
	}
	return w
}

func (h Harness) at(t *testing.T, endpoint string) providers.Provider {
	if endpoint == "" {
		return nil
	}
	return h.New(t, endpoint)
}

func (w *world) prepare(operationID, providerKey string) (ledger.Payload, error) {
	arguments, err := json.Marshal(w.trial.h.Arguments)
	if err != nil {
		return ledger.Payload{}, err
	}
	request, err := w.trial.provider.Prepare(providers.Order{
		OperationID: operationID, ProviderKey: providerKey, At: orderedAt, Arguments: w.trial.h.Arguments,
	})
	return ledger.Payload{Arguments: arguments, Request: request}, err
}

// A detour is a provider whose first attempt goes astray, and whose patience ends when
// the peer is silent.
type detour struct {
	providers.Provider
	peer  *Peer
	mu    sync.Mutex
	first providers.Provider
}

func (d *detour) Apply(ctx context.Context, action string, a ledger.Attempt) (ledger.Receipt, error) {
	ctx, cancel := d.peer.patience(ctx)
	defer cancel()
	d.mu.Lock()
	p := d.Provider
	if d.first != nil {
		p, d.first = d.first, nil
	}
	d.mu.Unlock()
	return p.Apply(ctx, action, a)
}

func (d *detour) Lookup(ctx context.Context, action string, q ledger.Question) (ledger.Receipt, error) {
	ctx, cancel := d.peer.patience(ctx)
	defer cancel()
	return d.Provider.Lookup(ctx, action, q)
}

// execute makes the call, as an agent does that repeats it.
func (w *world) execute() ledger.Answer {
	w.Helper()
	a, err := w.ledger.Execute(w.Context(), w.call)
	if err != nil {
		w.Fatalf("the call was refused: %v", err)
	}
	w.id = a.Operation.ID
	w.wantAtMostOne()
	return a
}

func (w *world) now() ledger.Operation {
	w.Helper()
	found, err := w.ledger.List(w.Context(), ledger.Filter{ID: w.id})
	if err != nil || len(found) != 1 {
		w.Fatalf("%d operations, error %v; want one", len(found), err)
	}
	return found[0]
}

// settle lets time pass, and everybody do what they do then, until nothing more comes
// of it.
func (w *world) settle() ledger.Operation {
	w.Helper()
	for range 60 {
		op := w.now()
		if op.Status.Final() || op.Review.Open() {
			return op
		}
		w.step(op)
	}
	op := w.now()
	w.Fatalf("it came to no end: %q, code %q, %d attempts", op.Status, op.ErrorCode, op.Attempts)
	return op
}

func (w *world) step(op ledger.Operation) {
	w.Helper()
	at := op.NextCheckAt
	if op.Status == ledger.Executing {
		at = op.LeaseUntil
	}
	w.clock.to(at)
	if op.Status == ledger.FailedRetryable {
		w.execute()
		return
	}
	if _, err := w.ledger.Reconcile(w.Context(), op.ID); err != nil {
		w.Fatalf("Reconcile: %v", err)
	}
	w.wantAtMostOne()
}

// wantAtMostOne is the promise.
func (w *world) wantAtMostOne() {
	w.Helper()
	if n := len(w.trial.fake.Effects()); n > 1 {
		w.Fatalf("there are %d effects at the provider", n)
	}
}
