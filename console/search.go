package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/onceward/onceward/ledger"
)

// How operations are read, so that a page costs the same with thousands of them and with
// millions: from a place on, never by counting, and never past a bound of time.
const (
	perPage   = 50
	searchFor = 2 * time.Second // then the page shows what there is, and where to go on
	queryFor  = 5 * time.Second // one question to the database
	firstSpan = time.Minute
	lastSpan  = 10 * 365 * 24 * time.Hour

	// endOfIDs is after every id, in whatever order a database sorts text: a range that is
	// open to one side would be looked for in the whole table.
	endOfIDs = "op_g"
)

// A search is what somebody looks for.
type search struct {
	filter     ledger.Filter
	since      time.Time // created from then on; zero: from ever
	at         place
	indexed    bool // the database has a short way to what matches
	everything bool
}

// A place is where a page begins: after an operation, among those created in a span of time.
// Ids of several servers come into the ledger a little out of order, so the rest of the span that
// an operation was found in is read to its end before the next one is.
type place struct {
	after string
	until time.Time     // the span's end; zero: it has none
	down  time.Time     // the span's beginning, where there is an operation to go on after; zero: it has none
	span  time.Duration // how long spans were by then
}

func (p place) query() url.Values {
	v := url.Values{}
	if p.after != "" {
		v.Set("after", p.after)
	}
	for name, t := range map[string]time.Time{"before": p.until, "down": p.down} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if p.span > 0 {
		v.Set("span", p.span.String())
	}
	return v
}

// A result is one page, newest first.
type result struct {
	Found   []ledger.Operation
	next    *place    // where the next page begins; nil: there is none
	Reached time.Time // set where the search was cut short: what was created before isn't looked at yet
}

// idFrom is the least id that can have been made at a time: ids are UUIDv7, which begin with
// the milliseconds since 1970.
func idFrom(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	digits := fmt.Sprintf("%012x", max(t.UnixMilli(), 0))
	return "op_" + digits[:8] + "-" + digits[8:]
}

// find reads one page. Where the database has no short way to what matches, it goes back in
// time by spans that grow, and stops when its time is over.
func (c *Console) find(ctx context.Context, q search) (result, error) {
	f := q.filter
	f.Newest = true
	if q.indexed || q.everything {
		f.FromID, f.ToID, f.After, f.Limit = idFrom(q.since), idFrom(q.at.until), q.at.after, perPage+1
		found, err := c.list(ctx, f)
		return cut(found, place{until: q.at.until}), err
	}
	oldest, err := c.list(ctx, ledger.Filter{Limit: 1})
	if err != nil || len(oldest) == 0 {
		return result{}, err
	}
	floor := oldest[0].CreatedAt.Add(-time.Minute) // ids may have been made a moment before
	if q.since.After(floor) {
		floor = q.since
	}
	begun, at := c.o.Now(), q.at
	at.span = min(max(at.span, firstSpan), lastSpan)
	var all []ledger.Operation
	for {
		if at.after == "" {
			at.down = at.end(c.o.Now()).Add(-at.span)
		}
		if at.down.Before(floor) {
			at.down = q.since // zero: nothing is left out
		}
		f.FromID, f.ToID, f.After, f.Limit = idFrom(at.down), endOfIDs, at.after, perPage+1-len(all)
		if !at.until.IsZero() {
			f.ToID = idFrom(at.until)
		}
		asked := c.o.Now()
		found, err := c.list(ctx, f)
		if errors.Is(err, errTooLong) && at.until != q.at.until { // what was found stands; the rest takes shorter spans
			return result{Found: all, next: &place{until: at.until, span: max(at.span/8, firstSpan)}, Reached: at.until}, nil
		}
		if err != nil {
			return result{}, err
		}
		all = append(all, found...)
		if len(all) > perPage {
			return cut(all, at), nil
		}
		if at.down.Equal(q.since) {
			return result{Found: all}, nil
		}
		at = at.before(c.o.Now().Sub(asked))
		if c.o.Now().Sub(begun) >= searchFor {
			return result{Found: all, next: &at, Reached: at.until}, nil
		}
	}
}

// end is where a place's span ends.
func (p place) end(now time.Time) time.Time {
	if p.until.IsZero() {
		return now
	}
	return p.until
}

// before is the span before this one. The less time this one took to look at, the longer it is.
func (p place) before(took time.Duration) place {
	next := place{until: p.down, span: p.span}
	switch {
	case took < searchFor/8:
		next.span = min(2*p.span, lastSpan)
	case took > searchFor/2:
		next.span = max(p.span/2, firstSpan)
	}
	return next
}

// cut makes a page of what was found: one more than fits says that there is a next one, in
// the span where the last one was found.
func cut(found []ledger.Operation, next place) result {
	if len(found) <= perPage {
		return result{Found: found}
	}
	next.after = found[perPage-1].ID
	return result{Found: found[:perPage], next: &next}
}

var errTooLong = &failure{http.StatusServiceUnavailable, "This search takes too long", "Narrow it: by workflow, by a status that is still open, or by the days it is about."}

// list asks the ledger one question, for a bounded time.
func (c *Console) list(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	bounded, cancel := context.WithTimeout(ctx, queryFor)
	defer cancel()
	found, err := c.o.Ledger.List(bounded, f)
	if err != nil && errors.Is(bounded.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, errTooLong
	}
	return found, err
}
