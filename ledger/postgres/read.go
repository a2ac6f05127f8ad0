package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
)

// The rows that a decision may rest on. Sought by base key: $1 is that, $2 the content, $3 what
// look-alikes share, $4 since when, $5 whose. Sought by key: $1 is that, and the last three follow.
const (
	newest      = `base_key = $1 ORDER BY revision DESC LIMIT 1`
	sameContent = `base_key = $1 AND content_hash = $2 ORDER BY revision DESC LIMIT 1`
	alike       = `base_key <> $1 AND alike = $3 AND created_at > $4 AND tenant = $5 ORDER BY created_at DESC, id DESC LIMIT 1`
	lookAlike   = `idempotency_key <> $1 AND alike = $2 AND created_at > $3 AND tenant = $4 ORDER BY created_at DESC, id DESC LIMIT 1`
)

// What a decision is made on. Each is one statement, so that it shows one moment.
var reading = map[string]string{
	"key":        selectOperation + `WHERE idempotency_key = $1`,
	"look-alike": selectOperation + `WHERE ` + lookAlike,
	"revisions": `(SELECT 1, ` + list + ` FROM agent_operations WHERE ` + newest + `)
		UNION ALL (SELECT 2, ` + list + ` FROM agent_operations WHERE ` + sameContent + `)
		UNION ALL (SELECT 3, ` + list + ` FROM agent_operations WHERE ` + alike + `)`,
	"used": `SELECT bucket, used FROM limit_usage WHERE bucket = ANY($1)`,
}

var selectOperation = `SELECT ` + list + ` FROM agent_operations `

// find reads what was sought, in one round trip. The statements stand in an order that no write
// in between can make contradict itself: operations are never taken back, so where none is
// found last, there was none when limits and look-alikes were read.
func find(ctx context.Context, conn *pgx.Conn, sought *ledger.Sought) (found ledger.Found, err error) {
	var b pgx.Batch
	if len(sought.Buckets) > 0 {
		b.Queue(reading["used"], sought.Buckets).Query(func(rows pgx.Rows) error {
			found.Used, err = taken(rows, sought.Buckets)
			return err
		})
	}
	if !sought.BaseKey.IsZero() {
		b.Queue(reading["revisions"], revisionsOf(sought)...).Query(func(rows pgx.Rows) error {
			return eachOperation(rows, 1, func(first [][]byte, op *ledger.Operation) error {
				place, err := integer(first[0])
				switch place {
				case 1:
					found.Operation = op
				case 2:
					found.SameContent = op
				case 3:
					found.Alike = op
				}
				return err
			})
		})
		return found, conn.SendBatch(ctx, &b).Close()
	}
	if !sought.Alike.IsZero() {
		b.Queue(reading["look-alike"], lookAlikesOf(sought)...).Query(one(&found.Alike))
	}
	if b.Len() == 0 {
		rows, err := conn.Query(ctx, reading["key"], sought.Key.String())
		return found, cmp.Or(err, one(&found.Operation)(rows))
	}
	b.Queue(reading["key"], sought.Key.String()).Query(one(&found.Operation))
	err = conn.SendBatch(ctx, &b).Close()
	if found.Operation != nil {
		found.Alike = nil
	}
	return found, err
}

func revisionsOf(sought *ledger.Sought) []any {
	return []any{sought.BaseKey[:], orNull(sought.Content), orNull(sought.Alike), sought.Since, sought.Tenant}
}

func lookAlikesOf(sought *ledger.Sought) []any {
	return []any{sought.Key.String(), sought.Alike[:], sought.Since, sought.Tenant}
}

// orNull is a hash as a parameter; a zero one matches nothing.
func orNull[H ledger.Hash | ledger.FieldHash](h H) any {
	switch h := any(h).(type) {
	case ledger.Hash:
		if !h.IsZero() {
			return h[:]
		}
	case ledger.FieldHash:
		if !h.IsZero() {
			return h[:]
		}
	}
	return nil
}

// one reads the only row there may be.
func one(op **ledger.Operation) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		return eachOperation(rows, 0, func(_ [][]byte, found *ledger.Operation) error {
			*op = found
			return nil
		})
	}
}

// eachOperation reads rows of columns, after which others stand as many as first says. The values it
// passes are good until f returns.
func eachOperation(rows pgx.Rows, first int, f func(first [][]byte, op *ledger.Operation) error) error {
	defer rows.Close()
	for rows.Next() {
		op, values := new(ledger.Operation), rows.RawValues()
		for i, c := range columns {
			if err := c.set(op, values[first+i]); err != nil {
				return err
			}
		}
		if err := f(values[:first], op); err != nil {
			return err
		}
	}
	return rows.Err()
}

// taken reads how much is taken of limits; 0 of the named ones that have no row.
func taken(rows pgx.Rows, named []string) (map[string]int64, error) {
	used := make(map[string]int64, len(named))
	for _, bucket := range named {
		used[bucket] = 0
	}
	var bucket string
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&bucket, &n}, func() error {
		used[bucket] = n
		return nil
	})
	return used, err
}

// read lends a connection to f, and does so again if it breaks: reading changes nothing, and after
// an outage every connection of the pool is dead at first.
func (s *Store) read(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	for try := 1; ; try++ {
		err := s.with(ctx, f)
		if err == nil {
			return nil
		}
		k := kindOf(err)
		if again := k == isLost || k == isUnsent || k == isTransient; !again || try == maxTries || ctx.Err() != nil {
			return readError(err)
		}
	}
}
