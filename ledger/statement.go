package ledger

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Statement is what a bank or a provider lists by itself: an account statement, a
// register. A person brings it where nobody can be asked. It proves that something
// happened; that nothing did, it proves only of closed days.
type Statement struct {
	Digest  string // names the file in the history: its SHA-256, hexadecimal
	Entries []StatementEntry
	Covered Coverage
	// Amounts reads, by action type, the amount that was ordered. Operations of
	// action types that aren't in it are left alone.
	Amounts map[string]AmountOf
}

// AmountOf reads an amount, in the currency's minor units, from sealed arguments.
type AmountOf func(Payload) (minor int64, currency string, err error)

// A StatementEntry is one line of a [Statement]. Nothing of it is kept but ID and
// Booked.
type StatementEntry struct {
	References []string  // compared exactly with an operation's names
	ID         string    // how the bank names the entry
	Minor      int64     // in the currency's minor units
	Currency   string    // ISO 4217; empty: the entry doesn't tell its own amount
	Booked     time.Time // a day, midnight UTC; zero: not told
	Pending    bool      // announced and not booked: it proves nothing
	Reversed   bool      // money came back: a reversal, a return, a credit
}

// Coverage says what may be concluded from an entry's absence. Its zero value: nothing.
type Coverage struct {
	// From and Through are the first and the last day, midnight UTC, of which the
	// statement lists everything. Through is closed: nothing is booked on it any more.
	From, Through time.Time
	// Margin is how long after its request an effect may still be booked: two days
	// if zero.
	Margin time.Duration
	// Shows reports whether an operation's effect would stand in this statement: it
	// is that of the account that pays. Nil shows none, so nothing is absent.
	Shows func(Operation, Payload) bool
}

const (
	bookingMargin = 2 * day
	day           = 24 * time.Hour
	statementPage = 500
)

// A StatementFinding says what a statement made of an operation.
type StatementFinding string

// What a statement can show.
const (
	// Presence: one entry, booked, of the same amount. The operation has succeeded.
	Presence StatementFinding = "succeeded"
	// Conflict: what the statement shows can't be. A review is open, and there was an alarm.
	Conflict StatementFinding = "contradiction"
	// Absence: proven. One new attempt may be made, and the next sweep makes it.
	Absence StatementFinding = "absent"
	// Unchanged: the statement proves nothing about it, or nothing new.
	Unchanged StatementFinding = "unchanged"
)

// A StatementOutcome is what became of one operation. It holds no personal data.
type StatementOutcome struct {
	Operation Operation // as it is now
	Finding   StatementFinding
	// Why, for Conflict: "other_amount", "two_entries", "reversed", "booked_too_early".
	// For Unchanged: "not_covered"; "pending"; "look_alike" (an entry that nobody's
	// reference explains has its amount, or a reference is almost its own);
	// "amount_missing"; "payload_unreadable"; "attempt_allowed" and "contradiction_open"
	// (known already); "moved" (somebody else settled it).
	Why    string
	Entry  string    // the bank's id of the entry that decided
	Booked time.Time // and the day it was booked on
}

// ReconcileStatement settles, by a statement that a person brings, the operations whose
// outcome is unknown. An operation's names are its provider keys and the id that its
// provider gave. The same statement can be brought again: that changes nothing more. On
// an error, the outcomes so far are returned with it, and they stand.
func (l *Ledger) ReconcileStatement(ctx context.Context, s Statement, who Person) ([]StatementOutcome, error) {
	l.init()
	if err := errors.Join(who.check(), s.Covered.check(l.now())); err != nil {
		return nil, err
	}
	r := newStatementReader(l, s, who)
	var outcomes []StatementOutcome
	err := r.each(ctx, []Status{Unknown}, func(op Operation) error {
		outcome, err := r.reconcile(ctx, op)
		if err == nil {
			outcomes = append(outcomes, outcome)
		}
		return err
	})
	return outcomes, err
}

func (c Coverage) check(now time.Time) error {
	const earliestZone = 14 * time.Hour // UTC+14: nowhere is a day over sooner
	switch {
	case c.Through.IsZero():
		return nil
	case c.Through.Before(c.From):
		return &DecisionError{"statement", "its last closed day is before its first"}
	case now.Before(c.Through.Add(day - earliestZone)):
		return &DecisionError{"statement", "it can't be closed through " + c.Through.Format(time.DateOnly) + ": that day isn't over"}
	}
	return nil
}

// A statementReader holds a statement so that operations find themselves in it.
type statementReader struct {
	ledger  *Ledger
	s       Statement
	who     Person
	exactly map[string][]int // entries by reference
	loosely map[string][]int // by reference as a careless bank might print it
	amounts map[amount][]int
	owned   map[int]bool // entries that bear some operation's name; nil until needed
}

