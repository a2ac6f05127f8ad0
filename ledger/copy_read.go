package ledger

import "context"

// A reading goes through an archive, and reads ahead while what it has read is used.
type reading struct {
	pages chan page
	end   context.CancelFunc
	page  []Record
	err   error
	ended bool
}

type page struct {
	records []Record
	err     error
}

// readAhead begins to read. stop ends it.
func readAhead(ctx context.Context, a Archive, limit int) *reading {
	ctx, cancel := context.WithCancel(ctx)
	r := &reading{pages: make(chan page), end: cancel}
	go func() {
		defer close(r.pages)
		after := ""
		for {
			records, err := a.Records(ctx, after, limit)
			select {
			case r.pages <- page{records, err}:
			case <-ctx.Done():
				return
			}
			if err != nil || len(records) == 0 {
				return
			}
			after = records[len(records)-1].Operation.ID
		}
	}()
	return r
}

// stop returns when the archive isn't read any more.
func (r *reading) stop() {
	r.end()
	for range r.pages { //nolint:revive // what was read ahead is of no use
	}
}

// next is the next record, nil at the end.
func (r *reading) next() (*Record, error) {
	if len(r.page) == 0 {
		if r.turn(); len(r.page) == 0 {
			return nil, r.err
		}
	}
	record := &r.page[0]
	r.page = r.page[1:]
	return record, nil
}

// rest is what is left of a page, or the next one; none at the end.
func (r *reading) rest() ([]Record, error) {
	if len(r.page) == 0 {
		r.turn()
	}
	rest := r.page
	r.page = nil
	return rest, r.err
}

func (r *reading) turn() {
	if r.ended {
		return
	}
	p, ok := <-r.pages
	if !ok {
		p.err = context.Canceled
	}
	r.page, r.err = p.records, p.err
	r.ended = len(p.records) == 0
}
