package stripe

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Apply implements [providers.Provider]: POST /v1/refunds.
func (p *Provider) Apply(ctx context.Context, _ string, a ledger.Attempt) (ledger.Receipt, error) {
	w, err := sent(a.Payload.Request)
	if err != nil {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: codeInvalid, Err: err}
	}
	header := p.header()
	maps.Copy(header, http.Header{
		"Content-Type":    {"application/x-www-form-urlencoded"},
		"Idempotency-Key": {a.ProviderKey},
	})
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: http.MethodPost, Path: "/v1/refunds", Header: header, Body: a.Payload.Request, MaySend: a.MaySend,
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	if reply.Status != http.StatusOK {
		return ledger.Receipt{}, rules.Classify(reply)
	}
	var r refund
	if err := decode(reply, &r); err != nil || r.Object != "refund" || r.ID == "" {
		return ledger.Receipt{}, &providers.Error{Code: codeNotUnderstood, Err: err}
	}
	if r.Metadata[operationKey] != w.Operation {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	proof := proofOf(reply)
	proof.Answer = "created"
	return r.receipt(w, proof)
}

// rules are what Stripe adds to the shared table. "Rate limits": the limiter answers
// before anything else looks at the request.
var rules = providers.HTTPRules{LimiterFirst: true, Code: code, Exceptions: exceptions}

// A problem is Stripe's error ("Errors").
type problem struct {
	Error struct {
		Type string `json:"type"`
		Code string `json:"code"`
	} `json:"error"`
}

// code is the error's code, or its type if it has none.
func code(reply providers.HTTPReply) string {
	var p problem
	if decode(reply, &p) != nil || p.Error.Type == "" {
		return ""
	}
	if p.Error.Code != "" {
		return p.Error.Code
	}
	return p.Error.Type
}

func exceptions(reply providers.HTTPReply, code string) (*providers.Error, bool) {
	var p problem
	switch {
	case code == "":
	case code == "idempotency_key_in_use" && reply.Status == http.StatusConflict:
		return &providers.Error{Mark: providers.InFlight, Code: codeInFlight}, true
	case decode(reply, &p) == nil && p.Error.Type == "idempotency_error" && reply.Status == http.StatusBadRequest:
		return &providers.Error{Mark: providers.KeyReused, Code: codeKeyReused}, true
	case code == "lock_timeout":
		// Another request holds the object. It isn't the limiter that says so, and whether
		// it is said before anything happens isn't documented.
		return &providers.Error{Code: code}, true
	}
	return nil, false
}

func decode(reply providers.HTTPReply, into any) error {
	if !reply.IsJSON() {
		return errNotJSON
	}
	return json.Unmarshal(reply.Body, into)
}
