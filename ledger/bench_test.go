package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

// BenchmarkExecute measures whole calls at the ledger, with a provider that does nothing: what the
// ledger's own work costs. "ruled" has a limit, look-alikes and the audit trail; "bare" none.
func BenchmarkExecute(b *testing.B) {
	for _, ruled := range []bool{false, true} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", map[bool]string{true: "ruled", false: "bare"}[ruled], callers), func(b *testing.B) {
				l := benchLedger(b, ruled)
				var next atomic.Int64
				var all sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				start := time.Now()
				for range callers {
					all.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							r := strictly(fmt.Sprint(i), args{"100.00", fmt.Sprint(i)})
							r.Intent.WorkflowID = fmt.Sprint("case-", i/5)
							if ruled {
								r.Digest.Alike = ledger.FieldHash(r.Key[:8])
							}
							if a, err := l.Execute(b.Context(), r); err != nil || a.Status != ledger.AnswerSucceeded {
								b.Errorf("%q, %v", a.Status, err)
							}
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "effects/s")
			})
		}
	}
}

func benchLedger(b *testing.B, ruled bool) *ledger.Ledger {
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	sealer, err := ledger.NewSealer([]byte("a seal key for tests"))
	if err != nil {
		b.Fatal(err)
	}
	l := &ledger.Ledger{
		Store: store, Sealer: sealer, Log: slog.New(slog.DiscardHandler),
		Actors: map[string]ledger.Actor{"refund": {
			Provider: "idle", Promise: ledger.Promise{Deadline: 5 * time.Second, Lease: 10 * time.Second},
			Apply: func(context.Context, ledger.Attempt) ledger.Finding {
				return ledger.Finding{Verdict: ledger.Done, Receipt: ledger.Receipt{
					State: ledger.Settled, ProviderOperationID: "re_1", Result: json.RawMessage(`{"amount":"100.00"}`), Evidence: json.RawMessage(`{"id":"re_1"}`)}}
			},
		}},
	}
	if ruled {
		secret, err := ledger.NewSecret([]byte("a secret for tests"))
		if err != nil {
			b.Fatal(err)
		}
		l.Audit = ledger.NewAuditor(secret)
		l.Rules = map[string]ledger.Rules{"refund": {SecondIntent: ledger.SecondIntentWarn, Limits: []ledger.Limit{{Scope: ledger.PerRun, Max: 20}}}}
	}
	return l
}
