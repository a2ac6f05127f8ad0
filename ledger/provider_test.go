package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A provider is the outside world of a test. It keeps its own effects, and misbehaves by
// its script: one act for each request that reaches it, and honesty after the last.
type provider struct {
	traits ledger.Promise
	asked  bool // whether it can be asked
	scope  string

	mu       sync.Mutex
	script   []act
	effects  []effect
	requests int
	lookUps  int
	// onLookup is done during each look-up, before it answers; nil does nothing.
	onLookup func()
	stopped  chan struct{}
}

type effect struct {
	key, id, request string
	at               time.Time
}

// An act is what becomes of one request.
type act func(ctx context.Context, p *provider, a ledger.Attempt) ledger.Finding

func bothTraits() ledger.Promise {
	return ledger.Promise{
		Deadline: deadline, Lease: lease, Settle: settle, LookupLag: lag,
		Idempotent: true, Window: time.Hour, Margin: lease, ProvesAbsence: true,
	}
}

func newProvider(traits ledger.Promise) *provider {
	return &provider{traits: traits, asked: true, scope: "scope-1", stopped: make(chan struct{})}
}

// letGo ends the requests that hang.
func (p *provider) letGo() { close(p.stopped) }

// is sets what the provider can do.
func (p *provider) is(idempotent, asked bool) {
	p.traits.Idempotent, p.traits.ProvesAbsence, p.asked = idempotent, asked, asked
}

func (p *provider) will(acts ...act) { p.script = acts }

func (p *provider) actor() ledger.Actor {
	a := ledger.Actor{Provider: "scripted", Scope: p.scope, Promise: p.traits, Apply: p.apply}
	if p.asked {
		a.Lookup = p.lookup
	}
	return a
}

func (p *provider) apply(ctx context.Context, a ledger.Attempt) ledger.Finding {
	if err := a.MaySend(); err != nil {
		return ledger.Finding{Verdict: ledger.NotSent, Code: "lease_over"}
	}
	p.mu.Lock()
	p.requests++
	does := acts
	if len(p.script) > 0 {
		does, p.script = p.script[0], p.script[1:]
	}
	p.mu.Unlock()
	return does(ctx, p, a)
}

// do is what an honest provider does at a time: it acts, once per key if it knows keys.
func (p *provider) do(a ledger.Attempt, at time.Time) effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.effects {
		if p.traits.Idempotent && e.key == a.ProviderKey && time.Now().Before(e.at.Add(p.traits.Window)) {
			return e
		}
	}
	e := effect{a.ProviderKey, fmt.Sprintf("re_%d", len(p.effects)+1), string(a.Payload.Request), at}
	p.effects = append(p.effects, e)
	return e
}

func (e effect) done() ledger.Finding {
	return ledger.Finding{Verdict: ledger.Done, Receipt: ledger.Receipt{
		ProviderOperationID: e.id, ProviderStatus: "settled", State: ledger.Settled, Evidence: proof(e.id), Result: []byte(`{"ok":true}`),
	}}
}

func (p *provider) lookup(_ context.Context, q ledger.Question) ledger.Finding {
	p.mu.Lock()
	p.lookUps++
	hook := p.onLookup
	begun := time.Now()
	p.mu.Unlock()
	if hook != nil {
		defer hook()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := append([]string{q.ProviderKey}, q.EarlierKeys...)
	var found []effect
	for _, e := range p.effects {
		for _, key := range keys {
			if e.key == key && !begun.Before(e.at.Add(p.traits.LookupLag)) {
				found = append(found, e)
			}
		}
	}
	switch len(found) {
	case 0:
		return ledger.Finding{Verdict: ledger.Absent, Code: "absent"}
	case 1:
		return found[0].done()
	}
	return ledger.Finding{Verdict: ledger.Contradiction, Code: "two_objects"}
}

// count is how many effects there are, those included that are on their way.
func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.effects)
}

func (p *provider) tally() (requests, lookUps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests, p.lookUps
}

// What a provider and the network may do to a request.

func acts(_ context.Context, p *provider, a ledger.Attempt) ledger.Finding {
	e := p.do(a, time.Now())
	if e.at.After(time.Now()) {
		return ledger.Finding{Verdict: ledger.Unclear, Code: "in_flight"} // an earlier request with this key still runs
	}
	return e.done()
}

func losesReply(_ context.Context, p *provider, a ledger.Attempt) ledger.Finding {
	p.do(a, time.Now())
	return unclear
}

func losesRequest(context.Context, *provider, ledger.Attempt) ledger.Finding { return unclear }

func actsLate(_ context.Context, p *provider, a ledger.Attempt) ledger.Finding {
	p.do(a, time.Now().Add(deadline+settle/2))
	return unclear
}

func isUnreachable(context.Context, *provider, ledger.Attempt) ledger.Finding {
	return ledger.Finding{Verdict: ledger.NotSent, Code: "unavailable"}
}

func refuses(context.Context, *provider, ledger.Attempt) ledger.Finding {
	return ledger.Finding{Verdict: ledger.Refused, Code: "card_declined"}
}

func actsAndPanics(_ context.Context, p *provider, a ledger.Attempt) ledger.Finding {
	p.do(a, time.Now())
	panic("a bug, with jane@example.com in it")
}

// keepsError doesn't act, and answers with an error that it keeps under the key.
func keepsError(context.Context, *provider, ledger.Attempt) ledger.Finding {
	return ledger.Finding{Verdict: ledger.Unclear, Code: ledger.CodeServerError}
}

var unclear = ledger.Finding{Verdict: ledger.Unclear, Code: "timeout"}

// takes lets time pass before the request is dealt with, if the caller doesn't hang up.
func takes(d time.Duration, then act) act {
	return func(ctx context.Context, p *provider, a ledger.Attempt) ledger.Finding {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ledger.Finding{Verdict: ledger.Unclear, Code: "cancelled"}
		case <-p.stopped:
		}
		return then(ctx, p, a)
	}
}

// until waits for a channel, or for the end of a test that failed, and tells when it begins to.
func until(arrived chan<- struct{}, goOn <-chan struct{}, then act) act {
	return func(ctx context.Context, p *provider, a ledger.Attempt) ledger.Finding {
		select {
		case arrived <- struct{}{}:
		case <-p.stopped:
		}
		select {
		case <-goOn:
		case <-p.stopped:
		}
		return then(ctx, p, a)
	}
}
