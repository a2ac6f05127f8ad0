package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward/ledger"
)

// An Import writes another ledger's operations into this one, as they are. It has one connection, whose
// session holds the lock that keeps other imports away.
type Import struct {
	conn *pgxpool.Conn
}

var _ ledger.CopyTarget = (*Import)(nil)

// The lock of an import, one for each schema.
const importLock = `hashtextextended('onceward import ' || current_schema(), 0)`

// Import makes ready to write another ledger's operations. The triggers that refuse an operation that
// begins finished are switched off for the transactions that write, and for nobody else: whoever else writes
// waits for their end. That is the right of the tables' owner, so the user has to be their owner, a
// member of the role that is, or a superuser; else the error is an [*OpenError]. While another import is under way,
// it is a [*ledger.CopyError].
func (s *Store) Import(ctx context.Context) (*Import, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	i := &Import{conn}
	if err := i.start(ctx); err != nil {
		i.Close(ctx)
		return nil, err
	}
	return i, nil
}

func (i *Import) start(ctx context.Context) error {
	var owner *string
	err := i.conn.QueryRow(ctx, `SELECT string_agg(DISTINCT pg_get_userbyid(relowner), ', ') FROM pg_class
		WHERE oid IN ('agent_operations'::regclass, 'sealed_payloads'::regclass, 'history'::regclass) AND NOT pg_has_role(relowner, 'USAGE')`).Scan(&owner)
	if err != nil {
		return readError(err)
	}
	if owner != nil {
		return &OpenError{Hint: "copying switches off, for its own transactions, the triggers that refuse finished operations, and only the tables' owner may do so; name that user in the URL: " + *owner}
	}
	var alone bool
	if err := i.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(`+importLock+`)`).Scan(&alone); err != nil {
		return readError(err)
	}
	if !alone {
		return &ledger.CopyError{What: "another copy into this ledger is under way; wait for its end"}
	}
	return nil
}

// Close lets another import begin. It doesn't release a ledger that is held.
func (i *Import) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerMargin)
	defer cancel()
	_, _ = i.conn.Exec(ctx, `SELECT pg_advisory_unlock(`+importLock+`)`) // a connection that is broken has none
	i.conn.Release()
}

// The trigger of a ledger that is held. It outlives this process, so that a copy that was broken off isn't
// served: a repeat of what isn't copied yet would look new.
const (
	unhold = `DROP TRIGGER IF EXISTS import_under_way ON agent_operations`
	hold   = `CREATE TRIGGER import_under_way BEFORE INSERT OR UPDATE ON agent_operations
		EXECUTE FUNCTION ledger_refuses('another ledger is being copied into this one; run onceward ledger copy to its end')`
)

// Hold implements [ledger.CopyTarget].
func (i *Import) Hold(ctx context.Context, operations int, moves int64, facts map[string][]byte) error {
	return i.write(ctx, func(tx pgx.Tx) error {
		for _, query := range []string{unhold, hold} {
			if _, err := tx.Exec(ctx, query); err != nil {
				return err
			}
		}
		var haveOperations int
		var haveMoves int64
		if err := tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(moves), 0)::bigint FROM agent_operations`).Scan(&haveOperations, &haveMoves); err != nil {
			return err
		}
		if haveOperations != operations || haveMoves != moves {
			return &ledger.CopyError{What: "somebody writes to the target; end the servers that run on it, then copy"}
		}
		var b pgx.Batch
		for name, value := range facts {
			b.Queue(`INSERT INTO ledger_facts (name, value) VALUES ($1, $2)`, name, keepEmpty(value))
		}
		return tx.SendBatch(ctx, &b).Close()
	})
}

