package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
)

// readBytes bounds the payloads of one page.
const readBytes = 16 << 20

var (
	selectPage = `SELECT id, ` + list + ` FROM agent_operations
		WHERE id > (SELECT coalesce(max(id), 0) FROM agent_operations WHERE operation_id = $1) ORDER BY id LIMIT $2`
	// As many of them as fit on a page with their payloads, the first one in any case.
	countPage = `SELECT count(*) FROM (SELECT sum(coalesce(length(p.sealed), 0)) OVER (ORDER BY o.id) AS size, o.id FROM agent_operations o LEFT JOIN sealed_payloads p ON p.operation = o.id
		WHERE o.id BETWEEN $1 AND $2) AS sized WHERE size <= $3 OR id = $1`
	selectLines = `SELECT operation, seq, coalesce(from_status, ''), to_status, attempt, coalesce(reason, ''), evidence, coalesce(actor, ''), at
		FROM history WHERE operation BETWEEN $1 AND $2 ORDER BY operation, seq`
	selectPayloads = `SELECT operation, sealed FROM sealed_payloads WHERE operation BETWEEN $1 AND $2`
)

// Records implements [ledger.Archive].
func (i *Import) Records(ctx context.Context, after string, limit int) ([]ledger.Record, error) {
	records, err := i.records(ctx, after, limit)
	if err != nil {
		return nil, readError(err)
	}
	return records, nil
}

func (i *Import) records(ctx context.Context, after string, limit int) (records []ledger.Record, err error) {
	var ids []int64
	rows, err := i.conn.Query(ctx, selectPage, after, limit)
	if err != nil {
		return nil, err
	}
	err = eachOperation(rows, 1, func(first [][]byte, op *ledger.Operation) error {
		id, err := integer(first[0])
		ids, records = append(ids, id), append(records, ledger.Record{Operation: *op})
		return err
	})
	if err != nil || len(records) == 0 {
		return nil, err
	}
	var n int
	if err := i.conn.QueryRow(ctx, countPage, ids[0], ids[len(ids)-1], readBytes).Scan(&n); err != nil {
		return nil, err
	}
	records, ids = records[:n], ids[:n]
	at := make(map[int64]*ledger.Record, n)
	for i, id := range ids {
		at[id] = &records[i]
	}
	if err := i.lines(ctx, at, ids[0], ids[n-1]); err != nil {
		return nil, err
	}
	return records, i.payloads(ctx, at, ids[0], ids[n-1])
}

func (i *Import) lines(ctx context.Context, at map[int64]*ledger.Record, first, last int64) error {
	rows, err := i.conn.Query(ctx, selectLines, first, last)
	if err != nil {
		return err
	}
	var id int64
	var from, to string
	var evidence *string
	var t ledger.Transition
	_, err = pgx.ForEachRow(rows, []any{&id, &t.Seq, &from, &to, &t.Attempt, &t.Reason, &evidence, &t.Actor, &t.At}, func() error {
		line := t
		line.From, line.To, line.At = ledger.Status(from), ledger.Status(to), t.At.UTC()
		if evidence != nil {
			line.Evidence = json.RawMessage(*evidence)
		}
		if r := at[id]; r != nil {
			r.History = append(r.History, line)
		}
		return nil
	})
	return err
}

func (i *Import) payloads(ctx context.Context, at map[int64]*ledger.Record, first, last int64) error {
	rows, err := i.conn.Query(ctx, selectPayloads, first, last)
	if err != nil {
		return err
	}
	var id int64
	var sealed []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &sealed}, func() error {
		if r := at[id]; r != nil {
			r.Sealed = append([]byte{}, sealed...)
		}
		return nil
	})
	return err
}

// Facts implements [ledger.Archive].
func (i *Import) Facts(ctx context.Context) (map[string][]byte, error) {
	facts := map[string][]byte{}
	rows, err := i.conn.Query(ctx, `SELECT name, value FROM ledger_facts`)
	if err != nil {
		return nil, readError(err)
	}
	var name string
	var value []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		facts[name] = append([]byte{}, value...)
		return nil
	})
	if err != nil {
		return nil, readError(err)
	}
	return facts, nil
}

// AllUsage implements [ledger.Archive].
func (i *Import) AllUsage(ctx context.Context) (map[string]int64, error) {
	rows, err := i.conn.Query(ctx, `SELECT bucket, used FROM limit_usage`)
	if err != nil {
		return nil, readError(err)
	}
	usage, err := taken(rows, nil)
	if err != nil {
		return nil, readError(err)
	}
	return usage, nil
}
