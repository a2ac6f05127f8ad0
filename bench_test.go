package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// benchRounds is how often the servers take turns: machines have moods, and only what
// was measured side by side can be compared.
const benchRounds = 7

// A race is two servers side by side, and the calls for them.
type race struct {
	unguarded, guarded *benchServer
	made               int // intents, none of which comes twice
}

// BenchmarkCalls measures whole tool calls against real processes: an effect (a new
// intent, its claim and outcome durable, the provider doing nothing) and a replay (the
// same call again), each over a call of a tool without any guard on the same transport,
// in the same run. Each kind is called b.N times. The figures are medians of
// rounds.
func BenchmarkCalls(b *testing.B) {
	for _, transport := range []string{"stdio", "http"} {
		b.Run(transport, func(b *testing.B) {
			r := &race{
				unguarded: startBench(b, unguardedServer, transport, ""),
				guarded:   startBench(b, idleServer, transport, b.TempDir()),
			}
			r.round(b, 32, 256) // both are warm
			for _, callers := range []int{1, 32} {
				b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { r.run(b, callers) })
			}
		})
	}
}

// A lap is one round's figures.
type lap struct {
	unguarded, effects, replays float64 // calls/s
	unguardedP50, replayP50     time.Duration
}

func (r *race) run(b *testing.B, callers int) {
	rounds := min(benchRounds, b.N)
	laps := make([]lap, rounds)
	b.ResetTimer()
	for i := range laps {
		laps[i] = r.round(b, callers, (b.N+i)/rounds)
	}
	b.StopTimer()
	report := func(unit string, of func(lap) float64) {
		values := make([]float64, rounds)
		for i, l := range laps {
			values[i] = of(l)
		}
		b.ReportMetric(median(values), unit)
	}
	report("unguarded/s", func(l lap) float64 { return l.unguarded })
	report("effects/s", func(l lap) float64 { return l.effects })
	report("replays/s", func(l lap) float64 { return l.replays })
	report("effect/unguarded", func(l lap) float64 { return l.effects / l.unguarded })
	report("replay/unguarded", func(l lap) float64 { return l.replays / l.unguarded })
	report("unguarded-p50-us", func(l lap) float64 { return float64(l.unguardedP50.Nanoseconds()) / 1e3 })
	report("replay-p50-us", func(l lap) float64 { return float64(l.replayP50.Nanoseconds()) / 1e3 })
	b.ReportMetric(0, "ns/op") // of three kinds of calls together: it says nothing
}

// round makes n calls of each kind.
func (r *race) round(b *testing.B, callers, n int) (l lap) {
	b.Helper()
	messages := make([][]byte, n)
	for i := range messages {
		r.made++
		messages[i] = refundMessage(i, r.made)
	}
	drive := func(s *benchServer, want string) (float64, time.Duration) {
		waits, took, err := s.drive(b.Context(), callers, messages, want)
		if err != nil {
			b.Fatal(err)
		}
		return float64(n) / took.Seconds(), median(waits)
	}
	l.unguarded, l.unguardedP50 = drive(r.unguarded, `"status":"succeeded"`)
	l.effects, _ = drive(r.guarded, `"status":"succeeded","replayed":false`)
	l.replays, l.replayP50 = drive(r.guarded, `"status":"succeeded","replayed":true`)
	return l
}

func refundMessage(id, n int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"refund",`+
		`"arguments":{"payment_id":"pay_%d","amount":"100.00","currency":"USD","reason":"requested_by_customer","note":"Ordered twice by mistake."},`+
		`"_meta":{"onceward/operation":{"workflow_id":"case-%d","step":"refund_customer","business_object":"order-%d","run_id":"run-77"}}}}`+"\n", id, n, n, n)
}

func median[T float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
