//go:build unix

package torture

import (
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
)

// postgresShare is how many schedules on SQLite go on one on PostgreSQL, which has to be asked in
// real time; postgresAtOnce is how many are played side by side, for they mostly wait.
const (
	postgresShare  = 20
	postgresAtOnce = 4
)

// playOnPostgres plays a plot on a schema of its own.
func (p plot) playOnPostgres(t *testing.T, base string, count *tally) *world {
	t.Helper()
	p.Patient, p.Apart = impatience, true
	clock := newSimulated()
	w := &world{t: t, plot: p, time: clock, tally: count, key: "k"}
	place, drop := newSchema(t, base)
	defer drop()
	for range p.stores() {
		store, err := postgres.Open(t.Context(), postgres.Options{URL: place})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		w.stores = append(w.stores, watched{store, clock})
	}
	secret, err := ledger.NewSecret([]byte("a secret for tests, long enough"))
	if err != nil {
		t.Fatal(err)
	}
	w.store, w.audit = w.stores[0], ledger.NewAuditor(secret)
	w.play()
	return w
}

// TestExploreOnPostgres plays random schedules on PostgreSQL.
func TestExploreOnPostgres(t *testing.T) {
	skipInMutants(t)
	t.Parallel()
	base := os.Getenv("ONCEWARD_TEST_POSTGRES")
	if base == "" {
		base = startCluster(t).url
	}
	n := max(*schedules, shortRun) / postgresShare
	var next atomic.Uint64
	var found atomic.Bool
	var work sync.WaitGroup
	for range postgresAtOnce {
		work.Go(func() {
			for i := next.Add(1) - 1; i < uint64(n) && !found.Load(); i = next.Add(1) - 1 {
				if w := drawPlot(*from+i).playOnPostgres(t, base, &onPostgres); w.wrong != "" && found.CompareAndSwap(false, true) {
					onPostgres.violations.Add(1)
					t.Errorf("a schedule on PostgreSQL breaks the promise: %s\n%v\n%s", w.wrong, w.plot, lastLines(w.lines, 120))
				}
			}
		})
	}
	work.Wait()
	t.Logf("%d schedules", onPostgres.schedules.Load())
}

func lastLines(lines []string, n int) (last string) {
	for _, line := range slices.Clone(lines)[max(0, len(lines)-n):] {
		last += line + "\n"
	}
	return last
}

// newSchema makes an empty schema, and gives its URL and what drops it.
func newSchema(t *testing.T, base string) (place string, drop func()) {
	t.Helper()
	name := `"torture_` + uuid.NewString() + `"`
	execute(t, base, `CREATE SCHEMA `+name)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), func() { execute(t, base, `DROP SCHEMA `+name+` CASCADE`) }
}

func execute(t *testing.T, base, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Error(err)
	}
}
