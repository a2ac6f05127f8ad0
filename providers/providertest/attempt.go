package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A trial is a provider, its own side and the line between them, apart from a ledger.
type trial struct {
	h        Harness
	fake     Fake
	peer     *Peer
	provider providers.Provider
	request  []byte
}

func (h Harness) newTrial(t *testing.T) *trial {
	t.Helper()
	fake := h.Fake(t)
	peer := NewPeer(t, fake.Handler, h.creates)
	tr := &trial{h: h, fake: fake, peer: peer, provider: h.New(t, peer.URL())}
	tr.request = tr.prepare(t, h.Arguments)
	return tr
}

func (tr *trial) prepare(t *testing.T, arguments providers.Arguments) []byte {
	t.Helper()
	request, err := tr.provider.Prepare(order(arguments))
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// apply makes an attempt, and what it brings back is read for planted data.
func (tr *trial) apply(t *testing.T, key string, request []byte, maySend func() error) (ledger.Finding, ledger.Receipt) {
	t.Helper()
	return tr.applyBy(t, tr.provider, key, request, maySend)
}

func (tr *trial) applyBy(t *testing.T, p providers.Provider, key string, request []byte, maySend func() error) (ledger.Finding, ledger.Receipt) {
	t.Helper()
	ctx, cancel := tr.peer.patience(t.Context())
	defer cancel()
	var receipt ledger.Receipt
	spy := spy{Provider: p, done: func(r ledger.Receipt, err error) {
		receipt = r
		tr.h.wantNoLeakIn(t, r, err)
	}}
	actor, _ := providers.Actor("tried", scope, tr.h.Action, spy)
	f := actor.Apply(ctx, ledger.Attempt{
		OperationID: operationID, Number: 1, ProviderKey: key, MaySend: maySend,
		Payload: ledger.Payload{Arguments: json.RawMessage(`{}`), Request: request},
	})
	tr.h.wantNoLeak(t, "the finding", fmt.Sprintf("%+v", f))
	return f, receipt
}

// A spy shows what a provider returns.
type spy struct {
	providers.Provider
	done func(ledger.Receipt, error)
}

func (s spy) Apply(ctx context.Context, action string, a ledger.Attempt) (ledger.Receipt, error) {
	r, err := s.Provider.Apply(ctx, action, a)
	s.done(r, err)
	return r, err
}

func (s spy) Lookup(ctx context.Context, action string, q ledger.Question) (ledger.Receipt, error) {
	r, err := s.Provider.Lookup(ctx, action, q)
	s.done(r, err)
	return r, err
}

// patience ends a context as soon as the peer leaves a request without an answer: what
// a deadline does, without waiting for it.
func (p *Peer) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	go func() {
		select {
		case <-p.hung:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func always() error { return nil }

func (h Harness) testAttempts(t *testing.T) {
	t.Parallel()
	t.Run("success", h.testSuccess)
	t.Run("too late", h.testTooLate)
	t.Run("same key, other payload", h.testReuse)
	for name, endpoint := range unreachable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := h.newTrial(t)
			f, _ := tr.applyBy(t, h.New(t, endpoint), key(0), tr.request, always)
			tr.want(t, f, Loss{Want: ledger.NotSent}, 0, 0)
		})
	}
	for _, loss := range h.losses() {
		t.Run(loss.Name, func(t *testing.T) {
			t.Parallel()
			tr := h.newTrial(t)
			tr.peer.Lose(loss)
			f, _ := tr.apply(t, key(0), tr.request, always)
			effects, requests := 0, 1
			if loss.Acts {
				effects = 1
			}
			if loss.unread {
				requests = 0
			}
			tr.want(t, f, loss, effects, requests)
		})
	}
}

// losses are those of the line, and the provider's own answers.
func (h Harness) losses() []Loss {
	losses := Losses()
	for _, a := range h.Answers {
		losses = append(losses, a.loss())
	}
	return losses
}

func (tr *trial) want(t *testing.T, f ledger.Finding, loss Loss, effects, requests int) {
	t.Helper()
	if f.Verdict != loss.Want {
		t.Errorf("verdict %q (code %q), want %q", f.Verdict, f.Code, loss.Want)
	}
	if loss.Alarm != "" && f.Alarm != loss.Alarm {
		t.Errorf("alarm %q, want %q", f.Alarm, loss.Alarm)
	}
	if loss.Code != "" && f.Code != loss.Code {
		t.Errorf("code %q, want %q", f.Code, loss.Code)
	}
	if f.Verdict != ledger.Done && f.Code == "" {
		t.Error("the finding has no code")
	}
	if got := len(tr.fake.Effects()); got != effects {
		t.Errorf("%d effects, want %d", got, effects)
	}
	if got := len(tr.peer.Requests()); got != requests {
		t.Errorf("%d requests, want %d", got, requests)
	}
}

// unreachable are endpoints at which no connection is ever obtained. None of them needs
// a network.
func unreachable(t *testing.T) map[string]string {
	t.Helper()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + gone.Addr().String()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	t.Cleanup(plain.Close)
	return map[string]string{
		"refused":                 refused,
		"DNS":                     "https://no..such.host.invalid", // an empty label: no resolver is asked
		"certificate not trusted": untrusted.URL,
		"TLS with a plain server": strings.Replace(plain.URL, "http:", "https:", 1),
	}
}

func (h Harness) testTooLate(t *testing.T) {
	t.Parallel()
	tr := h.newTrial(t)
	f, _ := tr.apply(t, key(0), tr.request, func() error { return ledger.ErrTooLate })
	tr.want(t, f, Loss{Want: ledger.NotSent}, 0, 0)
	// A refusal that isn't repeated when asked again is a refusal all the same.
	answers := []error{ledger.ErrTooLate, nil, nil, nil}
	f, _ = tr.apply(t, key(0), tr.request, func() error {
		first := answers[0]
		answers = answers[1:]
		return first
	})
	tr.want(t, f, Loss{Want: ledger.NotSent}, 0, 0)
	p := h.New(t, tr.peer.URL())
	if _, err := p.Apply(t.Context(), h.Action, ledger.Attempt{ProviderKey: key(0), Payload: ledger.Payload{Request: tr.request}, MaySend: func() error { return ledger.ErrTooLate }}); !errors.Is(err, ledger.ErrTooLate) {
		t.Errorf("the error is %v, want ErrTooLate", err)
	}
}

func (h Harness) testReuse(t *testing.T) {
	t.Parallel()
	traits := h.traits(t)
	if traits.Key == providers.NoKey {
		t.Skip("the provider knows no key")
	}
	tr := h.newTrial(t)
	tr.apply(t, key(0), tr.request, always)
	f, _ := tr.apply(t, key(0), tr.prepare(t, h.Other), always)
	effects := len(tr.fake.Effects())
	switch traits.Reuse {
	case providers.ReuseRefused:
		if f.Verdict != ledger.Contradiction || effects != 1 {
			t.Errorf("verdict %q and %d effects, want %q and 1", f.Verdict, effects, ledger.Contradiction)
		}
	case providers.ReuseReplayed:
		// The first answer is about another payload: it proves nothing of this one.
		if f.Verdict == ledger.Done || effects != 1 {
			t.Errorf("verdict %q and %d effects, want anything but %q, and 1", f.Verdict, effects, ledger.Done)
		}
	case providers.ReuseActs:
		if effects != 2 {
			t.Errorf("%d effects, want 2", effects)
		}
	}
}
