package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// A Person is who decides, and why. Both go into the history.
type Person struct {
	By     string
	Reason string
	Saw    int // the number of moves (see Operation.Moves) that the person saw; another one now refuses. 0: not compared
}

// A DecisionError is a person's decision that can't be carried out. Nothing was
// changed.
type DecisionError struct {
	OperationID string
	Problem     string
}

func (e *DecisionError) Error() string { return e.OperationID + ": " + e.Problem }

// A Resolution is what a person found out about an operation.
type Resolution string

const (
	// Happened: the provider has it, under an id that the person saw.
	Happened Resolution = "happened"
	// Drop: it didn't happen, and shall not.
	Drop Resolution = "drop"
	// Retry: it didn't happen, and one more attempt may be made.
	Retry Resolution = "retry"
)

// Resolve settles what automation couldn't. attempt is the number of attempts that the
// person saw: if there was another one since, the decision is about something else
// and is refused. Drop and Retry are refused while a request may still be running.
func (l *Ledger) Resolve(ctx context.Context, name string, what Resolution, providerOperationID string, attempt int, who Person) (Operation, error) {
	return l.decision(ctx, name, who, func(op Operation, now time.Time) (Move, error) {
		if op.Attempts != attempt {
			return Move{}, &DecisionError{op.ID, fmt.Sprintf("it has %d attempts by now, and you decided about %d; look at it again", op.Attempts, attempt)}
		}
		if op.Status == Executing && now.Before(op.LeaseUntil) {
			return Move{}, &DecisionError{op.ID, "an attempt is under way until " + op.LeaseUntil.Format(time.RFC3339) + "; look again after that, then decide"}
		}
		switch what {
		case Happened:
			return happened(op, now, providerOperationID, who)
		case Drop:
			if err := l.stillRunning(op, now); err != nil {
				return Move{}, err
			}
			return drop(op, now, who)
		case Retry:
			if err := l.stillRunning(op, now); err != nil {
				return Move{}, err
			}
			return retry(op, now, who)
		default:
			return Move{}, &DecisionError{op.ID, "a resolution is happened, drop or retry"}
		}
	})
}

func happened(op Operation, now time.Time, providerOperationID string, who Person) (Move, error) {
	note := who.note("resolved_happened", map[string]string{"provider_operation_id": providerOperationID})
	switch {
	case providerOperationID == "":
		return Move{}, &DecisionError{op.ID, "say under which id the provider has it"}
	case op.Attempts == 0:
		return Move{}, &DecisionError{op.ID, "it was never attempted, so this operation didn't do it"}
	case op.Status == Succeeded && !op.Review.Open():
		return Move{}, &DecisionError{op.ID, "it has succeeded already"}
	case op.Status == Succeeded:
		return op.Observe(now, note, func(o *Operation) { o.Review = Review{} })
	}
	return op.Succeed(now, Receipt{ProviderOperationID: providerOperationID}, time.Time{}, note)
}

func drop(op Operation, now time.Time, who Person) (Move, error) {
	switch op.Status {
	case Unknown, FailedRetryable:
		return op.Fail(now, CodeDropped, who.note("resolved_dropped", nil))
	case Planned:
		return Move{}, &DecisionError{op.ID, "it waits for approval: deny it instead"}
	case Executing, Succeeded, FailedFinal:
	}
	return Move{}, &DecisionError{op.ID, "it is " + string(op.Status) + ", there is nothing to drop"}
}

func retry(op Operation, now time.Time, who Person) (Move, error) {
	switch op.Status {
	case Unknown, FailedRetryable:
		return op.Observe(now, who.note("resolved_retry", nil), func(o *Operation) {
			o.UnsettledSince = time.Time{}
			o.NextCheckAt = now
			o.Review = Review{}
			o.Scope = "" // the person has seen where it would go now
		})
	case Planned, Executing, Succeeded, FailedFinal:
	}
	return Move{}, &DecisionError{op.ID, "it is " + string(op.Status) + ", there is nothing to retry"}
}

// stillRunning refuses a "no, it didn't" that could come too early.
func (l *Ledger) stillRunning(op Operation, now time.Time) error {
	if op.Attempts == 0 || op.UnsettledSince.IsZero() && op.Status != Executing {
		return nil
	}
	actor, _ := l.actor(op.Action)
	until := op.absenceCounts(actor.Promise)
	if now.Before(until) {
		return &DecisionError{op.ID, "a request may still be running at the provider until " + until.Format(time.RFC3339) + "; look again after that, then decide"}
	}
	return nil
}

// Approve lets a planned operation go: the next call makes the attempt, with the
// arguments that were sealed when it was planned.
func (l *Ledger) Approve(ctx context.Context, name string, who Person) (Operation, error) {
	return l.decision(ctx, name, who, func(op Operation, now time.Time) (Move, error) {
		if err := waits(op, now); err != nil {
			return Move{}, err
		}
		return op.Observe(now, who.note("approved", nil), func(o *Operation) {
			o.Approval.State = Approved
			o.ExpiresAt = now.Add(either(l.Rules[op.Action].ApprovalFor, l.Policy.ApprovalFor))
			if o.Approval.Run {
				o.NextCheckAt = now
			}
		})
	})
}

