package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
)

// servers are three ledgers on one database, each with a pool of its own, and a provider that counts.
type servers struct {
	ledgers [3]*ledger.Ledger
	effects atomic.Int32
}

func newServers(t *testing.T, rules ledger.Rules) *servers {
	place, s := newSchema(t), new(servers)
	sealer, err := ledger.NewSealer([]byte("a seal key for tests"))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := ledger.NewSecret([]byte("a secret for tests"))
	if err != nil {
		t.Fatal(err)
	}
	actor := ledger.Actor{
		Provider: "counter", Promise: ledger.Promise{Deadline: 30 * time.Second, Lease: time.Hour},
		Apply: func(context.Context, ledger.Attempt) ledger.Finding {
			id := fmt.Sprint("re_", s.effects.Add(1))
			return ledger.Finding{Verdict: ledger.Done, Receipt: ledger.Receipt{State: ledger.Settled, ProviderOperationID: id, Evidence: json.RawMessage(`{"id":"` + id + `"}`)}}
		},
	}
	for i := range s.ledgers {
		s.ledgers[i] = &ledger.Ledger{
			Store: openStore(t, place), Sealer: sealer, Audit: ledger.NewAuditor(secret), Log: slog.New(slog.DiscardHandler),
			Actors: map[string]ledger.Actor{"refund": actor}, Rules: map[string]ledger.Rules{"refund": rules},
			Policy: ledger.Policy{AnswerWithin: time.Minute},
		}
	}
	return s
}

func refund(name string) ledger.Request {
	hash := func(purpose string) [32]byte { return sha256.Sum256([]byte(purpose + name)) }
	return ledger.Request{
		Action: "refund", Key: hash("key"), Intent: ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-1842", BusinessOperationID: name},
		Digest:  ledger.Digest{Fingerprint: hash("fingerprint"), Content: hash("content")},
		Amount:  ledger.Amount{Minor: 100, Currency: "USD"},
		Prepare: func(string, string) (ledger.Payload, error) { return ledger.Payload{Request: []byte(name)}, nil },
	}
}

// TestDuplicatesOnThreeServers: 200 calls for each of 50 intents are 50 effects, and every one of
// them is told of the same.
func TestDuplicatesOnThreeServers(t *testing.T) {
	t.Parallel()
	server(t)
	const intents, duplicates = 50, 200
	s := newServers(t, ledger.Rules{})
	var told [intents]sync.Map
	var first atomic.Int32
	var all sync.WaitGroup
	for i := range intents * duplicates {
		all.Go(func() {
			a, err := s.ledgers[i%3].Execute(t.Context(), refund(fmt.Sprint("r", i%intents)))
			if refusal, ok := errors.AsType[*ledger.Refusal](err); ok && refusal.Code == ledger.Busy {
				return // more wait than one process lets wait; nothing was done
			}
			if err != nil || a.Status != ledger.AnswerSucceeded {
				t.Errorf("%q, %v", a.Status, err)
				return
			}
			told[i%intents].Store(a.Operation.ProviderOperationID, true)
			if !a.Replayed {
				first.Add(1)
			}
		})
	}
	all.Wait()
	if got := s.effects.Load(); got != intents || first.Load() != intents {
		t.Errorf("%d effects, %d calls were told that they were first; want %d of both", got, first.Load(), intents)
	}
	for i := range told {
		n := 0
		told[i].Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("intent %d was told of %d effects", i, n)
		}
	}
	if report, err := s.ledgers[0].VerifyAudit(t.Context(), ""); err != nil || report.Operations != intents || len(report.Problems) != 0 {
		t.Errorf("audit: %+v, %v", report, err)
	}
}

// TestLimitOnThreeServers: a hundred calls at once against a limit of ten are ten effects.
func TestLimitOnThreeServers(t *testing.T) {
	t.Parallel()
	server(t)
	s := newServers(t, ledger.Rules{Limits: []ledger.Limit{
		{Scope: ledger.PerWorkflow, Max: 10}, {Scope: ledger.PerDay, Currency: "USD", Max: 5000},
	}})
	var let, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			_, err := s.ledgers[i%3].Execute(t.Context(), refund(fmt.Sprint("r", i)))
			switch refusal, ok := errors.AsType[*ledger.Refusal](err); {
			case err == nil:
				let.Add(1)
			case ok && refusal.Code == ledger.LimitExceeded:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if let.Load() != 10 || refused.Load() != 90 || s.effects.Load() != 10 {
		t.Errorf("%d let, %d refused, %d effects; want 10, 90 and 10", let.Load(), refused.Load(), s.effects.Load())
	}
	used, err := s.ledgers[1].Store.Usage(t.Context(), nil)
	if err != nil || len(used) != 2 {
		t.Fatalf("usage %v, %v", used, err)
	}
	for bucket, n := range used {
		if n != 10 && n != 1000 {
			t.Errorf("%s: %d taken", bucket, n)
		}
	}
}
