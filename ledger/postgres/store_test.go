package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
	"github.com/onceward/onceward/ledger/postgres"
)

func TestStore(t *testing.T) {
	t.Parallel()
	server(t)
	ledgertest.TestStore(t, func(t *testing.T) func() ledger.Store {
		place := newSchema(t)
		return func() ledger.Store { return openStore(t, place) }
	})
}

// server is the URL of a superuser on a cluster for tests. Without one, tests are skipped; where it
// was meant to be there, they fail.
func server(t testing.TB) string {
	t.Helper()
	raw := os.Getenv("ONCEWARD_TEST_POSTGRES")
	if raw != "" {
		return raw
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("ONCEWARD_TEST_POSTGRES isn't set; source .ci/postgres and call postgres_start")
	}
	t.Skip("ONCEWARD_TEST_POSTGRES isn't set; run .ci/postgres go test ./ledger/postgres")
	return ""
}

// newSchema makes an empty schema, and is its URL.
func newSchema(t testing.TB) string {
	t.Helper()
	name := "test_" + uuid.NewString()
	execute(t, server(t), `CREATE SCHEMA "`+name+`"`)
	t.Cleanup(func() { execute(t, server(t), `DROP SCHEMA IF EXISTS "`+name+`" CASCADE`) })
	return with(t, server(t), "search_path", `"`+name+`"`)
}

// with sets a parameter of a URL.
func with(t testing.TB, raw, name, value string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // as libpq has it
	return u.String()
}

func openStore(t testing.TB, place string) *postgres.Store {
	t.Helper()
	return openWith(t, postgres.Options{URL: place, MaxConns: 6})
}

func openWith(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	s, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// connect opens a bare connection.
func connect(t testing.TB, place string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(background) })
	return conn
}

// execute runs statements on a connection of their own.
func execute(t testing.TB, place, query string) {
	t.Helper()
	conn, err := pgx.Connect(background, place)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(background)
	if _, err := conn.Exec(background, query); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", query, err))
	}
}

// background is for what has to be done even when a test's own context has ended.
var background = context.Background()
