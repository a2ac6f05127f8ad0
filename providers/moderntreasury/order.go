package moderntreasury

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A paymentOrder is what is read of a payment order object.
type paymentOrder struct {
	ID                   string `json:"id"`
	Object               string `json:"object"`
	LiveMode             bool   `json:"live_mode"`
	Status               string `json:"status"`
	ExternalID           string `json:"external_id"`
	Amount               int64  `json:"amount"`
	Currency             string `json:"currency"`
	Direction            string `json:"direction"`
	OriginatingAccountID string `json:"originating_account_id"`
	ReceivingAccountID   string `json:"receiving_account_id"`

	Metadata metadata `json:"metadata"`
}

// states has the statuses of the API's own client libraries. An order that was sent can
// still be returned.
var states = map[string]ledger.State{
	"needs_approval": ledger.Accepted,
	"approved":       ledger.Accepted,
	"pending":        ledger.Accepted,
	"processing":     ledger.Accepted,
	"held":           ledger.Accepted,
	"sent":           ledger.Accepted,
	"completed":      ledger.Settled,
	"denied":         ledger.Rejected,
	"cancelled":      ledger.Rejected,
	"failed":         ledger.Rejected,
	"stopped":        ledger.Rejected,
	"returned":       ledger.Rejected,
	"reversed":       ledger.Rejected,
}

// is reports whether the order is the one that was sent.
func (o paymentOrder) is(sent request, key string) bool {
	return o.Object == "payment_order" && o.ExternalID == key &&
		o.Amount == sent.Amount && strings.EqualFold(o.Currency, sent.Currency) && o.Direction == sent.Direction &&
		o.OriginatingAccountID == sent.OriginatingAccountID && o.ReceivingAccountID == sent.ReceivingAccountID
}

// An evidence is what the ledger's journal keeps of an answer.
type evidence struct {
	Provider            string `json:"provider"`
	Answer              string `json:"answer,omitempty"`
	Lookup              string `json:"lookup,omitempty"`
	ProviderOperationID string `json:"provider_operation_id"`
	HTTPStatus          int    `json:"http_status"`
	Date                string `json:"date,omitempty"` // the provider's clock
}

func date(reply providers.HTTPReply) string {
	if t := reply.Date(); !t.IsZero() {
		return t.Format(time.RFC3339)
	}
	return ""
}

// receipt shows the order. What it says of it, it says of what Modern Treasury has.
func (o paymentOrder) receipt(e evidence) (ledger.Receipt, error) {
	state, ok := states[o.Status]
	if !ok {
		return ledger.Receipt{}, &providers.Error{Code: codeUnknownStatus, Alarm: codeUnknownStatus}
	}
	e.Provider, e.ProviderOperationID = Name, o.ID
	currency := strings.ToUpper(o.Currency)
	return ledger.Receipt{
		ProviderOperationID: o.ID,
		ProviderStatus:      o.Status,
		State:               state,
		Reference:           marshal(map[string]string{"id": o.ID, "external_id": o.ExternalID}),
		Result: marshal(struct {
			BusinessReference string `json:"business_reference"`
			Amount            string `json:"amount"`
			Currency          string `json:"currency"`
		}{o.Metadata.BusinessReference, providers.Money{Minor: o.Amount, Currency: currency}.Decimal(), currency}),
		Evidence: marshal(e),
	}, nil
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers can always be rendered
	}
	return b
}
