package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say which ledger is meant, and how patient to be. The zero value of a field but URL
// means its default.
type Options struct {
	// URL is postgres://user:password@host:port/database, with any parameter that libpq or
	// pgxpool knows: sslmode, search_path (which schema), pool_max_conns, ...
	URL string

	MaxConns         int           // connections at most; 0: pool_max_conns of the URL, else 10. At least 4
	StatementTimeout time.Duration // how long the server works at one statement; 5 s
	ConnectTimeout   time.Duration // how long a connection may take to come about, or to get free; 5 s
	Log              *slog.Logger  // for warnings; nil: slog.Default
}

const (
	defaultConns = 10
	minConns     = lanes + 2 // a reader, and whoever listens
	oldest       = 130000    // PostgreSQL 13, as server_version_num has it
	// answerMargin is what a round trip may take beyond the statement's own time.
	answerMargin = 2 * time.Second
)

func (o Options) withDefaults() Options {
	if o.StatementTimeout <= 0 {
		o.StatementTimeout = 5 * time.Second
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// config turns options into a pool's configuration. Its errors show no part of the URL.
func (o Options) config() (*pgxpool.Config, error) {
	if err := checkURL(o.URL); err != nil {
		return nil, err
	}
	c, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, &OpenError{Hint: badURL}
	}
	u, _ := url.Parse(o.URL)
	switch {
	case o.MaxConns != 0:
		c.MaxConns = int32(min(o.MaxConns, 1<<20))
	case !u.Query().Has("pool_max_conns"):
		c.MaxConns = defaultConns
	}
	if c.MaxConns < minConns {
		return nil, tooFew(int(c.MaxConns))
	}
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // a dead connection is noticed when it is used
	o.session(c.ConnConfig)
	return c, nil
}

// session sets what every connection has. What the URL says of it holds.
func (o Options) session(c *pgx.ConnConfig) {
	statement := o.StatementTimeout.Milliseconds()
	for name, value := range map[string]string{
		"application_name":                    "onceward",
		"client_encoding":                     "UTF8",
		"default_transaction_isolation":       "read committed", // each statement sees what was committed before it
		"statement_timeout":                   strconv.FormatInt(statement, 10),
		"lock_timeout":                        strconv.FormatInt(max(statement*2/3, 1), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(2*statement, 10),
		// A client that is cut off in the middle of a transaction keeps its locks until the server notices.
		"tcp_keepalives_idle":     "15",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "3",
	} {
		if _, said := c.RuntimeParams[name]; !said {
			c.RuntimeParams[name] = value
		}
	}
	c.ConnectTimeout = o.ConnectTimeout
	c.DialFunc = (&net.Dialer{Timeout: o.ConnectTimeout, KeepAlive: 15 * time.Second}).DialContext
	c.ValidateConnect = validate
}

// validate has each new connection wait for its commits to be on disk, and refuses a server that
// can't write, so that the next host of the URL is tried.
func validate(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
		CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END`).ReadAll()
	if err != nil {
		return err
	}
	if string(results[0].Rows[0][0]) == "t" {
		return errReadOnly
	}
	return nil
}

var errReadOnly = errors.New("the server is read-only")

const badURL = "the URL can't be read; it looks like postgres://user:password@host:5432/database?sslmode=verify-full, with what is special in a password written as %XX"

func checkURL(raw string) error {
	if raw == "" {
		return &OpenError{Hint: "there is no URL; give one like postgres://user:password@host:5432/database"}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return &OpenError{Hint: badURL}
	}
	if strings.EqualFold(u.Query().Get("synchronous_commit"), "off") {
		return &OpenError{Hint: "synchronous_commit=off would lose what was promised; take it out of the URL"}
	}
	if v := u.Query().Get("pool_max_conns"); v != "" {
		if n, err := strconv.Atoi(v); err == nil && n < minConns {
			return tooFew(n)
		}
	}
	return nil
}

func tooFew(n int) error {
	return &OpenError{Hint: fmt.Sprintf("a pool of %d connections is too small; give it at least %d: %d to write, one to read and one to listen", n, minConns, lanes)}
}
