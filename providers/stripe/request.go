package stripe

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/onceward/onceward/providers"
)

// operationKey is the metadata by which a look-up knows a refund of ours.
const operationKey = "onceward_operation"

// paymentID matches the ids of PaymentIntents and of charges, old (ch_) and of other
// payment methods than cards (py_).
var paymentID = regexp.MustCompile(`^(pi|ch|py)_[A-Za-z0-9_]{1,250}$`)

// reasons are those that the API takes ("Create a refund").
var reasons = []string{"", "duplicate", "fraudulent", "requested_by_customer"}

// Prepare implements [providers.Provider]: the request is a form. The amount is always in
// it, for without one Stripe refunds all that is left. The note isn't sent.
func (p *Provider) Prepare(o providers.Order) ([]byte, error) {
	r, ok := o.Arguments.(providers.Refund)
	if !ok {
		return nil, fmt.Errorf("%s makes refunds only, and has no action for arguments of type %T", Name, o.Arguments)
	}
	if !paymentID.MatchString(r.PaymentID) {
		return nil, &providers.ArgumentError{Field: "payment_id", Problem: "is Stripe's id of the payment, which begins with pi_, ch_ or py_"}
	}
	if !slices.Contains(reasons, r.Reason) {
		return nil, &providers.ArgumentError{Field: "reason", Problem: "is duplicate, fraudulent or requested_by_customer"}
	}
	amount, err := amountOf(r.Amount)
	if err != nil {
		return nil, err
	}
	form := url.Values{
		parent(r.PaymentID):               {r.PaymentID},
		"amount":                          {strconv.FormatInt(amount, 10)},
		"metadata[" + operationKey + "]":  {o.OperationID},
		"metadata[" + currencyKey + "]":   {r.Amount.Currency},
		"metadata[" + orderedAmount + "]": {r.Amount.Decimal()},
	}
	if r.Reason != "" {
		form.Set("reason", r.Reason)
	}
	return []byte(form.Encode()), nil
}

// The order as the caller knows it, for people who look at the Dashboard, and for this
// provider, which reads it back from what was sealed.
const (
	currencyKey   = "onceward_currency"
	orderedAmount = "onceward_amount"
)

// parent is the parameter that names the payment, in requests and in look-ups.
func parent(payment string) string {
	if strings.HasPrefix(payment, "pi_") {
		return "payment_intent"
	}
	return "charge"
}

// A wanted is what a refund of ours has to be like. It is what a look-up needs, and
// holds no personal data.
type wanted struct {
	Operation string `json:"operation"`
	Payment   string `json:"payment"`
	Units     int64  `json:"units"` // Stripe's
	Amount    string `json:"amount"`
	Currency  string `json:"currency"`
}

// sent reads what was prepared.
func sent(request []byte) (wanted, error) {
	form, err := url.ParseQuery(string(request))
	if err != nil {
		return wanted{}, err
	}
	units, err := strconv.ParseInt(form.Get("amount"), 10, 64)
	if err != nil {
		return wanted{}, err
	}
	return wanted{
		Operation: form.Get("metadata[" + operationKey + "]"),
		Payment:   form.Get("payment_intent") + form.Get("charge"),
		Units:     units,
		Amount:    form.Get("metadata[" + orderedAmount + "]"),
		Currency:  form.Get("metadata[" + currencyKey + "]"),
	}, nil
}
