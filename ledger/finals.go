package ledger

import (
	"sync"
	"time"
)

// A replay of a success needs no database: the last ones are kept for a short time.
// Only successes: they never change into anything else.
const (
	maxFinals = 2048
	finalsAge = 30 * time.Second // a pruned result or a late rejection shows after that
)

// finals are the last successes, in two generations: when the young one is full, it
// becomes the old one.
type finals struct {
	mu         sync.Mutex
	young, old map[Key]final
}

type final struct {
	op    Operation
	until time.Time
}

// get answers a call if it repeats a success that is kept. A call with other critical
// arguments isn't a repeat; the ledger decides about it.
func (fs *finals) get(r *Request, now time.Time) (Answer, bool) {
	if !r.BaseKey.IsZero() {
		return Answer{}, false
	}
	fs.mu.Lock()
	kept, ok := fs.young[r.Key]
	if !ok {
		kept, ok = fs.old[r.Key]
	}
	fs.mu.Unlock()
	if !ok || now.After(kept.until) || kept.op.Fingerprint != r.Digest.Fingerprint {
		return Answer{}, false
	}
	a := answer(kept.op, true)
	d := decider{request: r}
	a.Ignored = d.ignored(kept.op)
	return a, true
}

func (fs *finals) put(op Operation, now time.Time) {
	if op.Status != Succeeded || !op.NextCheckAt.IsZero() || !op.BaseKey.IsZero() {
		return
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.young) >= maxFinals || fs.young == nil {
		fs.young, fs.old = make(map[Key]final), fs.young
	}
	fs.young[op.Key] = final{op, now.Add(finalsAge)}
}
