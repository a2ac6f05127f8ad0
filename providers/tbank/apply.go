package tbank

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// The codes of this provider's own errors, beside the bank's.
const (
	codeUnreadable    = "answer_unreadable"
	codeUnknownStatus = "unknown_status"
	codeOtherObject   = "other_object"
	codeTwoObjects    = "two_objects"
)

// Apply implements [providers.Provider].
func (p *Provider) Apply(ctx context.Context, _ string, a ledger.Attempt) (ledger.Receipt, error) {
	var sent request
	if err := json.Unmarshal(a.Payload.Request, &sent); err != nil {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "request_unreadable", Alarm: "request_unreadable", Err: err}
	}
	header := p.header()
	header.Set("Content-Type", "application/json")
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: http.MethodPost, Path: "api/v1/payment/ruble-transfer/pay", Header: header,
		Body: withID(a.Payload.Request, a.ProviderKey), MaySend: a.MaySend,
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	switch {
	case reply.Status < 200 || reply.Status > 299:
		return ledger.Receipt{}, rules.Classify(reply)
	case reply.Status != http.StatusCreated || len(bytes.TrimSpace(reply.Body)) > 0 && !reply.IsJSON():
		// An empty 200 may be anybody's.
		return ledger.Receipt{}, &providers.Error{Code: codeUnreadable}
	}
	r := reference{a.ProviderKey, sent.Meta.BusinessReference, sent.Meta.Amount}
	return receipt(statusAccepted, ledger.Accepted, r, evidence{Answer: "accepted", HTTPStatus: reply.Status, Date: date(reply)}), nil
}

func (p *Provider) header() http.Header {
	return http.Header{"Accept": {"application/json"}, "Authorization": {"Bearer " + p.token.Reveal()}}
}

// rules have no exceptions to the shared table.
var rules = providers.HTTPRules{
	Code: func(reply providers.HTTPReply) string {
		var problem struct {
			ErrorCode string `json:"errorCode"`
		}
		if !reply.IsJSON() || json.Unmarshal(reply.Body, &problem) != nil {
			return ""
		}
		return problem.ErrorCode
	},
}
