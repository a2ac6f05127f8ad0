package postgres_test

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
)

// A cluster of its own is killed (SIGKILL) in the middle of work, and comes back. Whatever was
// acknowledged is there, and nothing is there twice.
func TestNothingIsLostWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	server(t) // or skip
	const workers, effects, crashes = 8, 40, 2
	c := startCluster(t)
	s := openStore(t, c.url)
	finished := make(chan struct{}, workers*effects)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range effects {
				persist(t, c, s, w*effects+i)
				finished <- struct{}{}
			}
		})
	}
	for range crashes {
		for range workers * effects / (crashes + 1) {
			<-finished
		}
		c.crash(t)
	}
	wg.Wait()
	all, err := s.Find(t.Context(), ledger.Filter{})
	if err != nil || len(all) != workers*effects {
		t.Fatalf("there are %d operations (%v), want %d", len(all), err, workers*effects)
	}
	for _, op := range all {
		if op.Status != ledger.Succeeded || op.Attempts != 1 || op.Moves != 2 {
			t.Errorf("%s is %s after %d attempts and %d moves, want succeeded after 1 and 2", op.ID, op.Status, op.Attempts, op.Moves)
		}
		wantHistory(t, s, op.ID, 2)
	}
	used, err := s.Usage(t.Context(), nil)
	if err != nil || len(used) != 1 {
		t.Fatalf("Usage = %v, %v; want one bucket", used, err)
	}
	for bucket, n := range used {
		if n != workers*effects {
			t.Errorf("%s has %d, want %d", bucket, n, workers*effects)
		}
	}
}

// persist makes the i-th effect, as often as it takes. A claim is acknowledged once at most.
func persist(t *testing.T, c *cluster, s *postgres.Store, i int) {
	op := benchOperation(i)
	for claimed, maybe := false, false; !claimed; {
		inserts := false
		err := s.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(f ledger.Found) (ledger.Move, error) {
			if inserts = f.Operation == nil; !inserts {
				if !maybe {
					t.Errorf("operation %d is there, though nothing was written", i)
				}
				return ledger.Move{}, nil
			}
			return op.Insert(limitedClaim("run"), benchSeal, benchClaim)
		})
		if claimed = err == nil; !claimed {
			c.wait()
		}
		maybe = maybe || errors.Is(err, ledger.ErrCommitLost)
	}
	found, err := s.Find(t.Context(), ledger.Filter{ID: op.ID})
	for err != nil {
		c.wait()
		found, err = s.Find(t.Context(), ledger.Filter{ID: op.ID})
	}
	if len(found) != 1 {
		t.Errorf("operation %d was acknowledged, and is lost", i)
		return
	}
	for m := outcome(t, found[0]); ; {
		err := s.Record(t.Context(), m)
		if err == nil {
			return
		}
		if errors.Is(err, ledger.ErrStale) {
			t.Errorf("the outcome of operation %d is stale, and nobody else moves it", i)
			return
		}
		c.wait()
	}
}

// A cluster is a PostgreSQL that the test may kill.
type cluster struct {
	down   sync.RWMutex // locked while it is
	url    string
	orders io.WriteCloser
	answer *bufio.Scanner
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	cmd := exec.Command("bash", "-c", `set -euo pipefail; source ../../.ci/postgres; trap postgres_stop EXIT; postgres_start; echo "$ONCEWARD_TEST_POSTGRES"
		while read -r order; do "$order"; echo done; done`)
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		orders.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the cluster: %v\n%s", err, log.String())
		}
	})
	c := &cluster{orders: orders, answer: bufio.NewScanner(answers)}
	if !c.answer.Scan() {
		t.Fatalf("the cluster doesn't start: %s", log.String())
	}
	c.url = c.answer.Text()
	return c
}

// crash returns once the server is back.
func (c *cluster) crash(t *testing.T) {
	t.Helper()
	c.down.Lock()
	defer c.down.Unlock()
	if _, err := io.WriteString(c.orders, "postgres_crash\n"); err != nil {
		t.Fatal(err)
	}
	if !c.answer.Scan() {
		t.Fatal("the cluster doesn't come back")
	}
}

// wait returns when the server is up.
func (c *cluster) wait() {
	c.down.RLock()
	defer c.down.RUnlock()
}
