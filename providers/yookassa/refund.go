package yookassa

import (
	"encoding/json"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A refund is YooKassa's object, as far as it is looked at.
type refund struct {
	ID        string            `json:"id"`
	PaymentID string            `json:"payment_id"`
	Status    string            `json:"status"`
	Amount    amount            `json:"amount"`
	Metadata  map[string]string `json:"metadata"`
}

// states are YooKassa's words ("Refunds", "Refund object").
var states = map[string]ledger.State{
	"pending":   ledger.Accepted,
	"succeeded": ledger.Settled,
	"canceled":  ledger.Rejected,
}

// The codes of this provider's own findings.
const (
	codeNotUnderstood = "answer_not_understood"
	codeUnknownStatus = "unknown_status"
	codeOtherObject   = "other_object"
	codeTwoObjects    = "two_objects"
	codeNoReference   = "no_reference"
	codeInvalid       = "invalid_request"
	codeInFlight      = "in_flight"
	codeKeyReused     = "key_reused"
)

// A proof is what the journal of an operation keeps of an answer.
type proof struct {
	Provider            string `json:"provider"`
	Answer              string `json:"answer,omitempty"`
	Lookup              string `json:"lookup,omitempty"`
	ProviderOperationID string `json:"provider_operation_id"`
	HTTPStatus          int    `json:"http_status"`
	ProviderTime        string `json:"provider_time,omitempty"` // by YooKassa's clock, which its keys age by
}

func proofOf(reply providers.HTTPReply) proof {
	p := proof{Provider: Name, HTTPStatus: reply.Status}
	if at := reply.Date(); !at.IsZero() {
		p.ProviderTime = at.Format(time.RFC3339)
	}
	return p
}

// receipt is the refund as the ledger keeps it, once it is what was wanted.
func (r refund) receipt(w wanted, p proof) (ledger.Receipt, error) {
	if r.PaymentID != w.Payment || !r.Amount.is(w.Amount) {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	state, known := states[r.Status]
	if !known {
		return ledger.Receipt{}, &providers.Error{Code: codeUnknownStatus}
	}
	p.ProviderOperationID = r.ID
	return ledger.Receipt{
		ProviderOperationID: r.ID,
		ProviderStatus:      r.Status,
		State:               state,
		Reference:           render(w),
		Result: render(struct {
			PaymentID string `json:"payment_id"`
			Amount    string `json:"amount"`
			Currency  string `json:"currency"`
		}{w.Payment, w.Amount.Value, w.Amount.Currency}),
		Evidence: render(p),
	}, nil
}

func render(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers can always be rendered
	}
	return b
}
