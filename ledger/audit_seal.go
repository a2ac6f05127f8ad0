package ledger

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A chain proves one operation and can't prove that there are no fewer of them. So
// checkpoints seal the heads of all chains, an hour of operations (or several) at a time, and
// each checkpoint holds the one before. Writers aren't serialised by it: a checkpoint is
// made from what they have written.
const (
	sealHour   = time.Hour
	sealMargin = 5 * time.Minute // a write that began before an hour's end is committed by then, or never
	sealPage   = 500
)

// A Checkpoint seals the operations whose ids were made in a span of time.
type Checkpoint struct {
	Number     int       `json:"number"`
	From       time.Time `json:"from"`
	Until      time.Time `json:"until"`
	Operations int       `json:"operations"`
	Heads      string    `json:"heads"`    // the MACs of all heads, combined
	Previous   string    `json:"previous"` // the Proof of the one before
	Proof      string    `json:"proof"`    // a MAC over all of this
}

func checkpointName(n int) string { return "checkpoint:" + strconv.Itoa(n) }

func (a *Auditor) prove(c Checkpoint) string {
	b := appendNumbers(nil, c.Number, c.Operations)
	b = appendTime(appendTime(b, c.From), c.Until)
	sum := a.secret.Hash("checkpoint", appendText(b, c.Heads, c.Previous))
	return hex.EncodeToString(sum[:])
}

// idHour is the end of the hour in which an operation's id was made: the time at which its
// head is sealed.
func idHour(id string) (time.Time, bool) {
	digits := strings.ReplaceAll(strings.TrimPrefix(id, "op_"), "-", "")
	if len(digits) != 32 {
		return time.Time{}, false
	}
	raw, err := hex.DecodeString(digits[:16])
	if err != nil || raw[6]>>4 != 7 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(raw) >> 16)).UTC().Truncate(sealHour).Add(sealHour), true
}

// idAt is where the ids made from a time on begin.
func idAt(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	ms := t.UnixMilli()
	return fmt.Sprintf("op_%08x-%04x", ms>>16, ms&0xffff)
}

// sealedHead is an operation's head as its checkpoint has it: after the last line of the hour
// in which its id was made, or the first line at all. A tombstone remembers it. The times of a history
// never go back (see step), so the newest one tells whether there are later lines.
func (a *Auditor) sealedHead(op Operation, history []Transition) []byte {
	hour, ok := idHour(op.ID)
	if op.Pruned || !ok || !op.UpdatedAt.After(hour) {
		return op.Chain.head()
	}
	head := make([]byte, half)
	for i, line := range history {
		if i > 0 && line.At.After(hour) {
			break
		}
		head = a.extend(head, op.ID, line)
	}
	return head
}

// A seal combines heads, whatever their order.
type seal struct {
	auditor    *Auditor
	operations int
	heads      Hash
}

func (s *seal) add(id string, head []byte) {
	s.operations++
	sum := s.auditor.secret.Hash("sealed head", appendText(slices.Clone(head), id))
	for i := range sum {
		s.heads[i] ^= sum[i]
	}
}

// each gives an operation and its history, page by page, for a span of ids.
func (l *Ledger) each(ctx context.Context, from, until time.Time, visit func(Operation, func() ([]Transition, error)) error) error {
	f := Filter{FromID: idAt(from), ToID: idAt(until), Limit: sealPage}
	for {
		page, err := l.Store.Find(ctx, f)
		if err != nil {
			return err
		}
		for _, op := range page {
			err := visit(op, func() ([]Transition, error) { return l.Store.History(ctx, op.ID) })
			if err != nil {
				return err
			}
			f.After = op.ID
		}
		if len(page) < sealPage {
			return nil
		}
	}
}

// Seal makes the next checkpoint, if an hour is over that isn't sealed; not while the clocks differ. Several servers may do
// so: the first one's stands.
func (l *Ledger) Seal(ctx context.Context) error {
	l.init()
	if l.clockOff() || time.Duration(l.skew.Load()) > sealMargin/2 {
		return nil // the hour that is over here may not be over for the others
	}
	until := l.now().Add(-sealMargin).Truncate(sealHour)
	last, err := l.lastCheckpoint(ctx)
	if l.Audit == nil || err != nil || !last.Until.Before(until) {
		return err
	}
	s := seal{auditor: l.Audit}
	err = l.each(ctx, last.Until, until, func(op Operation, history func() ([]Transition, error)) error {
		return s.addOperation(op, history)
	})
	if err != nil || s.operations == 0 {
		return err
	}
	next := Checkpoint{
		Number: last.Number + 1, From: last.Until, Until: until,
		Operations: s.operations, Heads: s.heads.String(), Previous: last.Proof,
	}
	next.Proof = l.Audit.prove(next)
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if _, err := l.Store.Remember(ctx, checkpointName(next.Number), text); err != nil {
		return err
	}
	// Whoever can edit the database can also take its last checkpoints away. The log can be
	// somewhere else.
	l.Log.Info("audit checkpoint", "number", next.Number, "until", next.Until, "operations", next.Operations, "proof", next.Proof)
	return nil
}

func (s *seal) addOperation(op Operation, history func() ([]Transition, error)) error {
	var lines []Transition
	if hour, ok := idHour(op.ID); ok && op.UpdatedAt.After(hour) && !op.Pruned {
		var err error
		if lines, err = history(); err != nil {
			return err
		}
	}
	s.add(op.ID, s.auditor.sealedHead(op, lines))
	return nil
}

// lastCheckpoint is the newest one, or the zero Checkpoint.
func (l *Ledger) lastCheckpoint(ctx context.Context) (last Checkpoint, err error) {
	l.sealing.Lock()
	defer l.sealing.Unlock()
	for {
		c, err := l.checkpoint(ctx, l.sealed.Number+1)
		if err != nil || c.Number == 0 {
			return l.sealed, err
		}
		l.sealed = c
		from := idAt(c.Until)
		l.newFrom.Store(&from)
	}
}

// id makes an operation's id. It is never of a span of time that is sealed, not even when a clock
// was set back.
func (l *Ledger) id() string {
	id := l.NewID()
	if from := l.newFrom.Load(); from != nil && id < *from && len(id) > len(*from) {
		return *from + id[len(*from):]
	}
	return id
}

// errCheckpoint is a checkpoint that can't be read.
var errCheckpoint = errors.New("ledger: a checkpoint of the audit trail can't be read; run onceward audit verify")

// checkpoint reads the n-th one; its Number is 0 where there is none.
func (l *Ledger) checkpoint(ctx context.Context, n int) (c Checkpoint, err error) {
	text, err := l.Store.Recall(ctx, checkpointName(n))
	if err != nil || text == nil {
		return Checkpoint{}, err
	}
	if err := json.Unmarshal(text, &c); err != nil || c.Number != n {
		return Checkpoint{}, errCheckpoint
	}
	return c, nil
}