// Release implements [ledger.CopyTarget].
func (i *Import) Release(ctx context.Context) error {
	return i.write(ctx, func(tx pgx.Tx) error {
		var held bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'agent_operations'::regclass AND tgname = 'import_under_way')`).Scan(&held)
		if err != nil || !held {
			return err
		}
		_, err = tx.Exec(ctx, unhold)
		return err
	})
}

// Take implements [ledger.CopyTarget].
func (i *Import) Take(ctx context.Context, usage map[string]int64) error {
	return i.write(ctx, func(tx pgx.Tx) error {
		rows := make([][]any, 0, len(usage))
		for bucket, used := range usage {
			rows = append(rows, []any{bucket, used})
		}
		return copyIn(ctx, tx, "limit_usage", []string{"bucket", "used"}, rows)
	})
}

// importing are the tables whose triggers an import switches off.
var importing = []string{"agent_operations", "sealed_payloads", "history"}

var historyColumns = []string{"operation", "at", "token", "seq", "attempt", "from_status", "to_status", "reason", "evidence", "actor"}

// Append implements [ledger.CopyTarget]. The CHECKs stay on, and unique keys do.
func (i *Import) Append(ctx context.Context, records []ledger.Record) error {
	operations, history, payloads, err := rowsOf(records)
	if err != nil {
		return err
	}
	names := []string{"id"}
	for _, c := range columns {
		names = append(names, c.name)
	}
	return i.write(ctx, func(tx pgx.Tx) error {
		for _, table := range importing {
			if _, err := tx.Exec(ctx, `ALTER TABLE `+table+` DISABLE TRIGGER USER`); err != nil {
				return err
			}
		}
		ids, err := newIDs(ctx, tx, len(records))
		if err != nil {
			return err
		}
		for n := range operations {
			operations[n][0] = ids[n]
		}
		for _, rows := range [][][]any{history, payloads} {
			for _, row := range rows {
				row[0] = ids[row[0].(int)]
			}
		}
		err = errors.Join(
			copyIn(ctx, tx, "agent_operations", names, operations),
			copyIn(ctx, tx, "history", historyColumns, history),
			copyIn(ctx, tx, "sealed_payloads", []string{"operation", "sealed"}, payloads))
		if err != nil {
			return err
		}
		for _, table := range importing {
			if _, err := tx.Exec(ctx, `ALTER TABLE `+table+` ENABLE TRIGGER USER`); err != nil {
				return err
			}
		}
		return nil
	})
}

// newIDs takes as many ids, in ascending order.
func newIDs(ctx context.Context, tx pgx.Tx, n int) ([]int64, error) {
	rows, err := tx.Query(ctx, `SELECT nextval(pg_get_serial_sequence('agent_operations', 'id')) FROM generate_series(1, $1::int)`, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// rowsOf renders records as rows. What will be the operation's id is its place in the list.
func rowsOf(records []ledger.Record) (operations, history, payloads [][]any, err error) {
	for n := range records {
		r := &records[n]
		op := &r.Operation
		row := make([]any, 1, len(columns)+1)
		row[0] = n
		for _, c := range columns {
			v := c.value(op)
			if _, ok := c.kind.(tombstone); ok && op.Pruned {
				v = int32(op.Moves - 1 - len(r.History)) // it may have moved since it was pruned
			}
			row = append(row, v)
		}
		operations = append(operations, row)
		rows := [][]any{row}
		for _, t := range r.History {
			line := []any{n, t.At, int64(0), int32(t.Seq), int32(t.Attempt), orNil(string(t.From)), string(t.To), orNil(t.Reason), orNil(string(t.Evidence)), orNil(t.Actor)}
			history, rows = append(history, line), append(rows, line)
		}
		if r.Sealed != nil {
			payloads = append(payloads, []any{n, r.Sealed})
		}
		if !keepable(rows) {
			return nil, nil, nil, &ledger.CopyError{Where: op.ID, What: "it has a text with a zero byte in it, or one that isn't UTF-8; PostgreSQL can't keep that"}
		}
	}
	return operations, history, payloads, nil
}

func keepable(rows [][]any) bool {
	for _, row := range rows {
		for _, v := range row {
			if s, ok := v.(string); ok && (!utf8.ValidString(s) || strings.ContainsRune(s, 0)) {
				return false
			}
		}
	}
	return true
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func copyIn(ctx context.Context, tx pgx.Tx, table string, names []string, rows [][]any) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, names, pgx.CopyFromRows(rows))
	return err
}

// write has f write in one transaction.
func (i *Import) write(ctx context.Context, f func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, i.conn.Conn(), f)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if e, ok := errors.AsType[*ledger.CopyError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == "23514" || e.Code == "23505") { // check_violation, unique_violation
		// What the database says of it holds the row's values.
		return &ledger.CopyError{What: fmt.Sprintf("the target refuses an operation of the source by its rule %s: %s", e.ConstraintName, e.Message)}
	}
	return writeError(err)
}
