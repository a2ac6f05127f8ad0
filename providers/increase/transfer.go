package increase

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A transfer is what is read of either kind of transfer object.
type transfer struct {
	ID                   string `json:"id"`
	Type                 string `json:"type"`
	Status               string `json:"status"`
	IdempotencyKey       string `json:"idempotency_key"`
	AccountID            string `json:"account_id"`
	Amount               int64  `json:"amount"`
	Currency             string `json:"currency"`
	ExternalAccountID    string `json:"external_account_id"`
	AccountNumber        string `json:"account_number"`
	RoutingNumber        string `json:"routing_number"`
	DestinationAccountID string `json:"destination_account_id"`
	StatementDescriptor  string `json:"statement_descriptor"`
	Description          string `json:"description"`
}

// states has the documented statuses ("Sending an ACH Transfer", "Sending an Account
// Transfer", and the API reference). An ACH transfer that was submitted can still be
// returned.
var states = map[string]ledger.State{
	"pending_approval":                      ledger.Accepted,
	"pending_transfer_session_confirmation": ledger.Accepted,
	"pending_reviewing":                     ledger.Accepted,
	"pending_submission":                    ledger.Accepted,
	"requires_attention":                    ledger.Accepted,
	"submitted":                             ledger.Accepted,
	"complete":                              ledger.Settled,
	"canceled":                              ledger.Rejected,
	"rejected":                              ledger.Rejected,
	"returned":                              ledger.Rejected,
}

// is reports whether the transfer is the one that was sent. An external account's numbers
// are filled in by Increase, so they are compared only where they were sent.
func (t transfer) is(k kind, sent request) bool {
	payee := t.DestinationAccountID == sent.DestinationAccountID
	if sent.ExternalAccountID != "" {
		payee = payee && t.ExternalAccountID == sent.ExternalAccountID
	} else if sent.AccountNumber != "" {
		payee = payee && t.AccountNumber == sent.AccountNumber && t.RoutingNumber == sent.RoutingNumber
	}
	// The API reference has had the currency in either case.
	return t.Type == k.objectType && t.AccountID == sent.AccountID && t.Amount == sent.Amount && strings.EqualFold(t.Currency, usd) && payee
}

// An evidence is what the ledger's journal keeps of an answer.
type evidence struct {
	Provider            string `json:"provider"`
	Answer              string `json:"answer,omitempty"`
	Lookup              string `json:"lookup,omitempty"`
	ProviderOperationID string `json:"provider_operation_id"`
	HTTPStatus          int    `json:"http_status"`
	Replayed            bool   `json:"replayed,omitempty"`
	Date                string `json:"date,omitempty"` // the provider's clock
}

func date(reply providers.HTTPReply) string {
	if t := reply.Date(); !t.IsZero() {
		return t.Format(time.RFC3339)
	}
	return ""
}

// receipt shows the transfer. What it says of the order, it says of what Increase has.
func (t transfer) receipt(e evidence) (ledger.Receipt, error) {
	state, ok := states[t.Status]
	if !ok {
		return ledger.Receipt{}, &providers.Error{Code: codeUnknownStatus, Alarm: codeUnknownStatus}
	}
	e.Provider, e.ProviderOperationID = Name, t.ID
	return ledger.Receipt{
		ProviderOperationID: t.ID,
		ProviderStatus:      t.Status,
		State:               state,
		Reference:           marshal(map[string]string{"id": t.ID, "type": t.Type}),
		Result: marshal(struct {
			BusinessReference string `json:"business_reference"`
			Amount            string `json:"amount"`
			Currency          string `json:"currency"`
		}{t.StatementDescriptor + t.Description, providers.Money{Minor: t.Amount, Currency: usd}.Decimal(), usd}),
		Evidence: marshal(e),
	}, nil
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and bools can always be rendered
	}
	return b
}
