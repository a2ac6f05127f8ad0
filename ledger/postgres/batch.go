package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
)

const (
	lockAll = `SELECT pg_advisory_xact_lock(l) FROM unnest($1::bigint[]) AS l`
	seal    = `INSERT INTO sealed_payloads (operation, sealed) SELECT id, $3 FROM agent_operations WHERE operation_id = $1 AND token = $2`
	take    = `SELECT ledger_take($1, $2, $3, $4, $5)`
	give    = `UPDATE limit_usage SET used = greatest(used - $4, 0)
		WHERE bucket = $3 AND EXISTS (SELECT FROM agent_operations WHERE operation_id = $1 AND token = $2)`
)

// send carries changes out as one transaction in one round trip: all statements go out at once,
// and what comes before the synchronisation at their end is one transaction, by the protocol. It
// says which of them found their operation where they start. It returns nil only once the server
// has said that the transaction is over, so that all of it is durable.
//
// Whatever is locked is locked in the same order by everybody: first the locks of decisions, then
// operations by key, then limits by bucket. What follows the statement of a move depends on its
// token: where that wrote nothing, the rest does nothing.
func send(ctx context.Context, conn *pgx.Conn, batch []*task, tokens []int64) ([]bool, error) {
	var b pgx.Batch
	if locks := locksOf(batch); len(locks) > 0 {
		b.Queue(lockAll, locks)
	}
	for _, t := range batch {
		if t.seen != nil {
			b.Queue(t.seen.query, t.seen.args...)
		}
	}
	first := b.Len()
	for i, t := range batch {
		query, args := t.statement(tokens[i])
		b.Queue(query, args...)
	}
	for i, t := range batch {
		if t.seals {
			b.Queue(seal, t.to.ID, tokens[i], t.payload)
		}
	}
	queueLimits(&b, batch, tokens)

	results := conn.SendBatch(ctx, &b)
	moved := make([]bool, len(batch))
	for i := range b.Len() {
		tag, err := results.Exec()
		if err != nil {
			break // Close tells it
		}
		if n := i - first; n >= 0 && n < len(batch) {
			moved[n] = tag.RowsAffected() == 1
		}
	}
	return moved, results.Close()
}

// locksOf is what the changes want locked, in ascending order.
func locksOf(batch []*task) []int64 {
	var locks []int64
	for _, t := range batch {
		locks = append(locks, t.locks...)
	}
	slices.Sort(locks)
	return slices.Compact(locks)
}

func queueLimits(b *pgx.Batch, batch []*task, tokens []int64) {
	type part struct {
		ledger.Taking
		id    string
		token int64
		gives bool
	}
	var parts []part
	for i, t := range batch {
		for _, taking := range t.release {
			parts = append(parts, part{taking, t.to.ID, tokens[i], true})
		}
		for _, taking := range t.reserve {
			parts = append(parts, part{taking, t.to.ID, tokens[i], false})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.Bucket, b.Bucket) })
	for _, p := range parts {
		if p.gives {
			b.Queue(give, p.id, p.token, p.Bucket, p.N)
		} else {
			b.Queue(take, p.id, p.token, p.Bucket, p.N, p.Max)
		}
	}
}
