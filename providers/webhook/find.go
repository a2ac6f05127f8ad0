package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// maxPages bounds a look-up.
const maxPages = 50

// Lookup implements [providers.Provider]: by each key that the operation ever had.
func (p *Provider) Lookup(ctx context.Context, name string, q ledger.Question) (ledger.Receipt, error) {
	a := p.actions[name]
	if a == nil || a.lookup == nil {
		return ledger.Receipt{}, &providers.Error{Code: "no_lookup"}
	}
	sent, result, err := a.sentOf(q)
	if err != nil {
		return ledger.Receipt{}, err
	}
	var found []any
	var last providers.HTTPReply
	for _, key := range append([]string{q.ProviderKey}, q.EarlierKeys...) {
		objects, reply, err := p.find(ctx, a, a.key.written(key))
		if err != nil {
			return ledger.Receipt{}, err
		}
		found, last = append(found, objects...), reply
	}
	switch {
	case len(found) == 0:
		return ledger.Receipt{}, providers.ErrAbsent
	case len(found) > 1:
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeTwoObjects}
	}
	r, err := a.receipt(found[0], sent, result, evidence{Lookup: "found", HTTPStatus: last.Status, Date: date(last)})
	if err == nil && q.ProviderOperationID != "" && q.ProviderOperationID != r.ProviderOperationID {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	return r, err
}

// sentOf is what is known of what was sent: the sealed request, or what is kept of it.
func (a *action) sentOf(q ledger.Question) (sent any, result json.RawMessage, err error) {
	if len(q.Payload.Request) > 0 {
		sent, ok := decode(q.Payload.Request)
		if !ok {
			return nil, nil, &providers.Error{Code: "request_unreadable"}
		}
		return sent, a.result(sent), nil
	}
	var kept reference
	if len(q.Reference) > 0 && json.Unmarshal(q.Reference, &kept) != nil {
		return nil, nil, &providers.Error{Code: "reference_unreadable"}
	}
	return nil, kept.Result, nil
}

// find returns the objects with the key, from all pages.
func (p *Provider) find(ctx context.Context, a *action, key string) (found []any, reply providers.HTTPReply, err error) {
	l, cursor := a.lookup, ""
	for range maxPages {
		reply, err = p.client.Do(ctx, l.request(p.header(), key, cursor))
		if err != nil {
			return nil, reply, err
		}
		v, ok := decode(reply.Body)
		switch {
		case reply.Status == http.StatusNotFound && l.absent && a.isOwn(reply) && (l.absentCode == "" || a.code(reply) == l.absentCode):
			return nil, reply, nil
		case reply.Status != http.StatusOK:
			return nil, reply, providers.HTTPRules{Code: a.code}.ClassifyLookup(reply)
		case !ok || !isJSON(reply):
			return nil, reply, &providers.Error{Code: codeUnreadable}
		case l.items == nil:
			return []any{v}, reply, a.answer.checkKey(v, key)
		}
		list, _ := l.items.get(v)
		items, ok := list.([]any)
		if !ok {
			return nil, reply, &providers.Error{Code: codeUnreadable}
		}
		for _, item := range items {
			shown, ok := a.answer.key.get(item)
			if !ok { // others' and ours can't be told apart
				return nil, reply, &providers.Error{Code: codeIncomplete}
			}
			if text(shown) == key {
				found = append(found, item)
			}
		}
		if cursor = l.next.text(v); cursor == "" {
			return found, reply, nil
		}
	}
	return nil, reply, &providers.Error{Code: codeTooManyPages}
}

func (l *lookup) request(header http.Header, key, cursor string) providers.HTTPRequest {
	fill := func(s string) string { return strings.ReplaceAll(s, placeholder, key) }
	r := providers.HTTPRequest{Method: l.method, Path: fill(l.path), Query: url.Values{}, Header: header}
	for name, v := range l.query {
		r.Query.Set(name, fill(v))
	}
	if cursor != "" {
		r.Query.Set(l.cursor, cursor)
	}
	if l.method == http.MethodPost {
		members := map[string]string{}
		for name, v := range l.body {
			members[name] = fill(v)
		}
		r.Body = marshal(members)
		header.Set("Content-Type", "application/json")
	}
	return r
}
