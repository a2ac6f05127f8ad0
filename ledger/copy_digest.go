package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
)

// Contents is what a ledger has in it.
type Contents struct {
	Operations  int
	Tombstones  int // of the operations
	Transitions int
	Payloads    int
	Facts       int
	Limits      int
	Digest      string // over all of it, in whatever order it was read
}

// A tally counts what is read, and adds up a digest of each thing.
type tally struct {
	Contents
	sum [4]uint64
}

// add adds digests as numbers of 256 bits, so that their order doesn't matter, and the same thing
// twice isn't nothing.
func (t *tally) add(kind byte, b []byte) {
	sum := sha256.Sum256(append([]byte{kind}, b...))
	var carry uint64
	for i := range t.sum {
		t.sum[i], carry = bits.Add64(t.sum[i], binary.LittleEndian.Uint64(sum[8*i:]), carry)
	}
}

func (t *tally) contents() Contents {
	var b []byte
	for _, n := range t.sum {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	t.Digest = hex.EncodeToString(b)
	return t.Contents
}

func (t *tally) record(r *Record) {
	t.Operations++
	if r.Operation.Pruned {
		t.Tombstones++
	}
	t.Transitions += len(r.History)
	if r.Sealed != nil {
		t.Payloads++
	}
	state, history, payload := r.parts()
	t.add('o', appendText(nil, string(state), string(history), string(payload)))
}

// parts are all bytes that say what a record is.
func (r *Record) parts() (state, history, payload []byte) {
	op := &r.Operation
	state = op.appendState(nil)
	state = append(state, op.Chain[:]...)
	state = appendText(state, op.Last.Actor, op.Last.Reason, string(op.Last.Evidence))
	for _, line := range r.History {
		history = appendNumbers(history, line.Seq, line.Attempt)
		history = appendText(history, string(line.From), string(line.To), line.Reason, string(line.Evidence), line.Actor)
		history = appendTime(history, line.At)
	}
	payload = []byte{byte(bit(r.Sealed != nil))}
	return state, history, append(payload, r.Sealed...)
}

// problem says what keeps a record from being one of ours. The target's triggers, which would refuse it, are
// off while it is copied.
func (r *Record) problem() string {
	op := &r.Operation
	switch {
	case op.ID == "" || op.Key.IsZero() || op.Action == "" || !op.Status.Known():
		return "it has no id, key, action type or status"
	case op.Pruned && !op.Status.Final(), op.Status.Final() && r.Sealed != nil, !op.Status.Final() && r.Sealed == nil:
		return "an open operation keeps its payload, and a final one has none"
	case !op.Pruned && len(r.History) != op.Moves, op.Pruned && len(r.History) >= op.Moves:
		return fmt.Sprintf("it has made %d moves, and its history has %d lines", op.Moves, len(r.History))
	case op.Pruned:
		return "" // what it had is gone
	}
	return op.problem()
}

// differsIn says what isn't the same in two records of an operation; empty: nothing.
func (r *Record) differsIn(other *Record) string {
	state, history, payload := r.parts()
	theirState, theirHistory, theirPayload := other.parts()
	switch {
	case r.Operation.Moves != other.Operation.Moves:
		return fmt.Sprintf("number of moves (%d in the source, %d in the target)", r.Operation.Moves, other.Operation.Moves)
	case !bytes.Equal(state, theirState):
		return "state"
	case !bytes.Equal(history, theirHistory):
		return "history"
	case !bytes.Equal(payload, theirPayload):
		return "sealed payload"
	}
	return ""
}

// take reads a whole archive.
func take(ctx context.Context, a Archive, batch int, progress func(int)) (Contents, error) {
	var t tally
	records := readAhead(ctx, a, batch)
	defer records.stop()
	for {
		r, err := records.next()
		if err != nil {
			return Contents{}, err
		}
		if r == nil {
			break
		}
		t.record(r)
		progress(t.Operations)
	}
	facts, err := a.Facts(ctx)
	if err != nil {
		return Contents{}, err
	}
	for name, value := range facts {
		t.Facts++
		t.add('f', appendText(nil, name, string(value)))
	}
	usage, err := a.AllUsage(ctx)
	if err != nil {
		return Contents{}, err
	}
	for bucket, used := range usage {
		t.Limits++
		t.add('u', binary.AppendVarint(appendText(nil, bucket), used))
	}
	return t.contents(), nil
}

// verify compares both sides as they are now, each by what it reads back.
func (c *Copy) verify(ctx context.Context, report *CopyReport) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	taken := make(chan error, 2)
	side := func(a Archive, to *Contents, progress func(int)) {
		var err error
		if *to, err = take(ctx, a, c.batch(), progress); err != nil {
			cancel()
		}
		taken <- err
	}
	go side(c.To, &report.Target, func(int) {})
	side(c.From, &report.Source, func(n int) { c.progress(Verifying, n) })
	err, other := <-taken, <-taken
	if err == nil || errors.Is(err, context.Canceled) && other != nil { // the first one has ended the second
		err = other
	}
	if err == nil && report.Source != report.Target {
		err = &CopyError{What: "the copy isn't equal to its source; empty the target (DROP SCHEMA, or DROP DATABASE) and copy again"}
	}
	return err
}
