package telemetry_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/telemetry"
)

// nowhere is a store that does nothing, so that what is measured is the wrapper.
type nowhere struct{ ledger.Store }

func (nowhere) Begin(_ context.Context, _ ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	_, err := decide(ledger.Found{})
	return err
}

func (nowhere) Record(context.Context, ledger.Move) error { return nil }

// BenchmarkMetrics is what metrics add to one effect: Begin, Record, an attempt and a call.
func BenchmarkMetrics(b *testing.B) {
	for name, wanted := range map[string]bool{"off": false, "on": true} {
		b.Run(name, func(b *testing.B) {
			tel, err := telemetry.New(b.Context(), telemetry.Options{Metrics: wanted, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			s := tel.Store(nowhere{})
			a := tel.Actor("refund", ledger.Actor{Provider: "p", Apply: func(context.Context, ledger.Attempt) ledger.Finding { return ledger.Finding{Verdict: ledger.Done} }})
			decide := func(ledger.Found) (ledger.Move, error) { return ledger.Move{}, nil }
			b.ReportAllocs()
			for b.Loop() {
				ctx, c := tel.Call(b.Context(), "refund", nil, nil)
				_ = s.Begin(ctx, ledger.Sought{}, decide)
				a.Apply(ctx, ledger.Attempt{})
				_ = s.Record(ctx, ledger.Move{})
				c.End(nil, false)
			}
		})
	}
}
