package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// A Fill is how full one limit is for one run, workflow, tenant or day.
type Fill struct {
	Action  string
	Limit   Limit
	Tenant  string
	Of      string // the run's, workflow's or day's name
	Used    int64
	FreesAt time.Time // zero: it doesn't with time
}

// Fills returns how full the limits are that have something taken of them, fullest first. What a
// past day took is left out. Of very many runs and workflows only those that took most are seen.
func (l *Ledger) Fills(ctx context.Context) ([]Fill, error) {
	l.init()
	used, err := l.Store.Usage(ctx, nil)
	if err != nil {
		return nil, unavailable(err)
	}
	var fills []Fill
	for bucket, n := range used {
		var name [6]string
		if n == 0 || json.Unmarshal([]byte(bucket), &name) != nil {
			continue
		}
		rules := l.Rules[name[0]]
		for _, limit := range rules.Limits {
			if string(limit.Scope) != name[1] || limit.Currency != name[5] {
				continue
			}
			f := Fill{Action: name[0], Limit: limit, Tenant: name[2], Of: strings.TrimPrefix(name[3], "run:"), Used: n}
			if name[4] != "" {
				if name[4] != l.now().In(rules.zone()).Format(time.DateOnly) {
					continue
				}
				f.Of, f.FreesAt = name[4], rules.midnight(l.now())
			}
			fills = append(fills, f)
		}
	}
	slices.SortFunc(fills, func(a, b Fill) int {
		return cmp.Or(cmp.Compare(b.share(), a.share()), strings.Compare(a.Action, b.Action), strings.Compare(a.Of, b.Of), strings.Compare(a.Limit.String(), b.Limit.String()))
	})
	return fills, nil
}

// share is how full it is, from 0.
func (f Fill) share() float64 { return float64(f.Used) / float64(max(f.Limit.Max, 1)) }

// midnight is when the day ends.
func (r Rules) midnight(now time.Time) time.Time {
	y, m, d := now.In(r.zone()).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, r.zone())
}

// Held is how many outcomes wait to be recorded, because the ledger couldn't be written.
func (l *Ledger) Held() int {
	l.held.mu.Lock()
	defer l.held.mu.Unlock()
	return len(l.held.outcomes)
}
