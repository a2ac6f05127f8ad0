package increase

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// The codes of this provider's own errors, beside Increase's error types.
const (
	codeUnreadable    = "answer_unreadable"
	codeUnknownStatus = "unknown_status"
	codeOtherObject   = "other_object"
	codeTwoObjects    = "two_objects"
	codeTooManyPages  = "too_many_pages"
)

// Apply implements [providers.Provider].
func (p *Provider) Apply(ctx context.Context, _ string, a ledger.Attempt) (ledger.Receipt, error) {
	var sent request
	if err := json.Unmarshal(a.Payload.Request, &sent); err != nil {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "request_unreadable", Alarm: "request_unreadable", Err: err}
	}
	header := p.header()
	header.Set("Content-Type", "application/json")
	header.Set("Idempotency-Key", a.ProviderKey)
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: http.MethodPost, Path: p.kind.path, Header: header, Body: a.Payload.Request, MaySend: a.MaySend,
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	if reply.Status < 200 || reply.Status > 299 {
		return ledger.Receipt{}, rules.Classify(reply)
	}
	var t transfer
	if !reply.IsJSON() || json.Unmarshal(reply.Body, &t) != nil || t.ID == "" {
		return ledger.Receipt{}, &providers.Error{Code: codeUnreadable}
	}
	if !t.is(p.kind, sent) || t.IdempotencyKey != "" && t.IdempotencyKey != a.ProviderKey {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	return t.receipt(evidence{
		Answer:     "transfer",
		HTTPStatus: reply.Status,
		Replayed:   reply.Header.Get("Idempotent-Replayed") == "true",
		Date:       date(reply),
	})
}

func (p *Provider) header() http.Header {
	return http.Header{
		"Accept":        {"application/json"},
		"Authorization": {"Bearer " + p.apiKey.Reveal()},
	}
}

// rules are what Increase's page "Errors" says besides the shared table.
var rules = providers.HTTPRules{
	Code: func(reply providers.HTTPReply) string {
		var problem struct {
			Type string `json:"type"`
		}
		if !reply.IsJSON() || json.Unmarshal(reply.Body, &problem) != nil {
			return ""
		}
		return problem.Type
	},
	Exceptions: func(reply providers.HTTPReply, code string) (*providers.Error, bool) {
		if reply.Status != http.StatusConflict {
			return nil, false
		}
		switch code {
		case "idempotency_key_already_used_error":
			return &providers.Error{Mark: providers.KeyReused, Code: code}, true
		case "invalid_operation_error":
			return &providers.Error{Mark: providers.Refused, Code: code}, true
		}
		return nil, false
	},
}
