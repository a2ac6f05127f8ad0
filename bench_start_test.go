package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mostStarts bounds how often a server is started for one figure: a median needs no more.
const mostStarts = 15

// BenchmarkStart measures the time from the start of the process to its answer to
// initialize, on a ledger that exists, over that of a bare mcp-go server.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	started(b, "", dir) // makes the files
	starts := min(b.N, mostStarts)
	bare, guarded, ratios := make([]time.Duration, starts), make([]time.Duration, starts), make([]float64, starts)
	b.ResetTimer()
	for i := range starts {
		bare[i], _ = started(b, bareServer, dir)
		guarded[i], _ = started(b, "", dir)
		ratios[i] = float64(guarded[i]) / float64(bare[i])
	}
	b.ReportMetric(float64(median(bare).Microseconds())/1e3, "bare-ms")
	b.ReportMetric(float64(median(guarded).Microseconds())/1e3, "onceward-ms")
	b.ReportMetric(median(ratios), "x-bare")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory measures what a server that has just answered initialize holds in
// memory, over a bare mcp-go server, with ledgers of several sizes.
func BenchmarkMemory(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("resident memory is read from /proc")
	}
	for _, operations := range []int{0, 1_000, 20_000} {
		dir := b.TempDir()
		fillLedger(b, dir, operations)
		b.Run(fmt.Sprintf("operations=%d", operations), func(b *testing.B) {
			starts := min(b.N, mostStarts)
			bare, guarded := make([]float64, starts), make([]float64, starts)
			for i := range starts {
				_, bare[i] = started(b, bareServer, dir)
				_, guarded[i] = started(b, "", dir)
			}
			b.ReportMetric(median(bare), "bare-MB")
			b.ReportMetric(median(guarded), "onceward-MB")
			b.ReportMetric(median(guarded)/median(bare), "x-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// started starts a server and ends it: how long it took to answer, and the megabytes it
// then held.
func started(b *testing.B, kind, dir string) (took time.Duration, resident float64) {
	b.Helper()
	start := time.Now()
	s, err := newBenchServer(b.Context(), kind, "stdio", dir)
	took = time.Since(start)
	if err != nil {
		b.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		resident = residentMB(b, s.cmd.Process.Pid)
	}
	if err := s.end(); err != nil {
		b.Fatal(err)
	}
	return took, resident
}

func residentMB(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kB, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kB) / 1024
}

// fillLedger makes operations that have succeeded.
func fillLedger(b *testing.B, dir string, operations int) {
	b.Helper()
	s, err := newBenchServer(b.Context(), idleServer, "stdio", dir)
	if err != nil {
		b.Fatal(err)
	}
	messages := make([][]byte, operations)
	for i := range messages {
		messages[i] = refundMessage(i, i)
	}
	if _, _, err := s.drive(b.Context(), min(64, operations), messages, `"status":"succeeded"`); err != nil {
		b.Fatal(err)
	}
	if err := s.end(); err != nil {
		b.Fatal(err)
	}
}
