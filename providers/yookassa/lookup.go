package yookassa

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

const (
	// earlier is how much before the first attempt a look-up begins: more than two clocks
	// may differ.
	earlier = 24 * time.Hour
	// pageSize is the most that YooKassa gives; its default is 10.
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
	query := url.Values{"payment_id": {w.Payment}, "limit": {strconv.Itoa(pageSize)}}
	if !q.FirstSentAt.IsZero() {
		query.Set("created_at.gte", q.FirstSentAt.Add(-earlier).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	found := map[string]refund{} // by id: pages may overlap when refunds are made meanwhile
	for range maxPages {
		reply, page, err := p.page(ctx, query)
		if err != nil {
			return ledger.Receipt{}, err
		}
		for _, r := range page.Items {
			if r.ID == q.ProviderOperationID || r.Metadata[operationKey] == w.Operation {
				found[r.ID] = r
			}
		}
		if page.NextCursor == "" {
			return conclude(w, found, reply)
		}
		if page.NextCursor == query.Get("cursor") {
			return ledger.Receipt{}, &providers.Error{Code: codeNotUnderstood}
		}
		query.Set("cursor", page.NextCursor)
	}
	return ledger.Receipt{}, &providers.Error{Code: "too_many_pages"}
}

func conclude(w wanted, found map[string]refund, reply providers.HTTPReply) (ledger.Receipt, error) {
	if len(found) > 1 {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeTwoObjects}
	}
	for _, r := range found {
		proof := proofOf(reply)
		proof.Lookup = "found"
		return r.receipt(w, proof)
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
	Type       string   `json:"type"`
	Items      []refund `json:"items"`
	NextCursor string   `json:"next_cursor"`
}

// page reads one page. An answer that isn't whole and YooKassa's own is an error.
func (p *Provider) page(ctx context.Context, query url.Values) (providers.HTTPReply, list, error) {
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: http.MethodGet, Path: "/v3/refunds", Query: query, Header: p.header(),
	})
	if err != nil {
		return reply, list{}, err
	}
	if reply.Status != http.StatusOK {
		return reply, list{}, rules.ClassifyLookup(reply)
	}
	var page list
	err = decode(reply, &page)
	whole := page.Type == "list" && page.Items != nil
	for _, r := range page.Items {
		whole = whole && r.ID != "" && r.Status != ""
	}
	if err != nil || !whole {
		return reply, list{}, &providers.Error{Code: codeNotUnderstood, Err: err}
	}
	return reply, page, nil
}
