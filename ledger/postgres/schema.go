package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// versions is the table that keeps what version the schema has. It has a name of its own, for
// another program in the schema may use goose too.
const versions = "ledger_schema"

// prepare examines the server, brings the schema up to date if it isn't, and looks whether the user
// has the rights that serving takes.
func prepare(ctx context.Context, config *pgx.ConnConfig, o Options) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is left to lose
	if err := examine(ctx, conn, o); err != nil {
		return err
	}
	target, err := newestVersion()
	if err != nil {
		return err
	}
	current, err := version(ctx, conn)
	if err != nil {
		return err
	}
	if current < target {
		if err := migrate(ctx, conn, config); err != nil {
			return err
		}
		if current, err = version(ctx, conn); err != nil {
			return err
		}
	}
	if current > target {
		return &OpenError{Hint: fmt.Sprintf("its schema has version %d and this program knows versions up to %d; use the newer program that wrote it", current, target)}
	}
	return checkRights(ctx, conn)
}

// examine refuses a server that can't keep a ledger.
func examine(ctx context.Context, conn *pgx.Conn, o Options) error {
	var number int
	var name, encoding, fsync string
	var schema *string
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding'),
		current_setting('fsync'), current_schema()`).Scan(&number, &name, &encoding, &fsync, &schema)
	if err != nil {
		return err
	}
	if fsync != "on" {
		o.Log.Warn("the PostgreSQL server runs with fsync off: a crash of its machine can lose operations, and what was done may be done twice")
	}
	return checkServer(number, name, encoding, schema)
}

func checkServer(number int, name, encoding string, schema *string) error {
	switch {
	case number < oldest:
		return &OpenError{Hint: fmt.Sprintf("the server is PostgreSQL %s; version %d or newer is needed", name, oldest/10000)}
	case encoding != "UTF8":
		return &OpenError{Hint: fmt.Sprintf("the database has the encoding %s; make one with ENCODING 'UTF8'", encoding)}
	case schema == nil:
		return &OpenError{Hint: "no schema of the search_path exists, or may be used; create it (CREATE SCHEMA), or name another one by search_path in the URL"}
	}
	return nil
}

func newestVersion() (int64, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		return 0, errors.Join(err, errors.New("no migrations"))
	}
	return goose.NumericComponent(names[len(names)-1])
}

// version is the schema's version, 0 if there is none yet.
func version(ctx context.Context, conn *pgx.Conn) (n int64, err error) {
	var made, foreign bool
	err = conn.QueryRow(ctx, `SELECT to_regclass(quote_ident(current_schema()) || '.`+versions+`') IS NOT NULL, to_regclass(quote_ident(current_schema()) || '.agent_operations') IS NOT NULL`).Scan(&made, &foreign)
	if err != nil {
		return 0, err
	}
	if !made {
		if foreign {
			return 0, &OpenError{Hint: "the schema has a table agent_operations of another program; name another schema by search_path in the URL"}
		}
		return 0, nil
	}
	err = conn.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versions+` WHERE is_applied`).Scan(&n)
	return n, err
}

// migrate brings the schema up to date. One does so at a time: the lock is the session's of conn, so
// that it goes with a process that dies.
func migrate(ctx context.Context, conn *pgx.Conn, config *pgx.ConnConfig) error {
	var may bool
	var schema string
	if err := conn.QueryRow(ctx, `SELECT has_schema_privilege(current_schema(), 'CREATE'), current_schema()`).Scan(&may, &schema); err != nil {
		return err
	}
	if !may {
		return &OpenError{Hint: fmt.Sprintf("the tables have to be made or changed, and the user may not do so; start once as their owner, or GRANT CREATE ON SCHEMA %s TO it", pgx.Identifier{schema}.Sanitize())}
	}
	const lock = `hashtextextended('onceward schema ' || current_schema(), 0)`
	// Whoever is before us may have much to rewrite. The caller's context bounds the waiting.
	if _, err := conn.Exec(ctx, `SET statement_timeout = 0; SET lock_timeout = 0; SELECT pg_advisory_lock(`+lock+`)`); err != nil {
		return err
	}
	defer conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock(`+lock+`)`) //nolint:errcheck // closing the connection does so too
	config = config.Copy()
	config.RuntimeParams["statement_timeout"], config.RuntimeParams["lock_timeout"] = "0", "30000" // a large table may have to be rewritten
	db := stdlib.OpenDB(*config)
	err := up(ctx, db)
	return errors.Join(err, db.Close())
}

func up(ctx context.Context, db *sql.DB) error {
	scripts, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, scripts, goose.WithDisableGlobalRegistry(true), goose.WithTableName(versions))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// rights are what serving takes.
const rights = `SELECT string_agg(r || ' ON ' || t, ', ')
	FROM (VALUES ('agent_operations', 'SELECT'), ('agent_operations', 'INSERT'), ('agent_operations', 'UPDATE'),
	  ('sealed_payloads', 'SELECT'), ('sealed_payloads', 'INSERT'), ('sealed_payloads', 'DELETE'),
	  ('history', 'SELECT'), ('history', 'INSERT'), ('history', 'DELETE'),
	  ('limit_usage', 'SELECT'), ('limit_usage', 'INSERT'), ('limit_usage', 'UPDATE'),
	  ('ledger_facts', 'SELECT'), ('ledger_facts', 'INSERT')) AS needed (t, r)
	WHERE NOT has_table_privilege(t, r)`

func checkRights(ctx context.Context, conn *pgx.Conn) error {
	var missing *string
	if err := conn.QueryRow(ctx, rights).Scan(&missing); err != nil {
		return err
	}
	if missing != nil {
		return &OpenError{Hint: "the user lacks rights; GRANT " + strings.ReplaceAll(*missing, ", ", " TO it, GRANT ") + " TO it"}
	}
	return nil
}
