package ledger

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
)

// A Record is an operation with all that a ledger keeps of it.
type Record struct {
	Operation Operation
	History   []Transition
	Sealed    []byte // nil: there is none. An open operation has one, be it empty
}

// An Archive is a ledger that can be read whole. Nobody writes to it meanwhile.
type Archive interface {
	// Records returns the operations that were inserted after the one with the given id (from
	// the first one on, if it is empty), in that order: at most limit of them, fewer where they
	// are large, none at the end.
	Records(ctx context.Context, after string, limit int) ([]Record, error)
	// Facts returns everything that is remembered.
	Facts(ctx context.Context) (map[string][]byte, error)
	// AllUsage returns how much is taken of all limits, by bucket.
	AllUsage(ctx context.Context) (map[string]int64, error)
}

// A CopyTarget is the ledger that a copy is written to.
type CopyTarget interface {
	Archive
	// Hold keeps everybody else from writing, also after this process has died, until Release,
	// and writes those facts that aren't there. It changes nothing, and fails with a [*CopyError], if
	// there are not exactly so many operations, which have made so many moves in all.
	Hold(ctx context.Context, operations int, moves int64, facts map[string][]byte) error
	// Append adds operations as they are, all of them or none.
	Append(ctx context.Context, records []Record) error
	// Take writes how much is taken of limits, of which nothing was written before.
	Take(ctx context.Context, usage map[string]int64) error
	// Release lets others write again. Without a Hold it does nothing.
	Release(ctx context.Context) error
}

// A CopyError says what keeps a ledger from being copied.
type CopyError struct {
	Where string // an operation's id, a limit, a fact; empty: the whole
	What  string
}

func (e *CopyError) Error() string {
	if e.Where == "" {
		return e.What
	}
	return e.Where + ": " + e.What
}

// A Copy moves a ledger as it is into another database: operations, also tombstones, their
// histories and sealed payloads, checkpoints, the check of the secret, and what is taken of limits.
// It may be run again after an interruption, and then goes on where it was. The target stays
// held until the copy was found to be equal to the source.
type Copy struct {
	From  Archive
	To    CopyTarget
	Batch int // operations per transaction; 0: 2,000

	// Progress is called now and then with how many operations are done of what is under way.
	Progress func(stage CopyStage, operations int)
}

// A CopyStage is what a [Copy] is doing.
type CopyStage string

const (
	// Comparing reads what an earlier run has copied.
	Comparing CopyStage = "compared"
	// Copying writes.
	Copying CopyStage = "copied"
	// Verifying reads both sides.
	Verifying CopyStage = "verified"
)

// A CopyReport tells what a [Copy] has found on each side.
type CopyReport struct {
	Source, Target Contents
	Copied         int // operations that this run has written
}

// defaultBatch makes transactions few and keeps them short.
const defaultBatch = 2000

// secretCheck is the name under which [CheckSecret] keeps what tells secrets apart.
const secretCheck = "secret_check"

// Run copies what isn't there yet and compares both sides, each by what it reads back. Errors
// that say what is wrong with the ledgers are [*CopyError]; where the target has anything that differs from the
// source, nothing is changed. A difference after copying is a CopyError too, and the report shows it.
func (c *Copy) Run(ctx context.Context) (report CopyReport, err error) {
	facts, usage, err := c.read(ctx)
	if err != nil {
		return report, err
	}
	source := readAhead(ctx, c.From, c.batch())
	defer source.stop()
	there, err := c.compare(ctx, source)
	if err != nil {
		return report, err
	}
	if report.Copied, err = c.write(ctx, source, there, missing{facts, usage}); err != nil {
		return report, err
	}
	if err := c.verify(ctx, &report); err != nil {
		return report, err
	}
	return report, c.To.Release(ctx)
}

func (c *Copy) batch() int {
	if c.Batch > 0 {
		return c.Batch
	}
	return defaultBatch
}

func (c *Copy) progress(stage CopyStage, operations int) {
	if c.Progress != nil {
		c.Progress(stage, operations)
	}
}

