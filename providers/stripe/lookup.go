package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

var errNotJSON = errors.New("the answer isn't JSON")

const (
	// earlier is how much before the first attempt a look-up begins: more than two clocks
	// may differ.
	earlier = 24 * time.Hour
	// near is how much two clocks may differ where a refund has lost its metadata.
	near = 15 * time.Minute
	// pageSize is the most that Stripe gives; its default is 10 ("Pagination").
	pageSize = 100
	// maxPages bounds a look-up. A payment has nowhere near so many refunds.
	maxPages = 100
)

// Lookup implements [providers.Provider]: it reads all refunds of the payment and
// compares their metadata. It finds a refund under whichever key it was made.
func (p *Provider) Lookup(ctx context.Context, _ string, q ledger.Question) (ledger.Receipt, error) {
	w, err := asked(q)
	if err != nil {
		return ledger.Receipt{}, &providers.Error{Code: codeNoReference, Err: err}
	}
	found := map[string]refund{} // by id: pages may overlap when refunds are made meanwhile
	alike := false
	query := url.Values{parent(w.Payment): {w.Payment}, "limit": {strconv.Itoa(pageSize)}}
	if !q.FirstSentAt.IsZero() {
		query.Set("created[gte]", strconv.FormatInt(q.FirstSentAt.Add(-earlier).Unix(), 10))
	}
	var reply providers.HTTPReply
	for range maxPages {
		var page list
		reply, page, err = p.page(ctx, query)
		if err != nil {
			return ledger.Receipt{}, err
		}
		for _, r := range page.Data {
			switch operation, ours := r.Metadata[operationKey]; {
			case operation == w.Operation || r.ID == q.ProviderOperationID:
				found[r.ID] = r
			case !ours && r.is(w) && r.Created >= q.FirstSentAt.Add(-near).Unix():
				alike = true
			}
		}
		if !*page.HasMore {
			return conclude(w, found, alike, reply)
		}
		last := page.Data[len(page.Data)-1].ID
		if last == query.Get("starting_after") {
			return ledger.Receipt{}, &providers.Error{Code: codeNotUnderstood}
		}
		query.Set("starting_after", last)
	}
	return ledger.Receipt{}, &providers.Error{Code: "too_many_pages"}
}

func conclude(w wanted, found map[string]refund, alike bool, reply providers.HTTPReply) (ledger.Receipt, error) {
	if len(found) > 1 {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeTwoObjects}
	}
	for _, r := range found {
		proof := proofOf(reply)
		proof.Lookup = "found"
		return r.receipt(w, proof)
	}
	if alike {
		// Metadata can be edited in the Dashboard. A refund of the same amount, made since
		// and without an operation's name, may be ours or a person's: nobody can tell.
		return ledger.Receipt{}, &providers.Error{Code: codeLookAlike}
	}
	return ledger.Receipt{}, providers.ErrAbsent
}

// asked is what the question is about: as it was sent, or as the receipt keeps it.
func asked(q ledger.Question) (w wanted, err error) {
	if len(q.Payload.Request) > 0 {
		w, err = sent(q.Payload.Request)
	} else {
		err = json.Unmarshal(q.Reference, &w)
	}
	if err == nil && (w.Operation == "" || w.Payment == "") {
		err = errors.New("the reference names no operation or no payment")
	}
	return w, err
}

// A list is a page of refunds, newest first.
type list struct {
	Object  string   `json:"object"`
	Data    []refund `json:"data"`
	HasMore *bool    `json:"has_more"`
}

// page reads one page. An answer that isn't whole and Stripe's own is an error.
func (p *Provider) page(ctx context.Context, query url.Values) (providers.HTTPReply, list, error) {
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: http.MethodGet, Path: "/v1/refunds", Query: query, Header: p.header(),
	})
	if err != nil {
		return reply, list{}, err
	}
	if reply.Status != http.StatusOK {
		return reply, list{}, rules.ClassifyLookup(reply)
	}
	var page list
	err = decode(reply, &page)
	whole := page.Object == "list" && page.Data != nil && page.HasMore != nil && (len(page.Data) > 0 || !*page.HasMore)
	for _, r := range page.Data {
		whole = whole && r.ID != "" && r.Object == "refund"
	}
	if err != nil || !whole {
		return reply, list{}, &providers.Error{Code: codeNotUnderstood, Err: err}
	}
	return reply, page, nil
}
