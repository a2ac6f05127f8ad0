package ledger

import (
	"testing"
	"time"
)

// The table of what automation does about an open outcome, written by hand from what each
// provider promises: no row may act twice, and none may give up what could be known.
func TestWay(t *testing.T) {
	t.Parallel()
	const (
		leaseEnd = 100 * time.Second // since the claim
		settles  = 20 * time.Second
		lags     = 5 * time.Second
		window   = 1000 * time.Second
		margin   = 100 * time.Second
		counts   = leaseEnd + settles + lags // absence counts from here
		closes   = window - margin           // the key is trusted until here
		most     = 3                         // attempts
		checks   = 2                         // look-ups in vain
	)
	begin := time.Unix(1_000_000, 0).UTC()
	type can struct{ key, forever, proves, keepsErrors bool }
	var (
		both    = can{key: true, proves: true}
		key     = can{key: true}
		ask     = can{proves: true}
		hint    = can{} // it can be asked, and absence proves nothing
		nothing = can{}
		keeper  = can{key: true, proves: true, keepsErrors: true}
		keeping = can{key: true, keepsErrors: true}
	)
	const (
		none    = Verdict("")
		earlier = -time.Nanosecond
	)
	for name, c := range map[string]struct {
		can      can
		verdict  Verdict
		asked    time.Duration // when the look-up began
		now      time.Duration
		attempts int
		onlySent bool // the attempts before the last were not sent
		checks   int
		clock    time.Duration // the provider's; 0: it didn't tell
		due      time.Duration // NextCheckAt; 0: not set
		code     string
		review   bool
		want     wayKind
		at       time.Duration
		why      string
	}{
		"a person is asked already":      {can: both, verdict: Absent, asked: counts, now: counts, attempts: 1, review: true, want: leave},
		"also if the key could be used":  {can: key, now: 10 * time.Second, attempts: 1, review: true, want: leave},
		"absent at last":                 {can: ask, verdict: Absent, asked: counts, now: counts, attempts: 1, want: startAnew},
		"absent at last, with a key":     {can: both, verdict: Absent, asked: counts, now: counts, attempts: 1, want: startAnew},
		"absent a moment too early":      {can: ask, verdict: Absent, asked: counts + earlier, now: counts + earlier, attempts: 1, want: lookLater, at: counts},
		"asked too early, answered late": {can: ask, verdict: Absent, asked: counts + earlier, now: counts, attempts: 1, want: lookLater, at: counts},
		"absent, but not due":            {can: ask, verdict: Absent, asked: counts, now: counts, attempts: 2, due: counts + time.Second, want: lookLater, at: counts + time.Second},
		"absent, attempts used up":       {can: ask, verdict: Absent, asked: counts, now: counts, attempts: most, want: askPerson, why: ReviewAttemptsUsed},
		"absent, one attempt left":       {can: ask, verdict: Absent, asked: counts, now: counts, attempts: most - 1, want: startAnew},
		"absent, an error is kept":       {can: keeper, verdict: Absent, asked: counts, now: counts, attempts: 2, code: CodeServerError, want: askPerson, why: ReviewErrorKept},
		"absent, no error of that kind":  {can: keeper, verdict: Absent, asked: counts, now: counts, attempts: 2, code: "timeout", want: startAnew},

		"absence that proves nothing":            {can: hint, verdict: Absent, asked: counts, now: counts, attempts: 1, want: askPerson, why: ReviewUnverifiable},
		"absence that may yet become found":      {can: hint, verdict: Absent, asked: leaseEnd, now: leaseEnd, attempts: 1, want: lookLater, at: counts},
		"nobody to ask, no key":                  {can: nothing, now: 10 * time.Second, attempts: 1, want: askPerson, why: ReviewUnverifiable},
		"nobody to ask, no key, used up":         {can: nothing, now: 10 * time.Second, attempts: most, want: askPerson, why: ReviewAttemptsUsed},
		"a look-up in vain":                      {can: ask, verdict: Unclear, asked: 10 * time.Second, now: 12 * time.Second, attempts: 1, want: lookLater, at: 13 * time.Second},
		"a second one in vain":                   {can: ask, verdict: Unclear, asked: 10 * time.Second, now: 12 * time.Second, attempts: 1, checks: 1, want: lookLater, at: 14 * time.Second},
		"look-ups in vain are used up":           {can: ask, verdict: Unclear, asked: counts, now: counts, attempts: 1, checks: checks, want: askPerson, why: ReviewUnverifiable},
		"in vain, and attempts are used up":      {can: ask, verdict: Unclear, asked: counts, now: counts, attempts: most, checks: checks, want: askPerson, why: ReviewAttemptsUsed},
		"in vain is never absence, however late": {can: ask, verdict: Unclear, asked: 10 * counts, now: 10 * counts, attempts: 1, checks: checks, want: askPerson, why: ReviewUnverifiable},

		"a key in its window":                 {can: key, now: 10 * time.Second, attempts: 1, want: sendAgain},
		"a key, a look-up that found nothing": {can: both, verdict: Absent, asked: 10 * time.Second, now: 10 * time.Second, attempts: 1, want: sendAgain},
		"a key, a look-up in vain":            {can: both, verdict: Unclear, asked: 10 * time.Second, now: 10 * time.Second, attempts: 1, want: sendAgain},
		"a key, but not due":                  {can: key, now: 10 * time.Second, attempts: 2, due: 11 * time.Second, want: lookLater, at: 11 * time.Second},
		"a key, due to the moment":            {can: key, now: 11 * time.Second, attempts: 2, due: 11 * time.Second, want: sendAgain},
		"a key a moment before its end":       {can: key, now: closes + earlier, attempts: 1, want: sendAgain},
		"a key at its end":                    {can: key, now: closes, attempts: 1, want: askPerson, why: ReviewUnverifiable},
		"a key that is never forgotten":       {can: can{key: true, forever: true}, now: 100 * window, attempts: 1, want: sendAgain},
		"a key that is older at the provider": {can: both, verdict: Absent, asked: 10 * time.Second, now: 10 * time.Second, attempts: 1, clock: closes, want: lookLater, at: counts},
		"a provider's clock that is behind":   {can: both, verdict: Absent, asked: 10 * time.Second, now: 10 * time.Second, attempts: 1, clock: -time.Hour, want: sendAgain},
		"a key, attempts used up":             {can: key, now: 10 * time.Second, attempts: most, want: askPerson, why: ReviewAttemptsUsed},
		"a key at its end, absent":            {can: both, verdict: Absent, asked: closes, now: closes, attempts: 1, want: startAnew},
		"a key at its end, asked in vain":     {can: both, verdict: Unclear, asked: closes, now: closes, attempts: 1, want: lookLater, at: closes + time.Second},
		"used up, but it may yet be found":    {can: both, verdict: Absent, asked: leaseEnd, now: leaseEnd, attempts: most, want: lookLater, at: counts},

		"an error that may be kept is tried once": {can: keeping, now: 10 * time.Second, attempts: 1, code: CodeServerError, want: sendAgain},
		"an error that is kept":                   {can: keeping, now: 10 * time.Second, attempts: 2, code: CodeServerError, want: askPerson, why: ReviewErrorKept},
		"an error that nobody keeps":              {can: key, now: 10 * time.Second, attempts: 2, code: CodeServerError, want: sendAgain},
		"an error of the only attempt sent":       {can: keeping, now: 10 * time.Second, attempts: 2, onlySent: true, code: CodeServerError, want: sendAgain},
		"a kept error, asked too early":           {can: keeper, verdict: Absent, asked: leaseEnd, now: leaseEnd, attempts: 2, code: CodeServerError, want: lookLater, at: counts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := Policy{MaxAttempts: most, MaxChecks: checks, FirstBackoff: time.Second}.withDefaults()
			op := Operation{
				Status: Unknown, Attempts: c.attempts, Checks: c.checks, ErrorCode: c.code,
				FirstSentAt: begin, UnsettledSince: begin, LeaseUntil: begin.Add(leaseEnd),
			}
			if c.attempts > 1 && !c.onlySent {
				op.FirstSentAt = begin.Add(-time.Second) // of an attempt before the last
			}
			if c.due != 0 {
				op.NextCheckAt = begin.Add(c.due)
			}
			if c.review {
				op.Review = Review{OpenedAt: begin, Reason: ReviewUnverifiable}
			}
			actor := Actor{Promise: Promise{
				Lease: leaseEnd, Settle: settles, LookupLag: lags, Window: window, Margin: margin,
				Idempotent: c.can.key, ProvesAbsence: c.can.proves, CachesErrors: c.can.keepsErrors,
			}}
			if c.can.forever {
				actor.Promise.Window = 0
			}
			want := way{kind: c.want, why: c.why}
			if c.at != 0 {
				want.at = begin.Add(c.at)
			}
			asked := inquiry{at: begin.Add(c.asked), verdict: c.verdict}
			if c.clock != 0 {
				asked.clock = begin.Add(c.clock)
			}
			if got := policy.way(op, actor, asked, begin.Add(c.now)); got != want {
				t.Errorf("way = %+v, want %+v", got, want)
			}
		})
	}
}
