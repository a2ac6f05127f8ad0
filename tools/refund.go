package tools

import "github.com/onceward/onceward/providers"

var refundReasons = []string{"requested_by_customer", "duplicate", "fraudulent"}

// refund identifies a refund by the payment it gives back.
func (s *Set) refund() *tool {
	return s.guarded(effect{
		critical:    refundCritical,
		identifying: []string{"payment_id"},
		decode:      decodeRefund,
	}, tool{
		name:  providers.RefundCreate,
		title: "refund a payment",
		description: "Gives money back on one payment. It is made at most once for one business action: a repeated call refunds nothing again and gets the first call's result. " +
			"A repeat with another payment, amount or currency is refused. " + advice,
		input: object(
			[]string{"payment_id", "amount", "currency"},
			`"payment_id": {"type": "string", "minLength": 1, "maxLength": 512, "description": "The id of the payment, exactly as the payment system has it."}`,
			amountProperty,
			currencyProperty,
			`"reason": {"type": "string", "enum": `+enum(refundReasons)+`, "description": "Why it is given back."}`,
			`"note": {"type": "string", "maxLength": 512, "description": "A remark for the books."}`,
		),
		hints: map[string]string{"amount": amountHint, "currency": currencyHint},
	})
}

func decodeRefund(a *arguments) (providers.Arguments, values) {
	r := providers.Refund{
		PaymentID: a.name("payment_id"),
		Amount:    a.money(),
		Reason:    a.choice("reason", refundReasons, false),
		Note:      a.text("note", maxText, false),
	}
	return r, values{
		"payment_id": r.PaymentID, "amount": r.Amount.Minor, "currency": r.Amount.Currency, "reason": r.Reason, "note": r.Note,
	}
}
