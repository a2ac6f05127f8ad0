package tbank

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A payment is what a look-up shows.
type payment struct {
	Status string `json:"status"`
	Meta   meta   `json:"meta"` // may be missing
}

// contradicts reports whether a payment shows something else than was sent.
func (m meta) contradicts(sent meta) bool {
	return sent != (meta{}) && (m.BusinessReference != "" && m.BusinessReference != sent.BusinessReference || m.Amount != "" && m.Amount != sent.Amount)
}

// Lookup implements [providers.Provider]: the payment with the operation's key as its id.
func (p *Provider) Lookup(ctx context.Context, _ string, q ledger.Question) (ledger.Receipt, error) {
	sent, err := sentOf(q)
	if err != nil {
		return ledger.Receipt{}, &providers.Error{Code: "request_unreadable", Err: err}
	}
	var found payment
	var at providers.HTTPReply
	id := ""
	for _, key := range append([]string{q.ProviderKey}, q.EarlierKeys...) {
		shown, reply, ok, err := p.get(ctx, key)
		switch {
		case err != nil:
			return ledger.Receipt{}, err
		case !ok:
			continue
		case id != "":
			return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeTwoObjects}
		}
		found, at, id = shown, reply, key
	}
	if id == "" {
		return ledger.Receipt{}, providers.ErrAbsent
	}
	if found.Meta.contradicts(sent) {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	state, known := p.states[found.Status]
	if !known {
		return ledger.Receipt{}, &providers.Error{Code: codeUnknownStatus, Alarm: codeUnknownStatus}
	}
	return receipt(found.Status, state, reference{id, sent.BusinessReference, sent.Amount}, evidence{Lookup: "found", HTTPStatus: at.Status, Date: date(at)}), nil
}

// sentOf is what is known of what was sent: the sealed request, or what is kept of it.
func sentOf(q ledger.Question) (meta, error) {
	var r request
	var kept reference
	switch {
	case len(q.Payload.Request) > 0:
		err := json.Unmarshal(q.Payload.Request, &r)
		return r.Meta, err
	case len(q.Reference) > 0:
		err := json.Unmarshal(q.Reference, &kept)
		return meta{kept.BusinessReference, kept.Amount}, err
	}
	return meta{}, nil
}

// get asks for one payment. ok is false if the bank says that it has none with this id.
func (p *Provider) get(ctx context.Context, id string) (shown payment, reply providers.HTTPReply, ok bool, err error) {
	reply, err = p.client.Do(ctx, providers.HTTPRequest{Method: http.MethodGet, Path: "api/v1/payment/" + id, Header: p.header()})
	if err != nil {
		return payment{}, reply, false, err
	}
	switch {
	case reply.Status == http.StatusNotFound && rules.Code(reply) != "":
		return payment{}, reply, false, nil
	case reply.Status != http.StatusOK:
		return payment{}, reply, false, rules.ClassifyLookup(reply)
	case !reply.IsJSON() || json.Unmarshal(reply.Body, &shown) != nil || shown.Status == "":
		return payment{}, reply, false, &providers.Error{Code: codeUnreadable}
	}
	return shown, reply, true, nil
}

// An evidence is what the ledger's journal keeps of an answer.
type evidence struct {
	Provider            string `json:"provider"`
	Answer              string `json:"answer,omitempty"`
	Lookup              string `json:"lookup,omitempty"`
	ProviderOperationID string `json:"provider_operation_id"`
	HTTPStatus          int    `json:"http_status"`
	Date                string `json:"date,omitempty"` // the bank's clock
}

func date(reply providers.HTTPReply) string {
	if t := reply.Date(); !t.IsZero() {
		return t.Format(time.RFC3339)
	}
	return ""
}

// A reference is what the ledger keeps of a payment: the bank doesn't always show it again.
type reference struct {
	ID                string `json:"id"`
	BusinessReference string `json:"business_reference"`
	Amount            string `json:"amount"`
}

func receipt(status string, state ledger.State, r reference, e evidence) ledger.Receipt {
	e.Provider, e.ProviderOperationID = Name, r.ID
	return ledger.Receipt{
		ProviderOperationID: r.ID,
		ProviderStatus:      status,
		State:               state,
		Reference:           marshal(r),
		Result: marshal(struct {
			BusinessReference string `json:"business_reference"`
			Amount            string `json:"amount"`
			Currency          string `json:"currency"`
		}{r.BusinessReference, r.Amount, rub}),
		Evidence: marshal(e),
	}
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers can always be rendered
	}
	return b
}
