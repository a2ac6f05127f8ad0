//go:build unix

package torture

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// A cluster is a PostgreSQL of our own, to be killed and started again.
type cluster struct {
	url string
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Scanner
}

// clusterScript runs a cluster and obeys: kill ends all of its processes as a power cut would.
const clusterScript = `
set -euo pipefail
source ../.ci/postgres
postgres_bin >/dev/null || { echo none; exit 0; }
trap postgres_stop EXIT
postgres_start
port=${ONCEWARD_TEST_POSTGRES##*:}
echo "-h 127.0.0.1 -p ${port%%/*} -k $postgres_dir -c max_connections=300" >"$postgres_dir/options"
echo "$ONCEWARD_TEST_POSTGRES"
bin=$(postgres_bin)
alive() { [ -e "/proc/$1/status" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }
start() {
  (cd / && postgres_as "$bin/pg_ctl" -D "$postgres_dir/data" -l "$postgres_dir/server.log" -w -t 60 -s start -o "$(cat "$postgres_dir/options")" >/dev/null 2>"$postgres_dir/start.log") ||
    { tail -n 3 "$postgres_dir/server.log" >&2; return 1; }
}
while read -r line; do
  case $line in
    kill)
      pid=$(head -n 1 "$postgres_dir/data/postmaster.pid")
      kill -STOP "$pid" # so that it forks nobody meanwhile
      all="$pid $(pgrep -P "$pid" | tr '\n' ' ')"
      kill -KILL $all || true
      for pid in $all; do while alive "$pid"; do sleep 0.05; done; done
      rm -f "$postgres_dir/data/postmaster.pid" "$postgres_dir"/.s.PGSQL.*.lock # they name who is dead, but may not be reaped yet
      echo killed ;;
    start)
      for try in $(seq 20); do
        if start; then break; fi
        sleep 0.2
      done
      echo started ;;
  esac
done
`

// startCluster starts one, or skips the test where there is no PostgreSQL.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	cmd := exec.Command("bash", "-c", clusterScript)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no bash to start PostgreSQL with: %v", err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	c := &cluster{in: in, out: bufio.NewScanner(out)}
	switch c.url = c.hear(t); {
	case c.url == "none" && os.Getenv("CI") == "true":
		t.Fatal("there is no PostgreSQL, and in continuous integration there has to be one")
	case c.url == "none" || c.url == "":
		t.Skip("there is no PostgreSQL here")
	}
	return c
}

func (c *cluster) hear(t *testing.T) string {
	t.Helper()
	if !c.out.Scan() {
		t.Error("PostgreSQL's keeper is gone")
		return ""
	}
	return c.out.Text()
}

// kill ends all of its processes by SIGKILL; start starts it again on the same files.
func (c *cluster) kill(t *testing.T)  { c.tell(t, "kill") }
func (c *cluster) start(t *testing.T) { c.tell(t, "start") }

func (c *cluster) tell(t *testing.T, what string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintln(c.in, what); err != nil {
		t.Error(err)
	}
	c.hear(t)
}

// A wire is the network between one server and the database. It can be cut.
type wire struct {
	target   string
	listener net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool
	until time.Time
}

// newWire gives a URL of the database that leads through the wire.
func newWire(t *testing.T, database string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{target: u.Host, listener: l, conns: map[net.Conn]bool{}}
	u.Host = l.Addr().String()
	go w.serve()
	t.Cleanup(func() { l.Close(); w.cut(time.Hour) })
	return w, u.String()
}

func (w *wire) serve() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.target)
		if err != nil || !w.add(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		go w.carry(near, far)
		go w.carry(far, near)
	}
}

func (w *wire) add(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = true
	}
	return !time.Now().Before(w.until)
}

func (w *wire) carry(to, from net.Conn) {
	_, _ = io.Copy(to, from) // it ends when either side does, or the wire is cut
	to.Close()
	from.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, to)
	delete(w.conns, from)
}

// cut breaks all connections and lets none come about for a time.
func (w *wire) cut(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Now().Add(d)
	for c := range w.conns {
		c.Close()
	}
}
