package ledger

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"time"
)

// An AuditReport is what [Ledger.VerifyAudit] found.
type AuditReport struct {
	Operations  int       // whose history was checked, line by line
	Tombstones  int       // whose history is pruned: their remaining state was checked
	Transitions int       // lines checked
	Checkpoints int       // checked against the operations they seal
	SealedUntil time.Time // operations made after that can be taken away unseen, until the next checkpoint
	LastProof   string    // of the newest checkpoint: compare it with one that was kept elsewhere
	Problems    []AuditProblem
}

// An AuditProblem is something that was changed, removed or put in past this package.
type AuditProblem struct {
	Where string // an operation id, or a checkpoint
	What  string
}

// maxProblems bounds the report: after so many, more of them tell nothing new.
const maxProblems = 1000

// VerifyAudit reads the whole ledger and says what in it was not written by Onceward with this
// secret. Errors mean that it couldn't be read.
// A proof that was kept elsewhere must be one of the checkpoints', if it isn't empty.
func (l *Ledger) VerifyAudit(ctx context.Context, proof string) (AuditReport, error) {
	l.init()
	seen := proof == ""
	v := verification{auditor: l.Audit}
	var last Checkpoint
	for {
		c, err := l.checkpoint(ctx, last.Number+1)
		if errors.Is(err, errCheckpoint) {
			v.problem(checkpointName(last.Number+1), "it can't be read")
			break
		}
		if err != nil {
			return v.report, err
		}
		if c.Number == 0 {
			break
		}
		if err := v.verify(ctx, l, c, last); err != nil {
			return v.report, err
		}
		last = c
		seen = seen || c.Proof == proof
	}
	if !seen {
		v.problem("checkpoints", "none has the proof that was kept elsewhere: the newest ones were taken away, or all were made anew")
	}
	v.report.SealedUntil, v.report.LastProof = last.Until, last.Proof
	err := l.each(ctx, last.Until, time.Time{}, func(op Operation, history func() ([]Transition, error)) error {
		return v.operation(op, history, &seal{auditor: v.auditor})
	})
	return v.report, err
}

type verification struct {
	auditor *Auditor
	report  AuditReport
}

func (v *verification) problem(where, what string, args ...any) {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, AuditProblem{where, fmt.Sprintf(what, args...)})
	}
}

// verify checks a checkpoint, and every operation it seals.
func (v *verification) verify(ctx context.Context, l *Ledger, c, last Checkpoint) error {
	v.report.Checkpoints++
	name := checkpointName(c.Number)
	if c.Proof != v.auditor.prove(c) || c.Previous != last.Proof || !c.From.Equal(last.Until) {
		v.problem(name, "it was changed, or isn't the one that followed")
	}
	s := seal{auditor: v.auditor}
	err := l.each(ctx, c.From, c.Until, func(op Operation, history func() ([]Transition, error)) error {
		return v.operation(op, history, &s)
	})
	if err != nil {
		return err
	}
	switch {
	case s.operations < c.Operations:
		v.problem(name, "it seals %d operations, and %d are there: some were removed", c.Operations, s.operations)
	case s.operations > c.Operations:
		v.problem(name, "it seals %d operations, and %d are there: some were put in", c.Operations, s.operations)
	case s.heads.String() != c.Heads:
		v.problem(name, "an operation that it seals isn't the one that was sealed")
	}
	return nil
}

// operation checks a chain, link by link, and the state it ends in.
func (v *verification) operation(op Operation, history func() ([]Transition, error), s *seal) error {
	if op.Pruned {
		v.report.Tombstones++
		if v.auditor.chain(&op, op.Chain.head()) != op.Chain {
			v.problem(op.ID, "its tombstone was changed")
		}
		s.add(op.ID, op.Chain.head())
		return nil
	}
	v.report.Operations++
	lines, err := history()
	if err != nil {
		return err
	}
	v.report.Transitions += len(lines)
	head := make([]byte, half)
	for _, line := range lines {
		head = v.auditor.extend(head, op.ID, line)
	}
	switch {
	case !hmac.Equal(head, op.Chain.head()):
		v.problem(op.ID, "its history was changed, or a line of it removed or put in")
	case v.auditor.chain(&op, head) != op.Chain:
		v.problem(op.ID, "it was changed outside of its history")
	}
	s.add(op.ID, v.auditor.sealedHead(op, lines))
	return nil
}
