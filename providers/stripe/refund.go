package stripe

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A refund is Stripe's object, as far as it is looked at.
type refund struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	Charge        string            `json:"charge"`
	PaymentIntent string            `json:"payment_intent"`
	Metadata      map[string]string `json:"metadata"`
	Status        string            `json:"status"`
	Created       int64             `json:"created"`
}

func (r refund) is(w wanted) bool {
	payment := r.Charge
	if parent(w.Payment) == "payment_intent" {
		payment = r.PaymentIntent
	}
	return payment == w.Payment && r.Amount == w.Units && strings.EqualFold(r.Currency, w.Currency)
}

// states are Stripe's words. A failed or canceled refund gave the money back to the
// account: nothing reached the customer ("Refunds", "Failed refunds").
var states = map[string]ledger.State{
	"pending":         ledger.Accepted,
	"requires_action": ledger.Accepted,
	"succeeded":       ledger.Settled,
	"failed":          ledger.Rejected,
	"canceled":        ledger.Rejected,
}

// The codes of this provider's own findings.
const (
	codeNotUnderstood = "answer_not_understood"
	codeUnknownStatus = "unknown_status"
	codeOtherObject   = "other_object"
	codeTwoObjects    = "two_objects"
	codeLookAlike     = "look_alike"
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
	Replayed            bool   `json:"replayed,omitempty"`
	ProviderTime        string `json:"provider_time,omitempty"` // by Stripe's clock, which its keys age by
	RequestID           string `json:"request_id,omitempty"`    // Stripe's support asks for it
}

func proofOf(reply providers.HTTPReply) proof {
	p := proof{Provider: Name, HTTPStatus: reply.Status, Replayed: reply.Header.Get("Idempotent-Replayed") == "true"}
	if at := reply.Date(); !at.IsZero() {
		p.ProviderTime = at.Format(time.RFC3339)
	}
	if id := reply.Header.Get("Request-Id"); strings.HasPrefix(id, "req_") && len(id) <= 64 {
		p.RequestID = id
	}
	return p
}

// receipt is the refund as the ledger keeps it, once it is what was wanted.
func (r refund) receipt(w wanted, p proof) (ledger.Receipt, error) {
	if !r.is(w) {
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
		}{w.Payment, w.Amount, w.Currency}),
		Evidence: render(p),
	}, nil
}

func render(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, integers and a bool can always be rendered
	}
	return b
}