type amount struct {
	minor    int64
	currency string
}

func newStatementReader(l *Ledger, s Statement, who Person) *statementReader {
	r := &statementReader{ledger: l, s: s, who: who, exactly: map[string][]int{}, loosely: map[string][]int{}, amounts: map[amount][]int{}}
	if r.s.Covered.Margin == 0 {
		r.s.Covered.Margin = bookingMargin
	}
	for i, e := range s.Entries {
		for _, reference := range e.References {
			r.exactly[reference] = append(r.exactly[reference], i)
			r.loosely[loose(reference)] = append(r.loosely[loose(reference)], i)
		}
		told := amount{e.Minor, e.Currency}
		if e.Currency == "" {
			told = amount{}
		}
		r.amounts[told] = append(r.amounts[told], i)
	}
	return r
}

// each reads the operations that the statement may be about.
func (r *statementReader) each(ctx context.Context, statuses []Status, do func(Operation) error) error {
	for _, action := range slices.Sorted(maps.Keys(r.s.Amounts)) {
		filter := Filter{Action: action, Statuses: statuses, Limit: statementPage}
		for {
			found, err := r.ledger.List(ctx, filter)
			if err != nil {
				return err
			}
			for _, op := range found {
				if err := do(op); err != nil {
					return err
				}
			}
			if len(found) == 0 {
				break
			}
			filter.After = found[len(found)-1].ID
		}
	}
	return nil
}

func (r *statementReader) reconcile(ctx context.Context, op Operation) (StatementOutcome, error) {
	payload, err := r.ledger.payload(ctx, op, nil)
	if err != nil && !errors.Is(err, ErrSealed) {
		return StatementOutcome{}, unavailable(err)
	}
	var ordered amount
	if err == nil {
		ordered.minor, ordered.currency, err = r.s.Amounts[op.Action](payload)
	}
	readable := err == nil
	shown := readable && r.s.Covered.Shows != nil && r.s.Covered.Shows(op, payload)
	if shown && len(r.suspects(ordered)) > 0 {
		if err := r.own(ctx); err != nil {
			return StatementOutcome{}, err
		}
	}
	var outcome StatementOutcome
	op, err = r.ledger.change(ctx, op, func(op Operation) (Move, error) {
		outcome = StatementOutcome{Finding: Unchanged, Why: "payload_unreadable"}
		if op.Status != Unknown {
			outcome.Why = "moved"
		} else if readable {
			outcome = r.judge(op, ordered, shown)
		}
		return r.move(op, outcome)
	})
	if err != nil {
		return StatementOutcome{}, err
	}
	if outcome.Finding == Conflict {
		r.ledger.alarm(ctx, ReviewContradiction, op)
	}
	outcome.Operation = op
	return outcome, nil
}

// own finds out which entries belong to operations of this ledger, whatever their
// status: such an entry is nobody else's lost effect.
func (r *statementReader) own(ctx context.Context) error {
	if r.owned != nil {
		return nil
	}
	r.owned = map[int]bool{}
	return r.each(ctx, nil, func(op Operation) error {
		for _, name := range op.names() {
			for _, i := range r.exactly[name] {
				r.owned[i] = true
			}
		}
		return nil
	})
}

// names are how the outside world may know an operation: its provider keys of all
// generations, as they are and as a UUID, and the id that the provider gave.
func (op Operation) names() []string {
	var names []string
	for g := range op.Generation + 1 {
		k := ProviderKey(op.Key, g)
		names = append(names, k, k[:8]+"-"+k[8:12]+"-"+k[12:16]+"-"+k[16:20]+"-"+k[20:])
	}
	if op.ProviderOperationID != "" {
		names = append(names, op.ProviderOperationID)
	}
	return names
}

// loose is what stays of a reference where a bank changes case or drops separators.
func loose(reference string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '-' {
			return -1
		}
		return unicode.ToLower(c)
	}, reference)
}

