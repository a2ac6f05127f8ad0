package postgres

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"github.com/onceward/onceward/ledger"
)

// A change takes an operation from one state to the next: a Move, or a burial.
type change struct {
	from, to         ledger.Operation
	inserts, seals   bool
	payload          []byte // if it seals
	reserve, release []ledger.Taking

	// What the decision for the move rests on besides the operation itself. locks are taken
	// first, in ascending order; then what was seen must still be so.
	locks []int64
	seen  *sight

	// tokens of the tries whose answer was lost: each may have written the move, or may yet.
	tokens []int64
}

// A sight is a query that undoes the transaction unless it finds what was seen before.
type sight struct {
	query string
	args  []any
}

func changeOf(m ledger.Move) *change {
	return &change{
		from: m.From(), to: m.To(), inserts: m.Inserts(),
		// Even an empty payload has its row: it says that the operation is open.
		seals: m.Inserts() || m.Replans(), payload: keepEmpty(m.Seal()),
		reserve: m.Reserve(), release: m.Release(),
	}
}

func keepEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// newToken names one try to write something. No two are the same, so that whoever lost the
// answer knows its own work from another's.
func newToken() int64 { return rand.Int64() }

func byKey(a, b *task) int { return bytes.Compare(a.to.Key[:], b.to.Key[:]) }

// statement is the statement that writes the move, and its arguments. It changes one row, or
// none if the operation isn't where the move starts.
func (c *change) statement(token int64) (string, []any) {
	shape := moveShape{insert: c.inserts}
	args := make([]any, 0, len(columns))
	for i, col := range columns {
		if shape.insert {
			if v := col.value(&c.to); !unset(v) {
				shape.bits |= 1 << i
				args = append(args, v)
			}
		} else if !col.same(&c.from, &c.to) {
			shape.bits |= 1 << i
			args = append(args, col.value(&c.to))
		}
	}
	args = append(args, token)
	if !shape.insert {
		args = append(args, c.to.ID, int32(c.from.Moves))
	}
	return shape.sql(), args
}

// A moveShape is which columns a Move writes: one bit each, in the order of columns.
// Operations move in a few ways only, so there are few shapes, and each connection keeps
// their statements prepared.
type moveShape struct {
	insert bool
	bits   uint64
}

var shapes sync.Map // of moveShape to its SQL

func (shape moveShape) sql() string {
	if s, ok := shapes.Load(shape); ok {
		return s.(string)
	}
	var names, places []string
	for i, c := range columns {
		if shape.bits&(1<<i) != 0 {
			names = append(names, c.name)
			places = append(places, place(len(names)))
		}
	}
	names, places = append(names, "token"), append(places, place(len(names)+1))
	var s string
	if shape.insert {
		s = `INSERT INTO agent_operations (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(places, ", ") + `) ON CONFLICT (idempotency_key) DO NOTHING`
	} else {
		for i := range names {
			names[i] += " = " + places[i]
		}
		s = `UPDATE agent_operations SET ` + strings.Join(names, ", ") + ` WHERE operation_id = ` + place(len(names)+1) + ` AND moves = ` + place(len(names)+2)
	}
	shapes.Store(shape, s)
	return s
}

func place(n int) string { return "$" + strconv.Itoa(n) }

// Locks that keep those apart whose decisions rest on the same rows, or on there being none. They
// are numbers: a collision makes somebody wait in vain, and nothing else.
func lockOfBase(base ledger.Key) int64 { return int64(binary.BigEndian.Uint64(base[:])) }

func lockOfAlike(alike ledger.FieldHash, tenant string) int64 {
	h := fnv.New64a()
	_, _ = h.Write(alike[:])
	_, _ = h.Write([]byte(tenant))
	return int64(h.Sum64())
}
