package moderntreasury

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// maxPages bounds a look-up. One page is what a unique external_id needs.
const maxPages = 20

// A hit is an order and the key that it was found by.
type hit struct {
	order paymentOrder
	key   string
}

// Lookup implements [providers.Provider]: the list of orders with one of the operation's
// keys as external_id.
func (p *Provider) Lookup(ctx context.Context, _ string, q ledger.Question) (ledger.Receipt, error) {
	var sent *request
	if len(q.Payload.Request) > 0 {
		sent = new(request)
		if err := json.Unmarshal(q.Payload.Request, sent); err != nil {
			return ledger.Receipt{}, &providers.Error{Code: "request_unreadable", Err: err}
		}
	}
	var found []hit
	var last providers.HTTPReply
	for _, key := range append([]string{q.ProviderKey}, q.EarlierKeys...) {
		orders, reply, err := p.list(ctx, key)
		if err != nil {
			return ledger.Receipt{}, err
		}
		for _, o := range orders {
			found = append(found, hit{o, key})
		}
		last = reply
	}
	switch {
	case len(found) == 0:
		return ledger.Receipt{}, providers.ErrAbsent
	case len(found) > 1:
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeTwoObjects}
	}
	o, key := found[0].order, found[0].key
	if sent != nil && !o.is(*sent, key) || o.LiveMode != p.live || q.ProviderOperationID != "" && q.ProviderOperationID != o.ID {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	return o.receipt(evidence{Lookup: "found", HTTPStatus: last.Status, Date: date(last)})
}

// list returns the orders whose external_id is the key, from all pages: the cursor of the
// next one is in a header, as the API's own client libraries read it.
func (p *Provider) list(ctx context.Context, key string) (found []paymentOrder, reply providers.HTTPReply, err error) {
	query := url.Values{"external_id": {key}, "per_page": {"100"}}
	for range maxPages {
		reply, err = p.client.Do(ctx, providers.HTTPRequest{Method: http.MethodGet, Path: path, Query: query, Header: p.header()})
		if err != nil {
			return nil, reply, err
		}
		if reply.Status != http.StatusOK {
			return nil, reply, rules.ClassifyLookup(reply)
		}
		var page []paymentOrder
		if !reply.IsJSON() || json.Unmarshal(reply.Body, &page) != nil || page == nil {
			return nil, reply, &providers.Error{Code: codeUnreadable}
		}
		for _, o := range page {
			if o.ID == "" {
				return nil, reply, &providers.Error{Code: codeUnreadable}
			}
			if o.ExternalID == key {
				found = append(found, o)
			}
		}
		cursor := reply.Header.Get("X-After-Cursor")
		if cursor == "" || len(page) == 0 {
			return found, reply, nil
		}
		query.Set("after_cursor", cursor)
	}
	return nil, reply, &providers.Error{Code: codeTooManyPages}
}
