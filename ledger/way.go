package ledger

import "time"

// A way is what automation does about an operation whose outcome is open and that a
// look-up didn't find.
type way struct {
	kind wayKind
	at   time.Time // for lookLater
	why  string    // for askPerson
}

type wayKind int

const (
	leave     wayKind = iota // a person is asked already
	sendAgain                // the same bytes under the same key: the provider promises that this does nothing twice
	startAnew                // nothing happened, so an attempt stands alone
	lookLater
	askPerson
)

// way chooses, by the provider's promise alone. It is pure; what it rests on:
//
//   - Absence counts only from a look-up that began when no request could be under
//     way any more: after the lease, the provider's settle time and its lag.
//   - A key protects a repeat only inside its window, less a margin.
//   - A key under which an error is kept never succeeds; one repeat tells whether it is.
//   - Attempts are bounded and spaced; running out of them is a person's matter, never
//     a failure.
func (p Policy) way(op Operation, actor Actor, asked inquiry, now time.Time) way {
	promise := actor.Promise
	absenceCounts := op.absenceCounts(promise)
	proven := asked.verdict == Absent && promise.ProvesAbsence && !asked.at.Before(absenceCounts)
	mayAttempt := op.Attempts < p.MaxAttempts
	kept := op.keptError(promise)
	repeated := op.FirstSentAt.Before(op.LeaseUntil.Add(-promise.Lease)) // sent before the last claim, too
	repeatable := promise.windowOpen(op, later(now, asked.clock)) && !(kept && repeated)
	due := !now.Before(op.NextCheckAt)
	switch {
	case op.Review.Open():
		return way{kind: leave}
	case proven && kept:
		return way{kind: askPerson, why: ReviewErrorKept}
	case proven && !mayAttempt:
		return way{kind: askPerson, why: ReviewAttemptsUsed}
	case proven && due:
		return way{kind: startAnew}
	case proven:
		return way{kind: lookLater, at: op.NextCheckAt}
	case repeatable && mayAttempt && due:
		return way{kind: sendAgain}
	case repeatable && mayAttempt:
		return way{kind: lookLater, at: op.NextCheckAt}
	case asked.verdict == Absent && asked.at.Before(absenceCounts):
		return way{kind: lookLater, at: absenceCounts} // it may still appear
	case asked.verdict == Unclear && op.Checks < p.MaxChecks:
		return way{kind: lookLater, at: now.Add(p.backoff(op.Checks+1, 0))}
	case kept:
		return way{kind: askPerson, why: ReviewErrorKept}
	case !mayAttempt:
		return way{kind: askPerson, why: ReviewAttemptsUsed}
	default:
		return way{kind: askPerson, why: ReviewUnverifiable}
	}
}

// absenceCounts is when a look-up has to begin, at the earliest, for its "absent" to
// mean that nothing happened and nothing is under way.
func (op Operation) absenceCounts(p Promise) time.Time {
	return op.LeaseUntil.Add(p.Settle + p.LookupLag)
}

// later is the more careful of two clocks, ours and the provider's: its keys age by its own.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// windowOpen reports whether the provider still knows the key.
func (p Promise) windowOpen(op Operation, now time.Time) bool {
	if !p.Idempotent {
		return false
	}
	return p.Window == 0 || now.Before(op.FirstSentAt.Add(p.Window-p.Margin))
}
