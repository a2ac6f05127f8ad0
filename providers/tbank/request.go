package tbank

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/onceward/onceward/providers"
)

const rub = "RUB"

// maxPurpose is how many characters the purpose of a payment has at most.
const maxPurpose = 210

// A request is a payment as it is sent, but for its id, which is the attempt's key.
type request struct {
	From    payer       `json:"from"`
	To      requisites  `json:"to"`
	Purpose string      `json:"purpose"`
	Amount  json.Number `json:"amount"` // roubles, with kopecks after the point
	Meta    meta        `json:"meta"`
}

type payer struct {
	AccountNumber string `json:"accountNumber"`
	KPP           string `json:"kpp,omitempty"`
}

// A meta comes back with the payment's status.
type meta struct {
	BusinessReference string `json:"business_reference"`
	Amount            string `json:"amount"`
}

// Prepare implements [providers.Provider].
func (p *Provider) Prepare(o providers.Order) ([]byte, error) {
	order, ok := o.Arguments.(providers.PaymentOrder)
	if !ok {
		return nil, fmt.Errorf("tbank creates payment orders, not %s", o.Arguments.Action())
	}
	switch {
	case order.Amount.Currency != rub:
		return nil, &providers.ArgumentError{Field: "currency", Problem: "must be RUB: these payments are in roubles"}
	case order.Amount.Minor <= 0:
		return nil, &providers.ArgumentError{Field: "amount", Problem: "must be more than zero"}
	case !accountDigits.MatchString(order.DebitAccount):
		return nil, &providers.ArgumentError{Field: "debit_account", Problem: "must be an account number of 20 or 22 digits"}
	case order.BusinessReference == "":
		return nil, &providers.ArgumentError{Field: "business_reference", Problem: "is missing"}
	case order.PayeeName == "":
		return nil, &providers.ArgumentError{Field: "payee_name", Problem: "is missing"}
	}
	payee, problem := p.payee(order.PayeeAccount)
	if problem != "" {
		return nil, &providers.ArgumentError{Field: "payee_account", Problem: problem}
	}
	payee.Name = order.PayeeName
	purpose, field := order.Purpose, "purpose"
	if purpose == "" {
		purpose, field = order.BusinessReference, "business_reference"
	}
	if utf8.RuneCountInString(purpose) > maxPurpose {
		return nil, &providers.ArgumentError{Field: field, Problem: fmt.Sprintf("is longer than the %d characters that the bank takes", maxPurpose)}
	}
	amount := order.Amount.Decimal()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(request{
		From: payer{order.DebitAccount, p.kpp}, To: payee, Purpose: purpose,
		Amount: json.Number(amount), Meta: meta{order.BusinessReference, amount},
	})
	if err != nil {
		return nil, fmt.Errorf("render the payment: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withID puts the key first into a rendered request, the same way every time.
func withID(rendered []byte, key string) []byte {
	return append([]byte(`{"id":"`+key+`",`), rendered[1:]...)
}
