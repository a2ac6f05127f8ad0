package increase

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// maxPages bounds a look-up. One page is what is documented for a key.
const maxPages = 20

// Lookup implements [providers.Provider]: the list of transfers with the operation's key.
func (p *Provider) Lookup(ctx context.Context, _ string, q ledger.Question) (ledger.Receipt, error) {
	var sent *request
	if len(q.Payload.Request) > 0 {
		sent = new(request)
		if err := json.Unmarshal(q.Payload.Request, sent); err != nil {
			return ledger.Receipt{}, &providers.Error{Code: "request_unreadable", Err: err}
		}
	}
	var found []transfer
	var last providers.HTTPReply
	for _, key := range append([]string{q.ProviderKey}, q.EarlierKeys...) {
		transfers, reply, err := p.list(ctx, key)
		if err != nil {
			return ledger.Receipt{}, err
		}
		found, last = append(found, transfers...), reply
	}
	switch {
	case len(found) == 0:
		return ledger.Receipt{}, providers.ErrAbsent
	case len(found) > 1:
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeTwoObjects}
	}
	t := found[0]
	if sent != nil && !t.is(p.kind, *sent) || q.ProviderOperationID != "" && q.ProviderOperationID != t.ID {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	return t.receipt(evidence{Lookup: "found", HTTPStatus: last.Status, Date: date(last)})
}

// list returns the transfers with the key, from all pages; a list that isn't filtered is
// read all the same.
func (p *Provider) list(ctx context.Context, key string) (found []transfer, reply providers.HTTPReply, err error) {
	query := url.Values{"idempotency_key": {key}}
	for range maxPages {
		reply, err = p.client.Do(ctx, providers.HTTPRequest{Method: http.MethodGet, Path: p.kind.path, Query: query, Header: p.header()})
		if err != nil {
			return nil, reply, err
		}
		if reply.Status != http.StatusOK {
			return nil, reply, rules.ClassifyLookup(reply)
		}
		var page struct {
			Data       *[]transfer `json:"data"`
			NextCursor string      `json:"next_cursor"`
		}
		if !reply.IsJSON() || json.Unmarshal(reply.Body, &page) != nil || page.Data == nil {
			return nil, reply, &providers.Error{Code: codeUnreadable}
		}
		for _, t := range *page.Data {
			if t.ID == "" {
				return nil, reply, &providers.Error{Code: codeUnreadable}
			}
			if t.IdempotencyKey == key {
				found = append(found, t)
			}
		}
		if page.NextCursor == "" {
			return found, reply, nil
		}
		query.Set("cursor", page.NextCursor)
	}
	return nil, reply, &providers.Error{Code: codeTooManyPages}
}
