package moderntreasury

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

const path = "api/payment_orders"

// The codes of this provider's own errors, beside Modern Treasury's.
const (
	codeUnreadable    = "answer_unreadable"
	codeUnknownStatus = "unknown_status"
	codeOtherObject   = "other_object"
	codeTwoObjects    = "two_objects"
	codeTooManyPages  = "too_many_pages"
	codeExternalID    = "external_id_taken"
	codeInFlight      = "in_flight"
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
		Method: http.MethodPost, Path: path, Header: header, Body: withExternalID(a.Payload.Request, a.ProviderKey), MaySend: a.MaySend,
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	if reply.Status < 200 || reply.Status > 299 {
		return ledger.Receipt{}, rules.Classify(reply)
	}
	var o paymentOrder
	if !reply.IsJSON() || json.Unmarshal(reply.Body, &o) != nil || o.ID == "" {
		return ledger.Receipt{}, &providers.Error{Code: codeUnreadable}
	}
	// A key that was used before gets the first answer, whatever the body or the route
	// was: only the order itself shows that it is ours.
	if !o.is(sent, a.ProviderKey) || o.LiveMode != p.live {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	return o.receipt(evidence{Answer: "payment_order", HTTPStatus: reply.Status, Date: date(reply)})
}

func (p *Provider) header() http.Header {
	basic := base64.StdEncoding.EncodeToString([]byte(p.organizationID + ":" + p.apiKey.Reveal()))
	return http.Header{"Accept": {"application/json"}, "Authorization": {"Basic " + basic}}
}

// A problem is an error as "Errors" documents it.
type problem struct {
	Errors struct {
		Code      string `json:"code"`
		Parameter string `json:"parameter"`
	} `json:"errors"`
}

// rules are what Modern Treasury's pages say besides the shared table.
var rules = providers.HTTPRules{
	Code: func(reply providers.HTTPReply) string {
		var p problem
		if !reply.IsJSON() || json.Unmarshal(reply.Body, &p) != nil {
			return ""
		}
		return p.Errors.Code
	},
	Exceptions: func(reply providers.HTTPReply, code string) (*providers.Error, bool) {
		var p problem
		switch {
		case reply.Status == http.StatusConflict && reply.IsJSON():
			// "Idempotent Requests": the first request with this key is being stored.
			return &providers.Error{Mark: providers.InFlight, Code: codeInFlight}, true
		case reply.Status == http.StatusUnprocessableEntity && code != "" &&
			json.Unmarshal(reply.Body, &p) == nil && p.Errors.Parameter == "external_id":
			// The key is valid as an external_id, so that what is wrong with it is that an
			// order has it: an earlier attempt's, perhaps.
			return &providers.Error{Code: codeExternalID}, true
		}
		return nil, false
	},
}
