package postgres_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
)

const secretWord = "s3cr3t-word"

func TestOpenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	execute(t, place, `DO $$ BEGIN CREATE ROLE onceward_test_guest LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$`)
	edit := func(raw string, f func(*url.URL)) string {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		f(u)
		return u.String()
	}
	made := func(change string) string {
		s := newSchema(t)
		openStore(t, s)
		execute(t, s, change)
		return s
	}
	guest := func(raw string) string {
		return edit(raw, func(u *url.URL) { u.User = url.UserPassword("onceward_test_guest", secretWord) })
	}
	granted := func(change string) string {
		return guest(made(`DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO onceward_test_guest'; END $$;` + change))
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()

	for name, test := range map[string]struct {
		o    postgres.Options
		want string
	}{
		"no URL":              {postgres.Options{}, "there is no URL"},
		"not a URL":           {postgres.Options{URL: "postgres://u:" + secretWord + "@host:port/db"}, "can't be read"},
		"another database's":  {postgres.Options{URL: "mysql://u:" + secretWord + "@host/db"}, "can't be read"},
		"a broken password":   {postgres.Options{URL: "postgres://u:" + secretWord + "%zz@host/db"}, "can't be read"},
		"a bad sslmode":       {postgres.Options{URL: "postgres://u:" + secretWord + "@host/db?sslmode=maybe"}, "can't be read"},
		"a pool of zero":      {postgres.Options{URL: with(t, place, "pool_max_conns", "0")}, "at least 4"},
		"a pool of three":     {postgres.Options{URL: place, MaxConns: 3}, "at least 4"},
		"a pool of minus one": {postgres.Options{URL: place, MaxConns: -1}, "at least 4"},
		"a pool of many":      {postgres.Options{URL: with(t, place, "pool_max_conns", "many")}, "can't be read"},
		"nobody there":        {postgres.Options{URL: edit(place, func(u *url.URL) { u.Host = closed.Addr().String() })}, "can't be reached"},
		"nobody answers":      {postgres.Options{URL: edit(place, func(u *url.URL) { u.Host = silent.Addr().String() }), ConnectTimeout: 200 * time.Millisecond}, "doesn't answer"},
		"no such host":        {postgres.Options{URL: edit(place, func(u *url.URL) { u.Host = "no-such-host.invalid" })}, "name is unknown"},
		"no such database":    {postgres.Options{URL: edit(place, func(u *url.URL) { u.Path = "/nowhere" })}, "no such database"},
		"no such user":        {postgres.Options{URL: edit(place, func(u *url.URL) { u.User = url.UserPassword("nobody", secretWord) })}, "doesn't let this user in"},
		"no such schema":      {postgres.Options{URL: with(t, place, "search_path", "nowhere")}, "no schema of the search_path exists"},
		"no such parameter":   {postgres.Options{URL: with(t, place, "colour", "red")}, "parameter of the URL"},
		"commits in memory":   {postgres.Options{URL: with(t, place, "synchronous_commit", "off")}, "would lose"},
		"read-only":           {postgres.Options{URL: with(t, place, "default_transaction_read_only", "on")}, "read-only"},
		"a newer schema":      {postgres.Options{URL: made(`INSERT INTO ledger_schema (version_id, is_applied) VALUES (99, true)`)}, "version 99"},
		"another program's":   {postgres.Options{URL: made(`DROP TABLE ledger_schema`)}, "of another program"},
		"no right to create":  {postgres.Options{URL: granted(`DROP VIEW transitions; DROP TABLE agent_operations, ledger_schema CASCADE`)}, "GRANT CREATE ON SCHEMA"},
		"no right at all":     {postgres.Options{URL: guest(place)}, "no schema of the search_path exists, or may be used"},
		"no right to insert": {postgres.Options{URL: granted(`GRANT SELECT ON ALL TABLES IN SCHEMA pg_catalog TO onceward_test_guest;
			GRANT SELECT ON ledger_schema, agent_operations, sealed_payloads, history, limit_usage, ledger_facts TO onceward_test_guest;
			GRANT UPDATE ON agent_operations, limit_usage TO onceward_test_guest; GRANT INSERT ON sealed_payloads, history, limit_usage, ledger_facts TO onceward_test_guest;
			GRANT DELETE ON sealed_payloads, history TO onceward_test_guest`)}, "GRANT INSERT ON agent_operations TO it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := postgres.Open(t.Context(), test.o)
			if err == nil {
				s.Close()
				t.Fatal("it opens")
			}
			if _, ok := errors.AsType[*postgres.OpenError](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q (%T), want an OpenError that says %q", err, err, test.want)
			}
			if strings.Contains(err.Error(), secretWord) {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// A user who may not make tables can serve from those that their owner made.
func TestARoleWithoutTheRightToCreateServes(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	openStore(t, place)
	role := "onceward_test_server"
	execute(t, place, `DO $$ BEGIN CREATE ROLE onceward_test_server LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
		DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO onceward_test_server'; END $$;
		GRANT SELECT ON ledger_schema TO onceward_test_server;
		GRANT SELECT, INSERT, UPDATE ON agent_operations, limit_usage TO onceward_test_server;
		GRANT SELECT, INSERT, DELETE ON sealed_payloads, history TO onceward_test_server;
		GRANT SELECT, INSERT ON ledger_facts TO onceward_test_server`)
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	s := openStore(t, u.String())
	record(t, s, outcome(t, claim(t, s, 1, "run")))
	if n, err := s.Prune(t.Context(), ledger.Prunable{Before: benchTime.Add(time.Hour), Limit: 10}, func(op ledger.Operation, _ []ledger.Transition) ledger.Operation { return op.Tombstone(nil) }); err != nil || n != 1 {
		t.Errorf("Prune = %d, %v", n, err)
	}
}

func TestSixServersMakeTheTablesAtOnce(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: place, MaxConns: 4})
			if err != nil {
				t.Errorf("server %d: %v", i, err)
				return
			}
			defer s.Close()
			m, err := benchOperation(i).Insert(limitedClaim(""), nil, benchClaim)
			if err == nil {
				err = s.Record(t.Context(), m)
			}
			if err != nil {
				t.Errorf("server %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// A server or role that doesn't wait for the disk is overruled, and a server that never writes to
// it is told of.
func TestCommitsAreDurable(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	var log bytes.Buffer
	s, err := postgres.Open(t.Context(), postgres.Options{URL: with(t, place, "options", "-c synchronous_commit=off"), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := postgres.Setting(t, s, "synchronous_commit"); got != "on" {
		t.Errorf("synchronous_commit is %s, want on", got)
	}
	want := texts(t, connect(t, place), `SELECT (current_setting('fsync') = 'off')::text`)[0] == "true"
	if got := strings.Contains(log.String(), "fsync"); got != want {
		t.Errorf("a warning of fsync: %v, want %v; the log says %q", got, want, log.String())
	}
}