// Deny ends a planned operation. It never runs.
func (l *Ledger) Deny(ctx context.Context, name string, who Person) (Operation, error) {
	return l.decision(ctx, name, who, func(op Operation, now time.Time) (Move, error) {
		if op.Status != Planned {
			return Move{}, &DecisionError{op.ID, "it is " + string(op.Status) + " and waits for nobody"}
		}
		return op.Fail(now, CodeApprovalDenied, who.note("denied", nil))
	})
}

// AllowRepeat permits one more action with the same name, for a short time and once.
// It is for the "workflow" identity, where only the model names actions: an orchestrator
// raises the revision instead. A planned operation is let go by it. Without
// sameContent a call that repeats the first content to the letter is still taken
// for a late repeat.
func (l *Ledger) AllowRepeat(ctx context.Context, name string, sameContent bool, who Person) (Operation, error) {
	op, err := l.find(ctx, name)
	if err != nil {
		return Operation{}, err
	}
	if op.Status == Planned {
		return l.Approve(ctx, name, who)
	}
	return l.decision(ctx, name, who, func(op Operation, now time.Time) (Move, error) {
		switch {
		case op.BaseKey.IsZero():
			return Move{}, &DecisionError{op.ID, "its orchestrator named it; to do it again, the orchestrator raises the revision or gives another business_operation_id"}
		case !op.Status.Final():
			return Move{}, &DecisionError{op.ID, "it is " + string(op.Status) + "; only what is final can be repeated"}
		case op.Pruned:
			return Move{}, &DecisionError{op.ID, "its details are pruned; use another reference for a new action"}
		}
		if err := l.newestRevision(ctx, op); err != nil {
			return Move{}, err
		}
		evidence := map[string]string{"same_content": fmt.Sprint(sameContent)}
		return op.Observe(now, who.note("repeat_allowed", evidence), func(o *Operation) {
			o.Repeat = Repeat{Until: now.Add(l.Policy.RepeatFor), SameContent: sameContent}
		})
	})
}

// newestRevision refuses a permission on a revision that has been followed by another.
func (l *Ledger) newestRevision(ctx context.Context, op Operation) error {
	newest, err := l.List(ctx, Filter{Revised: op.BaseKey, Newest: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(newest) == 1 && newest[0].ID != op.ID {
		return &DecisionError{op.ID, "it was repeated already; the newest one is " + newest[0].ID}
	}
	return nil
}

// waits reports why an operation doesn't wait for an approval.
func waits(op Operation, now time.Time) error {
	switch {
	case op.Status != Planned:
		return &DecisionError{op.ID, "it is " + string(op.Status) + " and waits for no approval"}
	case op.Approval.State == Approved:
		return &DecisionError{op.ID, "it is approved already"}
	case !now.Before(op.ExpiresAt):
		return &DecisionError{op.ID, "its time to be approved was over at " + op.ExpiresAt.Format(time.RFC3339)}
	}
	return nil
}

// decision finds an operation and carries a person's decision out, compared and set.
// An operation that moved meanwhile is decided about again.
func (l *Ledger) decision(ctx context.Context, name string, who Person, decide func(Operation, time.Time) (Move, error)) (Operation, error) {
	l.init()
	if err := who.check(); err != nil {
		return Operation{}, err
	}
	if l.checkClock(ctx); l.clockOff() {
		return Operation{}, &DecisionError{name, "this machine's clock and the database's differ too much to tell what is over; set the clock first"}
	}
	op, err := l.find(ctx, name)
	if err != nil {
		return Operation{}, err
	}
	if op, err = l.expire(ctx, op); err != nil && !errors.Is(err, ErrStale) {
		return Operation{}, err
	}
	return l.change(ctx, op, func(op Operation) (Move, error) {
		if who.Saw > 0 && op.Moves != who.Saw {
			return Move{}, &DecisionError{op.ID, "it has changed since you looked; look at it again"}
		}
		return decide(op, l.now())
	})
}

func (p Person) note(reason string, facts map[string]string) Note {
	proof := map[string]string{"by": p.By, "reason": p.Reason}
	for name, fact := range facts {
		proof[name] = fact
	}
	return Note{Actor: "person:" + p.By, Reason: reason, Evidence: evidence(proof)}
}

func (p Person) check() error {
	for name, value := range map[string]string{"--by": p.By, "--reason": p.Reason} {
		if len(value) > 512 || strings.ContainsFunc(value, unicode.IsControl) {
			return &DecisionError{"decision", name + " is at most 512 bytes without control characters"}
		}
	}
	if strings.TrimSpace(p.By) == "" {
		return &DecisionError{"decision", "--by says who decides"}
	}
	return nil
}
