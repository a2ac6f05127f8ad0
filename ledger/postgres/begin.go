package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
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
		if m.Inserts() && found.Operation != nil && found.Operation.Key == m.To().Key {
			return fmt.Errorf("ledger/postgres: nothing was written: operation %s exists, and the decision was to insert it", found.Operation.ID)
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
	byBase := !sought.BaseKey.IsZero()
	if !byBase && !c.inserts {
		return // a move of the operation with the key rests on that alone
	}
	if byBase {
		c.locks = append(c.locks, lockOfBase(sought.BaseKey))
		c.seen = &sight{assertRevisions, append(revisionsOf(sought), mark(found.Operation)+" "+mark(found.SameContent)+" "+mark(found.Alike))}
	}
	if !sought.Alike.IsZero() {
		c.locks = append(c.locks, lockOfAlike(sought.Alike, sought.Tenant))
		if !byBase {
			c.seen = &sight{assertLookAlike, append(lookAlikesOf(sought), mark(found.Alike))}
		}
	}
}

// Queries that undo the transaction unless they find what was seen, and lock that.
var (
	assertRevisions = `SELECT ledger_unchanged($6, ` + marking(newest) + ` || ' ' || ` + marking(sameContent) + ` || ' ' || ` + marking(alike) + `)`
	assertLookAlike = `SELECT ledger_unchanged($5, ` + marking(lookAlike) + `)`
)

func marking(rows string) string {
	return `coalesce((SELECT operation_id || '/' || moves FROM agent_operations WHERE ` + rows + ` FOR NO KEY UPDATE), '-')`
}

// mark is what marking makes of an operation.
func mark(op *ledger.Operation) string {
	if op == nil {
		return "-"
	}
	return op.ID + "/" + strconv.Itoa(op.Moves)
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