// bearing returns the entries, without repetition, that bear one of an operation's names.
func bearing(index map[string][]int, names []string) []int {
	var found []int
	for _, name := range names {
		found = append(found, index[name]...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// judge says what the statement shows about an operation. It is pure, and asked again
// when the operation has moved.
func (r *statementReader) judge(op Operation, ordered amount, shown bool) StatementOutcome {
	entries, names := r.s.Entries, op.names()
	pending := func(i int) bool { return entries[i].Pending }
	named := bearing(r.exactly, names)
	for i := range names {
		names[i] = loose(names[i])
	}
	near := bearing(r.loosely, names) // what is named exactly is among these
	booked := slices.DeleteFunc(slices.Clone(named), pending)
	nearBooked := slices.DeleteFunc(slices.Clone(near), pending)

	unchanged := func(why string) StatementOutcome { return StatementOutcome{Finding: Unchanged, Why: why} }
	if op.Review.Open() && op.Review.Reason == ReviewContradiction {
		return unchanged("contradiction_open")
	}
	if len(booked) > 0 {
		e := entries[booked[0]]
		seen := StatementOutcome{Finding: Presence, Entry: e.id(), Booked: e.Booked}
		conflict := func(why string) StatementOutcome {
			seen.Finding, seen.Why = Conflict, why
			return seen
		}
		switch {
		case slices.ContainsFunc(nearBooked, func(i int) bool { return entries[i].Reversed }):
			return conflict("reversed")
		case len(nearBooked) > 1:
			return conflict("two_entries")
		case !e.Booked.IsZero() && e.Booked.Before(dayOf(op.CreatedAt).Add(-day)):
			return conflict("booked_too_early")
		case e.Currency == "":
			return unchanged("amount_missing")
		case e.Minor != ordered.minor || e.Currency != ordered.currency:
			return conflict("other_amount")
		}
		return seen
	}
	actor, served := r.ledger.actor(op.Action) // where nobody serves it, nobody knows how long a request may run
	switch {
	case len(named) > 0:
		return unchanged("pending")
	case op.UnsettledSince.IsZero():
		return unchanged("attempt_allowed")
	case len(near) > 0:
		return unchanged("look_alike")
	case !shown || !served || !r.s.Covered.closed(op, actor.Promise):
		return unchanged("not_covered")
	case r.looksAlike(op, ordered):
		return unchanged("look_alike")
	}
	return StatementOutcome{Finding: Absence}
}

// closed reports whether every day is covered on which the operation's effect could be
// booked: from the day before the first request, because the bank's day isn't ours,
// through a day that began when nothing could be under way any more and the margin
// for booking was over.
func (c Coverage) closed(op Operation, p Promise) bool {
	if c.From.IsZero() || c.Through.IsZero() {
		return false
	}
	return !c.From.After(dayOf(op.FirstSentAt).Add(-day)) && !c.Through.Before(op.absenceCounts(p).Add(c.Margin))
}

// looksAlike reports whether an entry could be the operation's effect under a name that
// isn't told: banks drop and replace references. Entries that bear another operation's
// name, and money that came in, are not.
func (r *statementReader) looksAlike(op Operation, ordered amount) bool {
	return slices.ContainsFunc(r.suspects(ordered), func(i int) bool {
		e := r.s.Entries[i]
		return !r.owned[i] && !e.Reversed && (e.Booked.IsZero() || !e.Booked.Before(dayOf(op.FirstSentAt).Add(-day)))
	})
}

// suspects are the entries that have the amount, or don't tell theirs.
func (r *statementReader) suspects(ordered amount) []int {
	return slices.Concat(r.amounts[ordered], r.amounts[amount{}])
}

// dayOf is midnight UTC.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(day) }

// id is the bank's id of the entry, as far as it can be kept.
func (e StatementEntry) id() string {
	if len(e.ID) > 128 || !utf8.ValidString(e.ID) || strings.ContainsFunc(e.ID, unicode.IsControl) {
		return ""
	}
	return e.ID
}

// move makes of a finding what follows from it.
func (r *statementReader) move(op Operation, found StatementOutcome) (Move, error) {
	now, facts := r.ledger.now(), map[string]string{"statement": r.s.Digest}
	switch found.Finding {
	case Presence:
		facts["entry"] = found.Entry
		if !found.Booked.IsZero() {
			facts["booked"] = found.Booked.Format(time.DateOnly)
		}
		return op.Succeed(now, Receipt{ProviderStatus: "booked", State: Settled}, time.Time{}, r.who.note("found_on_statement", facts))
	case Conflict:
		facts["found"], facts["entry"] = found.Why, found.Entry
		return op.Observe(now, r.who.note("contradiction_on_statement", facts), func(o *Operation) {
			if !o.Review.Open() {
				o.Review.OpenedAt = now
			}
			o.Review.Reason, o.NextCheckAt = ReviewContradiction, time.Time{}
			if o.UnsettledSince.IsZero() {
				o.UnsettledSince = o.FirstSentAt // an attempt that was allowed is allowed no more
			}
		})
	case Absence:
		facts["covered_from"], facts["covered_through"] = r.s.Covered.From.Format(time.DateOnly), r.s.Covered.Through.Format(time.DateOnly)
		return op.Observe(now, r.who.note("absent_on_statement", facts), func(o *Operation) {
			o.UnsettledSince, o.NextCheckAt, o.Review = time.Time{}, now, Review{}
		})
	case Unchanged:
	}
	return Move{}, nil
}
