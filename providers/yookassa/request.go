package yookassa

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/bojanz/currency"
	"github.com/onceward/onceward/providers"
)

// A request is the body of POST /v3/refunds. The note isn't sent.
type request struct {
	PaymentID string            `json:"payment_id"`
	Amount    amount            `json:"amount"`
	Metadata  map[string]string `json:"metadata"`
}

// An amount is a decimal number in a string, with two digits after the point.
type amount struct {
	Value    string `json:"value"`
	Currency string `json:"currency"`
}

// operationKey is the metadata by which a look-up knows a refund of ours.
const operationKey = "onceward_operation"

var paymentID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// Prepare implements [providers.Provider]: the request is JSON with its members in a
// fixed order.
func (p *Provider) Prepare(o providers.Order) ([]byte, error) {
	r, ok := o.Arguments.(providers.Refund)
	if !ok {
		return nil, fmt.Errorf("%s makes refunds only, and has no action for arguments of type %T", Name, o.Arguments)
	}
	if !paymentID.MatchString(r.PaymentID) {
		return nil, &providers.ArgumentError{Field: "payment_id", Problem: "is YooKassa's id of the payment, such as 2419a771-000f-5000-9000-1edaf29243f2"}
	}
	if r.Amount.Minor <= 0 {
		return nil, &providers.ArgumentError{Field: "amount", Problem: "must be more than zero"}
	}
	if digits, known := currency.GetDigits(r.Amount.Currency); !known || digits != 2 {
		return nil, &providers.ArgumentError{Field: "currency", Problem: "is no currency that YooKassa takes: its amounts have two digits after the point"}
	}
	return json.Marshal(request{
		PaymentID: r.PaymentID,
		Amount:    amount{r.Amount.Decimal(), r.Amount.Currency},
		Metadata:  map[string]string{operationKey: o.OperationID},
	})
}

// is compares amounts as numbers: "100.0" is "100.00".
func (a amount) is(b amount) bool {
	return strings.EqualFold(a.Currency, b.Currency) && a.Value != "" && twoDigits(a.Value) == twoDigits(b.Value)
}

func twoDigits(value string) string {
	whole, fraction, _ := strings.Cut(value, ".")
	if len(fraction) < 2 {
		fraction += strings.Repeat("0", 2-len(fraction))
	}
	return whole + "." + fraction
}

// A wanted is what a refund of ours has to be like. It is what a look-up needs, and
// holds no personal data.
type wanted struct {
	Operation string `json:"operation"`
	Payment   string `json:"payment"`
	Amount    amount `json:"amount"`
}

// sent reads what was prepared.
func sent(prepared []byte) (wanted, error) {
	var r request
	err := json.Unmarshal(prepared, &r)
	return wanted{r.Metadata[operationKey], r.PaymentID, r.Amount}, err
}
