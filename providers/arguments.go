package providers

import "fmt"

// The action types.
const (
	EmailSend          = "email.send"
	PaymentOrderCreate = "payment_order.create"
	RefundCreate       = "refund"
)

// Arguments are a tool's arguments, validated and normalised: an [Email], a
// [PaymentOrder] or a [Refund].
type Arguments interface {
	// Action is the action type they belong to.
	Action() string
}

// An Email is a message to send. Addresses are bare, lower-case, sorted, each once.
type Email struct {
	To       []string `json:"to"`
	Cc       []string `json:"cc,omitempty"`
	Bcc      []string `json:"bcc,omitempty"`
	Subject  string   `json:"subject"`
	Body     string   `json:"body"`
	HTML     string   `json:"html,omitempty"`
	ReplyTo  string   `json:"reply_to,omitempty"`
	Template string   `json:"template,omitempty"`
	About    string   `json:"about,omitempty"`
}

// A PaymentOrder is money to send. Accounts have no spaces or hyphens and are
// upper-case.
type PaymentOrder struct {
	DebitAccount      string `json:"debit_account"`
	PayeeAccount      string `json:"payee_account"`
	PayeeName         string `json:"payee_name"`
	Amount            Money  `json:"amount"`
	BusinessReference string `json:"business_reference"`
	Purpose           string `json:"purpose,omitempty"`
}

// A Refund gives money back on a payment.
type Refund struct {
	PaymentID string `json:"payment_id"`
	Amount    Money  `json:"amount"`
	Reason    string `json:"reason,omitempty"`
	Note      string `json:"note,omitempty"`
}

// Money is an amount in the currency's minor units (cents, yen, fils), with its
// ISO 4217 code.
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// Action implements [Arguments].
func (Email) Action() string { return EmailSend }

// Action implements [Arguments].
func (PaymentOrder) Action() string { return PaymentOrderCreate }

// Action implements [Arguments].
func (Refund) Action() string { return RefundCreate }

// An ArgumentError says which argument a provider can't take, and why. It never
// holds the value.
type ArgumentError struct {
	Field   string
	Problem string
}

func (e *ArgumentError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Problem) }

// Worth is the money that an action moves, if it moves any.
func Worth(args Arguments) (Money, bool) {
	switch a := args.(type) {
	case PaymentOrder:
		return a.Amount, true
	case Refund:
		return a.Amount, true
	}
	return Money{}, false
}
