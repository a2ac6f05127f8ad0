package ledger

import "time"

// A Policy holds the numbers of the ledger's decisions. The zero value of a field
// means its default.
type Policy struct {
	AnswerWithin time.Duration // how long a call waits for its own result; then it says in_progress. 25 s
	RetryFor     time.Duration // how long after the first call a new attempt may be made. 24 h
	MaxAttempts  int           // requests on the wire, after which a person is asked. 5
	MaxChecks    int           // look-ups in a row that learnt nothing, after which a person is asked. 10
	FirstBackoff time.Duration // doubles with every attempt or look-up. 1 s
	MaxBackoff   time.Duration // 5 min

	ReplayWithin time.Duration // "workflow": how long a changed repeat is still taken for a repeat. 1 h
	AlikeWithin  time.Duration // "workflow": how long another operation's arguments make a new one suspect. 24 h
	RepeatFor    time.Duration // how long a person's permission to repeat is good. 15 min
	ApprovalFor  time.Duration // how long a planned operation waits for a person. 24 h

	ReviewOverdue time.Duration // after which an open review raises its alarm again, and again. 24 h
	SealEvery     time.Duration // how often a checkpoint seals what the audit trail holds. 1 h

	WatchFor   time.Duration // how long an accepted object is watched for a late rejection. 7 days
	FirstWatch time.Duration // when it is looked at first; four times as long each time after. 15 s
}

// Rules are what is laid down for one action type. The zero value asks nobody and limits
// nothing.
type Rules struct {
	Limits        []Limit
	Zone          *time.Location // in which days begin; nil: UTC
	SecondIntent  SecondIntent
	AlikeWithin   time.Duration // how far back a look-alike counts; 0: Policy.AlikeWithin
	ApprovalFor   time.Duration // 0: Policy.ApprovalFor
	RunOnApproval bool          // an approved operation runs at once, not at the next call
	RetryFor      time.Duration // 0: Policy.RetryFor
	AnswerWithin  time.Duration // 0: Policy.AnswerWithin
}

func (r Rules) zone() *time.Location {
	if r.Zone == nil {
		return time.UTC
	}
	return r.Zone
}

// A SecondIntent says what follows when a call under a new key has the critical arguments of
// another operation: it may be a second, real action, or the same one named anew.
type SecondIntent string

const (
	SecondIntentOff     SecondIntent = ""        // nothing; it isn't even looked for
	SecondIntentWarn    SecondIntent = "warn"    // it is recorded, and raises an alarm
	SecondIntentApprove SecondIntent = "approve" // it is recorded, and waits for a person
)

func either(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

func (p Policy) withDefaults() Policy {
	fill := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	fill(&p.AnswerWithin, 25*time.Second)
	fill(&p.RetryFor, 24*time.Hour)
	fill(&p.FirstBackoff, time.Second)
	fill(&p.MaxBackoff, 5*time.Minute)
	fill(&p.ReplayWithin, time.Hour)
	fill(&p.AlikeWithin, 24*time.Hour)
	fill(&p.RepeatFor, 15*time.Minute)
	fill(&p.ApprovalFor, 24*time.Hour)
	fill(&p.ReviewOverdue, 24*time.Hour)
	fill(&p.SealEvery, time.Hour)
	fill(&p.WatchFor, 7*24*time.Hour)
	fill(&p.FirstWatch, 15*time.Second)
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 5
	}
	if p.MaxChecks == 0 {
		p.MaxChecks = 10
	}
	return p
}

// backoff is the pause after the n-th try, n from 1.
func (p Policy) backoff(n int, wish time.Duration) time.Duration {
	pause := p.FirstBackoff
	for i := 1; i < n && pause < p.MaxBackoff; i++ {
		pause *= 2
	}
	return max(min(pause, p.MaxBackoff), wish)
}
