package yookassa

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Apply implements [providers.Provider]: POST /v3/refunds.
func (p *Provider) Apply(ctx context.Context, _ string, a ledger.Attempt) (ledger.Receipt, error) {
	w, err := sent(a.Payload.Request)
	if err != nil {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: codeInvalid, Err: err}
	}
	header := p.header()
	maps.Copy(header, http.Header{"Content-Type": {"application/json"}, "Idempotence-Key": {a.ProviderKey}})
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: http.MethodPost, Path: "/v3/refunds", Header: header, Body: a.Payload.Request, MaySend: a.MaySend,
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	if reply.Status != http.StatusOK {
		return ledger.Receipt{}, rules.Classify(reply)
	}
	var r refund
	if err := decode(reply, &r); err != nil || r.ID == "" || r.Status == "" {
		return ledger.Receipt{}, &providers.Error{Code: codeNotUnderstood, Err: err}
	}
	proof := proofOf(reply)
	proof.Answer = "created"
	return r.receipt(w, proof)
}

// rules are what YooKassa adds to the shared table.
var rules = providers.HTTPRules{Code: code, Exceptions: exceptions}

// A problem is YooKassa's error object ("Errors").
type problem struct {
	Type       string `json:"type"`
	Code       string `json:"code"`
	Parameter  string `json:"parameter"`
	RetryAfter int    `json:"retry_after"` // ms
}

func code(reply providers.HTTPReply) string {
	var p problem
	if decode(reply, &p) != nil || p.Type != "error" {
		return ""
	}
	return p.Code
}

// exceptions: the answer 202 is remembered from earlier documentation, not confirmed; it
// proves nothing either way.
func exceptions(reply providers.HTTPReply, code string) (*providers.Error, bool) {
	var p problem
	if decode(reply, &p) != nil {
		return nil, false
	}
	switch {
	case reply.Status == http.StatusBadRequest && code == "invalid_request" && p.Parameter == "Idempotence-Key":
		return &providers.Error{Mark: providers.KeyReused, Code: codeKeyReused}, true
	case reply.Status == http.StatusAccepted && p.Type == "processing":
		wait := time.Duration(max(0, min(p.RetryAfter, 60_000))) * time.Millisecond
		return &providers.Error{Mark: providers.InFlight, Code: codeInFlight, RetryAfter: wait}, true
	}
	return nil, false
}

var errNotJSON = errors.New("the answer isn't JSON")

func decode(reply providers.HTTPReply, into any) error {
	if !reply.IsJSON() {
		return errNotJSON
	}
	return json.Unmarshal(reply.Body, into)
}
