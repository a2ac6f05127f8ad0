//go:build unix

package torture

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// processShare is how many random schedules go on one with real processes.
const processShare = 250

func drills() int { return max(1, *schedules/processShare) }

// chaos is how long things break in one drill.
func chaos() time.Duration {
	if *schedules == 0 {
		return 3 * time.Second
	}
	return 4 * time.Second
}

// TestProcesses breaks real processes on one SQLite file.
func TestProcesses(t *testing.T) {
	skipInMutants(t)
	t.Parallel()
	for n := range drills() {
		d := newDrill(t, *from+uint64(n), 1+n%3, nil, "")
		d.draw()
		d.intents, d.callers, d.chaos = 16, 3, chaos()
		d.run()
	}
}

// TestProcessesOnPostgres breaks real processes, their connections, and the database itself.
func TestProcessesOnPostgres(t *testing.T) {
	skipInMutants(t)
	t.Parallel()
	base := startCluster(t)
	for n := range drills() {
		d := newDrill(t, *from+uint64(n), 1+(n+2)%3, base, newDatabase(t, base))
		d.draw()
		d.intents, d.callers, d.chaos = 16, 3, chaos()
		d.run()
	}
}

// Three servers on one PostgreSQL, 200 callers at once, each of whom makes the same calls: one
// effect for each intent.
func TestDuplicatesOnPostgres(t *testing.T) {
	skipInMutants(t)
	t.Parallel()
	base := startCluster(t)
	d := newDrill(t, *from, 3, base, newDatabase(t, base))
	d.intents, d.callers = 50, 4 // 200 calls under way at once
	if *schedules > 0 {
		d.rounds = d.intents // each of the 200 makes every call: 10,000
	}
	d.run()
	d.wantAllOnce()
}

// PostgreSQL is killed in the middle and started again: nothing is lost, nothing happens twice.
func TestPostgresKilled(t *testing.T) {
	skipInMutants(t)
	t.Parallel()
	base := startCluster(t)
	d := newDrill(t, *from, 3, base, newDatabase(t, base))
	d.intents, d.callers = 50, 4
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for d.told() < 5 && !d.t.Failed() {
			<-time.After(10 * time.Millisecond)
		}
		base.kill(t)
		processesPostgres.kills.Add(1)
		<-time.After(time.Second)
		base.start(t)
	}()
	d.run()
	<-killed
	d.wantAllOnce()
}

func (d *drill) told() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.answers)
}

// wantAllOnce demands one effect for each intent, and that every caller was told of it.
func (d *drill) wantAllOnce() {
	d.t.Helper()
	n := 0
	for _, effects := range d.effects(d.t.Context()) {
		n += len(effects)
	}
	if n != d.intents {
		d.t.Errorf("%d effects of %d intents", n, d.intents)
	}
	for i := range d.intents {
		if last := d.answers[i][len(d.answers[i])-1]; last.Status != "succeeded" {
			d.t.Errorf("intent %d is %+v", i, last)
		}
	}
}

// newDatabase makes a database of its own on a cluster, and gives its URL.
func newDatabase(t *testing.T, base *cluster) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), base.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	name := "torture_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := conn.Exec(t.Context(), `CREATE DATABASE `+name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(base.url)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
