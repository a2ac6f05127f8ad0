package statement

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A period is the days of which a statement lists everything about one account.
// Zero days: unknown.
type period struct {
	account       string
	from, through time.Time
}

const day = 24 * time.Hour

// days are the whole days of a period. A statement can't cover what came after it was
// made, whatever period it says it has.
func (p camtPeriod) days(about, created, headerCreated string) period {
	covered := period{account: about}
	from, fromOK := wallClock(p.From)
	to, toOK := wallClock(p.To)
	made, madeOK := wallClock(first(created, headerCreated))
	if !fromOK || !toOK || !madeOK {
		return covered
	}
	if made.Before(to) {
		to = made
	}
	first := from.Truncate(day)
	if from.After(first) {
		first = first.Add(day)
	}
	last := to.Truncate(day)
	// 23:59 is how many write the end of a day; midnight at the beginning of a day is
	// the end of the one before.
	if to.Sub(last) < 23*time.Hour+59*time.Minute {
		last = last.Add(-day)
	}
	if !last.Before(first) {
		covered.from, covered.through = first, last
	}
	return covered
}

// wallClock is a time as a bank's clock showed it: its days are those of the bank's
// books. ok is false for what isn't a time.
func wallClock(written string) (shown time.Time, ok bool) {
	written = strings.TrimSpace(written)
	if len(written) < len("2006-01-02T15:04:05") {
		return time.Time{}, false
	}
	date, clock := written[:len(time.DateOnly)], written[len(time.DateOnly):len("2006-01-02T15:04:05")]
	next := clock == "T24:00:00"
	if next {
		clock = "T00:00:00"
	}
	shown, err := time.Parse("2006-01-02T15:04:05", date+clock)
	if next {
		shown = shown.Add(day)
	}
	return shown, err == nil
}

// common are the days that every account's statements cover. Statements of one account
// follow each other day by day, or nothing is certain.
func common(periods []period) (from, through time.Time, why string) {
	byAccount := map[string]period{}
	slices.SortFunc(periods, func(a, b period) int {
		return cmp.Or(cmp.Compare(a.account, b.account), a.from.Compare(b.from))
	})
	for _, p := range periods {
		if p.from.IsZero() {
			return time.Time{}, time.Time{}, "no_period"
		}
		known, again := byAccount[p.account]
		switch {
		case !again:
			known = p
		case p.from.After(known.through.Add(day)):
			return time.Time{}, time.Time{}, "gap"
		case p.through.After(known.through):
			known.through = p.through
		}
		byAccount[p.account] = known
	}
	for _, p := range byAccount {
		if p.from.After(from) {
			from = p.from
		}
		if through.IsZero() || p.through.Before(through) {
			through = p.through
		}
	}
	if through.Before(from) {
		return time.Time{}, time.Time{}, "gap"
	}
	return from, through, ""
}
