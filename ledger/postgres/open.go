// Package postgres keeps the ledger in a PostgreSQL database, where one machine isn't enough:
// several servers share it. PostgreSQL 13 and newer.
//
// A claim is one round trip, and so is an outcome. Callers that want to write at the same time
// share a transaction, whose statements go out all at once; see queue and send. Nothing is locked
// between reading and writing: what was decided is compared and set; see Begin. A commit whose answer
// was lost is found out about, not guessed; see carry.
//
// The SQL is in plain sight: the schema with all that it refuses is in migrations,
// the queries stand beside the code that runs them.
package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Open connects to the ledger at the URL. It makes the tables where they don't exist yet, in the
// first schema of the search_path, and brings an older schema up to date; several servers may do
// so at the same time. Its errors are [*OpenError], and show no password. The context bounds opening
// only.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, config.ConnConfig, o); err != nil {
		return nil, openError(config.ConnConfig, err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, openError(config.ConnConfig, err)
	}
	s := &Store{pool: pool, roundTrip: o.StatementTimeout + answerMargin, connect: o.ConnectTimeout, settleWithin: settleWithin}
	s.queue.commit = s.carry
	s.queue.idle.L = &s.queue.mu
	var table uint32
	if err := pool.QueryRow(ctx, `SELECT 'agent_operations'::regclass::oid`).Scan(&table); err != nil {
		pool.Close()
		return nil, openError(config.ConnConfig, err)
	}
	s.listener = newListener(s.acquire, "onceward_"+strconv.FormatUint(uint64(table), 10), s.roundTrip)
	return s, nil
}
