package torture

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

var (
	schedules = flag.Int("torture.schedules", 0, "how many schedules to play at least, half of them random; 0: a short run")
	seed      = flag.Uint64("torture.seed", 0, "play this one random schedule only, and print it")
	budget    = flag.Duration("torture.budget", 0, "how long the random schedules may take; 0: as long as they need")
	from      = flag.Uint64("torture.from", 1, "the first seed")
)

// atOnce is how many schedules are played side by side.
const atOnce = 2

// blank is a ledger that was just made, to be copied: making one takes longer than a schedule.
var blank = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp(root(), "blank-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger.db")
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// root is where ledgers are made: in memory where that can be had. A schedule's processes die,
// its machine doesn't.
func root() string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		return memory
	}
	return os.TempDir()
}

// play plays a plot on a SQLite file of its own, in a bubble.
func (p plot) play(t *testing.T, count *tally) *world {
	t.Helper()
	content, err := blank()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(root(), "torture-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{plot: p, time: new(bubble), tally: count, key: "k"}
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		for range p.stores() {
			store, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			w.stores = append(w.stores, store)
		}
		secret, err := ledger.NewSecret([]byte("a secret for tests, long enough"))
		if err != nil {
			t.Fatal(err)
		}
		w.store, w.audit = w.stores[0], ledger.NewAuditor(secret)
		w.play()
	})
	return w
}

// TestExplore plays random schedules.
func TestExplore(t *testing.T) {
	if *seed != 0 {
		w := drawPlot(*seed).play(t, &onSQLite)
		t.Logf("%v\n%s", w.plot, strings.Join(w.lines, "\n"))
		if w.wrong != "" {
			t.Fatal(w.wrong)
		}
		return
	}
	n := shortRun
	if *schedules > 0 { // half of them at least are random ones
		n = max(*schedules/2, *schedules-int(onSQLite.schedules.Load()))
	}
	end := time.Now().Add(*budget)
	var next atomic.Uint64
	draw := func(play func(plot) *world) {
		for i := next.Add(1) - 1; i < uint64(n) && (*budget == 0 || time.Now().Before(end)); i = next.Add(1) - 1 {
			if play(drawPlot(*from+i)) == nil {
				return
			}
		}
	}
	playAll(t, slices.Repeat([]func(func(plot) *world){draw}, atOnce)...)
	t.Logf("schedules by now: %d", onSQLite.schedules.Load())
}

// playAll plays what several makers make, side by side, until one breaks a promise. play gives nil
// from then on.
func playAll(t *testing.T, makers ...func(play func(plot) *world)) {
	t.Helper()
	slots, found := make(chan struct{}, atOnce), atomic.Bool{}
	var work sync.WaitGroup
	for _, make := range makers {
		work.Go(func() {
			make(func(p plot) *world {
				slots <- struct{}{}
				defer func() { <-slots }()
				if found.Load() {
					return nil
				}
				w := p.play(t, &onSQLite)
				if w.wrong != "" && found.CompareAndSwap(false, true) {
					report(t, w)
				}
				return w
			})
		})
	}
	work.Wait()
}

// report shrinks what broke a promise, and shows it.
func report(t *testing.T, w *world) {
	t.Helper()
	onSQLite.violations.Add(1)
	small := w
	if os.Getenv(isMutant) == "" {
		small = shrink(t, w)
	}
	t.Errorf("a schedule breaks the promise: %s\nReplay it with: go test ./torture -run TestExplore -torture.seed=%d\nThe smallest one found:\n%v\n%s\n%s",
		w.wrong, w.plot.Seed, small.plot, strings.Join(small.lines, "\n"), small.wrong)
}

// shrinkTries bounds the shrinking.
const shrinkTries = 400 // a schedule takes some hundredths of a second

// shrink takes away what isn't needed to break the promise.
func shrink(t *testing.T, w *world) *world {
	tries := 0
	attempt := func(p plot) bool {
		if tries++; tries > shrinkTries {
			return false
		}
		if smaller := p.play(t, new(tally)); smaller.wrong != "" {
			w = smaller
			return true
		}
		return false
	}
	for again := true; again && tries < shrinkTries; {
		again = false
		for size := max(1, len(w.plot.Steps)/2); size > 0; size /= 2 {
			for at := 0; at+size <= len(w.plot.Steps); {
				p := w.plot
				p.Steps = append(append([]event{}, p.Steps[:at]...), p.Steps[at+size:]...)
				if attempt(p) {
					again = true
				} else {
					at += size
				}
			}
		}
		for i, op := range w.plot.Ops {
			for len(op.Acts) > 0 {
				p := w.plot
				p.Ops = append([]opPlan{}, p.Ops...)
				op.Acts = op.Acts[:len(op.Acts)-1]
				p.Ops[i] = op
				if !attempt(p) {
					break
				}
				again = true
			}
		}
	}
	return w
}