// missing is what the target hasn't got, besides operations.
type missing struct {
	facts map[string][]byte
	usage map[string]int64
}

// read reads what is no operation, compares it, and returns what the target hasn't got.
func (c *Copy) read(ctx context.Context) (facts map[string][]byte, usage map[string]int64, err error) {
	if facts, err = c.From.Facts(ctx); err != nil {
		return nil, nil, err
	}
	if facts[secretCheck] == nil {
		return nil, nil, &CopyError{What: "no server has used the source yet, so there is nothing to copy; give the new one to your server as it is"}
	}
	theirs, err := c.To.Facts(ctx)
	if err != nil {
		return nil, nil, err
	}
	if check := theirs[secretCheck]; check != nil && !bytes.Equal(check, facts[secretCheck]) {
		return nil, nil, &CopyError{What: "the target was made with another secret: it is another ledger; name an empty database, or an empty schema by search_path in the URL"}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if value, ok := facts[name]; !ok || !bytes.Equal(value, theirs[name]) {
			return nil, nil, &CopyError{name, "the source doesn't have it, or another one: the target is another ledger, or was served since it was copied"}
		}
		delete(facts, name)
	}
	if usage, err = c.From.AllUsage(ctx); err != nil {
		return nil, nil, err
	}
	taken, err := c.To.AllUsage(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(taken) == 0 {
		return facts, usage, nil
	}
	for _, side := range []map[string]int64{taken, usage} {
		for _, bucket := range slices.Sorted(maps.Keys(side)) {
			theirs, there := taken[bucket]
			ours, here := usage[bucket]
			if there != here || theirs != ours {
				return nil, nil, &CopyError{"limit " + bucket, fmt.Sprintf("%d is taken of it in the source and %d in the target: one of them was served since it was copied", ours, theirs)}
			}
		}
	}
	return facts, nil, nil
}

// extent is how much of the source the target has.
type extent struct {
	operations int
	moves      int64
}

// compare reads what an earlier run has written. Copying keeps the order, so that is how the source
// begins.
func (c *Copy) compare(ctx context.Context, source *reading) (there extent, err error) {
	target := readAhead(ctx, c.To, c.batch())
	defer target.stop()
	for {
		theirs, err := target.next()
		if err != nil || theirs == nil {
			return there, err
		}
		ours, err := source.next()
		switch {
		case err != nil:
			return there, err
		case ours == nil || ours.Operation.ID != theirs.Operation.ID:
			return there, &CopyError{theirs.Operation.ID, "the target has this operation, and the source doesn't have it at this place: the target is another ledger, or was served since it was copied"}
		}
		if what := ours.differsIn(theirs); what != "" {
			return there, &CopyError{theirs.Operation.ID, "the target has this operation with another " + what + ": one of the two was served since it was copied; name an empty target"}
		}
		there.operations++
		there.moves += int64(theirs.Operation.Moves)
		c.progress(Comparing, there.operations)
	}
}

// write writes the rest of the source. Where there is none, the target isn't held: it may be served
// already.
func (c *Copy) write(ctx context.Context, source *reading, there extent, m missing) (copied int, err error) {
	batch, err := source.rest()
	if err != nil || len(batch) == 0 && len(m.facts) == 0 && len(m.usage) == 0 {
		return 0, err
	}
	if err := c.To.Hold(ctx, there.operations, there.moves, m.facts); err != nil {
		return 0, err
	}
	for ; len(batch) > 0 && err == nil; batch, err = source.rest() {
		for i := range batch {
			if what := batch[i].problem(); what != "" {
				return copied, &CopyError{batch[i].Operation.ID, "the source is damaged: " + what}
			}
		}
		if err := c.To.Append(ctx, batch); err != nil {
			return copied, err
		}
		copied += len(batch)
		c.progress(Copying, there.operations+copied)
	}
	if err != nil || len(m.usage) == 0 {
		return copied, err
	}
	return copied, c.To.Take(ctx, m.usage)
}
