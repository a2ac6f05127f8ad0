package tools

import "github.com/onceward/onceward/providers"

const (
	amountProperty   = `"amount": {"type": "string", "maxLength": 32, "pattern": "^[0-9]+([.][0-9]+)?$", "description": "A decimal string like \"1250.00\": above zero, no more digits after the point than the currency has, never a number."}`
	currencyProperty = `"currency": {"type": "string", "pattern": "^[A-Za-z]{3}$", "description": "The ISO 4217 code, like EUR."}`
	amountHint       = `send a decimal string like "1250.00", without sign or exponent`
	currencyHint     = "send an ISO 4217 code like EUR"
)

// paymentOrderCreate identifies an order by the business's own reference.
func (s *Set) paymentOrderCreate() *tool {
	return s.guarded(effect{
		critical:    paymentCritical,
		identifying: []string{"business_reference"},
		decode:      decodePaymentOrder,
	}, tool{
		name:  providers.PaymentOrderCreate,
		title: "create a payment order",
		description: "Creates one payment order: money leaves the debit account for the payee's. It is created at most once for one business action: a repeated call creates nothing again and gets the first call's result. " +
			"A repeat with another account, amount, currency or reference is refused. " + advice,
		input: object(
			[]string{"debit_account", "payee_account", "payee_name", "amount", "currency", "business_reference"},
			`"debit_account": {"type": "string", "minLength": 1, "maxLength": 512, "description": "The account that pays, such as an IBAN. Spaces and hyphens don't count."}`,
			`"payee_account": {"type": "string", "minLength": 1, "maxLength": 512, "description": "The account that is paid, such as an IBAN. Spaces and hyphens don't count."}`,
			`"payee_name": {"type": "string", "minLength": 1, "maxLength": 512, "description": "Who is paid."}`,
			amountProperty,
			currencyProperty,
			`"business_reference": {"type": "string", "minLength": 1, "maxLength": 512, "description": "The business's own reference for this payment, such as an invoice number, exactly as it is written there."}`,
			`"purpose": {"type": "string", "maxLength": 512, "description": "What the payee reads, in one line."}`,
		),
		hints: map[string]string{"amount": amountHint, "currency": currencyHint},
	})
}

func decodePaymentOrder(a *arguments) (providers.Arguments, values) {
	o := providers.PaymentOrder{
		DebitAccount:      a.account("debit_account"),
		PayeeAccount:      a.account("payee_account"),
		PayeeName:         a.line("payee_name", maxText, true),
		Amount:            a.money(),
		BusinessReference: a.name("business_reference"),
		Purpose:           a.line("purpose", maxText, false),
	}
	return o, values{
		"debit_account": o.DebitAccount, "payee_account": o.PayeeAccount, "payee_name": o.PayeeName,
		"amount": o.Amount.Minor, "currency": o.Amount.Currency, "business_reference": o.BusinessReference, "purpose": o.Purpose,
	}
}
