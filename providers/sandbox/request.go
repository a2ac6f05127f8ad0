package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/onceward/onceward/providers"
)

// What is sent has the names and spellings of the tools' arguments, so that the
// journal reads like the calls that led to it.

type paymentOrder struct {
	DebitAccount      string `json:"debit_account"`
	PayeeAccount      string `json:"payee_account"`
	PayeeName         string `json:"payee_name"`
	Amount            string `json:"amount"`
	Currency          string `json:"currency"`
	BusinessReference string `json:"business_reference"`
	Purpose           string `json:"purpose,omitempty"`
}

type refund struct {
	PaymentID string `json:"payment_id"`
	Amount    string `json:"amount"`
	Currency  string `json:"currency"`
	Reason    string `json:"reason,omitempty"`
	Note      string `json:"note,omitempty"`
}

// Prepare implements [providers.Provider]: the request is the arguments as JSON.
func (s *Sandbox) Prepare(o providers.Order) ([]byte, error) {
	switch a := o.Arguments.(type) {
	case providers.Email:
		if len(a.To)+len(a.Cc)+len(a.Bcc) == 0 {
			return nil, &providers.ArgumentError{Field: "to", Problem: "has no address"}
		}
		return render(a)
	case providers.PaymentOrder:
		if a.Amount.Minor <= 0 {
			return nil, errNoAmount
		}
		return render(paymentOrder{
			DebitAccount: a.DebitAccount, PayeeAccount: a.PayeeAccount, PayeeName: a.PayeeName,
			Amount: a.Amount.Decimal(), Currency: a.Amount.Currency,
			BusinessReference: a.BusinessReference, Purpose: a.Purpose,
		})
	case providers.Refund:
		if a.Amount.Minor <= 0 {
			return nil, errNoAmount
		}
		return render(refund{
			PaymentID: a.PaymentID, Amount: a.Amount.Decimal(), Currency: a.Amount.Currency,
			Reason: a.Reason, Note: a.Note,
		})
	default:
		return nil, fmt.Errorf("the sandbox has no action for arguments of type %T", a)
	}
}

var errNoAmount = &providers.ArgumentError{Field: "amount", Problem: "must be more than zero"}

// render leaves <, > and & as they are: people read the journal.
func render(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("the sandbox can't render its request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// result is what the tool's caller gets to read of a request that was carried out.
func result(action string, request []byte) (json.RawMessage, error) {
	switch action {
	case providers.EmailSend:
		var email providers.Email
		if err := json.Unmarshal(request, &email); err != nil {
			return nil, err
		}
		return json.Marshal(struct {
			Recipients int `json:"recipients"`
		}{recipients(email)})
	case providers.PaymentOrderCreate:
		var order paymentOrder
		if err := json.Unmarshal(request, &order); err != nil {
			return nil, err
		}
		return json.Marshal(struct {
			BusinessReference string `json:"business_reference"`
			Amount            string `json:"amount"`
			Currency          string `json:"currency"`
		}{order.BusinessReference, order.Amount, order.Currency})
	case providers.RefundCreate:
		var r refund
		if err := json.Unmarshal(request, &r); err != nil {
			return nil, err
		}
		return json.Marshal(struct {
			PaymentID string `json:"payment_id"`
			Amount    string `json:"amount"`
			Currency  string `json:"currency"`
		}{r.PaymentID, r.Amount, r.Currency})
	default:
		return nil, fmt.Errorf("the sandbox has no action %q", action)
	}
}

// recipients counts each address once, as a mail server does.
func recipients(email providers.Email) int {
	seen := map[string]bool{}
	for _, list := range [][]string{email.To, email.Cc, email.Bcc} {
		for _, address := range list {
			seen[address] = true
		}
	}
	return len(seen)
}
