package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
)

// maxDecisions bounds how often Begin decides. Each time more than the first, another caller has
// moved something in between, so somebody gets on; but a decision that never heeds what it is shown
// would go on for ever.
const maxDecisions = 200

// Begin implements [ledger.Store]. It reads without a transaction, and what it decides to write is
// compared and set: an insert by its unique key, a move by its number, a limit by its bound. If
// something came in between, it reads and decides again.
//
// A decision may rest on other rows too, or on there being none: on the newest revision, the one with
// the same content, a look-alike. Then the write first takes a lock, by base key or by what
// look-alikes share, which every such write takes; so none of them can add a row that another one's
// decision missed. Behind it, it reads the same again, locks those rows, and goes on only if they
// are the same rows after the same number of moves. So the transaction is as if it had
// read, decided and written at the moment in which it holds all these locks.
func (s *Store) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	if sought.Key.IsZero() && sought.BaseKey.IsZero() {
		return errors.New("ledger/postgres: neither a key nor a base key is sought")
	}
	for n := 1; ; n++ {
		var found ledger.Found
		err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
			found, err = find(ctx, conn, &sought)
			return err
		})
		if err != nil {
			return err
		}
		m, err := decide(found)
		if err != nil || m.IsZero() {
			return err
		}
		c := changeOf(m)
		c.restOn(&sought, &found)
		err = s.queue.write(ctx, c)
		switch {
		case !errors.Is(err, ledger.ErrStale):
			return err
		case n == maxDecisions:
			return fmt.Errorf("ledger/postgres: nothing was written: %d decisions in a row were stale", n)
		}
		if err := jitter(ctx, n); err != nil {
			return err
		}
	}
}

// restOn makes the change demand that what was found beside the operation is still so.
func (c *change) restOn(sought *ledger.Sought, found *ledger.Found) {
	if !sought.BaseKey.IsZero() {
		base, content, like := sought.BaseKey[:], orNull(sought.Content), orNull(sought.Alike)
		c.locks = append(c.locks, lockOfBase(sought.BaseKey))
		c.seen = append(c.seen, seen("newest", found.Operation, base))
		if content != nil {
			c.seen = append(c.seen, seen("same content", found.SameContent, base, content))
		}
		if like != nil {
			c.locks = append(c.locks, lockOfAlike(sought.Alike, sought.Tenant))
			c.seen = append(c.seen, seen("alike", found.Alike, base, like, sought.Since, sought.Tenant))
		}
		return
	}
	if c.move.Inserts() && !sought.Alike.IsZero() {
		c.locks = append(c.locks, lockOfAlike(sought.Alike, sought.Tenant))
		c.seen = append(c.seen, seen("look-alike", found.Alike, sought.Key.String(), sought.Alike[:], sought.Since, sought.Tenant))
	}
}

// asserting are the queries that stop a transaction unless they still find the row that was seen.
var asserting = map[string]string{
	"newest":       assert(`base_key = $2 ORDER BY revision DESC LIMIT 1`),
	"same content": assert(`base_key = $2 AND content_hash = $3 ORDER BY revision DESC LIMIT 1`),
	"alike":        assert(`base_key <> $2 AND alike = $3 AND created_at > $4 AND tenant = $5 ORDER BY created_at DESC, id DESC LIMIT 1`),
	"look-alike":   assert(`idempotency_key <> $2 AND alike = $3 AND created_at > $4 AND tenant = $5 ORDER BY created_at DESC, id DESC LIMIT 1`),
}

func assert(rows string) string {
	return `SELECT ledger_unchanged($1, (SELECT operation_id || '/' || moves FROM agent_operations WHERE ` + rows + ` FOR NO KEY UPDATE))`
}

func seen(what string, op *ledger.Operation, args ...any) sight {
	s := sight{query: asserting[what], args: args}
	if op != nil {
		text := fmt.Sprintf("%s/%d", op.ID, op.Moves)
		s.text = &text
	}
	return s
}

// jitter lets those who got in each other's way come back one after the other.
func jitter(ctx context.Context, n int) error {
	if n < 2 {
		return ctx.Err()
	}
	timer := time.NewTimer(rand.N(min(time.Duration(n)*time.Millisecond, 50*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Record implements [ledger.Store].
func (s *Store) Record(ctx context.Context, m ledger.Move) error {
	if m.IsZero() {
		return nil
	}
	return s.queue.write(ctx, changeOf(m))
}
