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

	WatchFor   time.Duration // how long an accepted object is watched for a late rejection. 7 days
	FirstWatch time.Duration // when it is looked at first; four times as long each time after. 15 s
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
