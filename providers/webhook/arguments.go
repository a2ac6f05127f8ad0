package webhook

import (
	"github.com/onceward/onceward/providers"
)

// The names of arguments that mean something to the provider itself.
const (
	argAmount            = "amount"
	argAmountMinor       = "amount_minor"
	argCurrency          = "currency"
	argBusinessReference = "business_reference"
	argPaymentID         = "payment_id"
	argTo, argCc, argBcc = "to", "cc", "bcc"
)

// known are the arguments of each action type.
var known = map[string][]string{
	providers.PaymentOrderCreate: {"debit_account", "payee_account", "payee_name", argAmount, argAmountMinor, argCurrency, argBusinessReference, "purpose"},
	providers.RefundCreate:       {argPaymentID, argAmount, argAmountMinor, argCurrency, "reason", "note"},
	providers.EmailSend:          {argTo, argCc, argBcc, "subject", "body", "html", "reply_to", "template"},
}

// standard are the bodies of actions whose configuration has none.
var standard = map[string]map[string]string{
	providers.PaymentOrderCreate: {
		"account_id": "debit_account", "payee_account": "payee_account", "payee_name": "payee_name",
		"amount_minor": argAmountMinor, "currency": argCurrency, "business_reference": argBusinessReference, "purpose": "purpose",
	},
	providers.RefundCreate: {
		"payment_id": argPaymentID, "amount_minor": argAmountMinor, "currency": argCurrency, "reason": "reason", "note": "note",
	},
	providers.EmailSend: {
		"to": argTo, "cc": argCc, "bcc": argBcc, "subject": "subject", "body": "body", "html": "html", "reply_to": "reply_to", "template": "template",
	},
}

// values are the arguments by name; those that are empty are left out.
func values(arguments providers.Arguments) map[string]any {
	all := map[string]any{}
	text := func(name, value string) {
		if value != "" {
			all[name] = value
		}
	}
	list := func(name string, addresses []string) {
		if len(addresses) > 0 {
			all[name] = addresses
		}
	}
	money := func(m providers.Money) {
		all[argAmount], all[argAmountMinor], all[argCurrency] = m.Decimal(), m.Minor, m.Currency
	}
	switch a := arguments.(type) {
	case providers.PaymentOrder:
		text("debit_account", a.DebitAccount)
		text("payee_account", a.PayeeAccount)
		text("payee_name", a.PayeeName)
		text(argBusinessReference, a.BusinessReference)
		text("purpose", a.Purpose)
		money(a.Amount)
	case providers.Refund:
		text(argPaymentID, a.PaymentID)
		text("reason", a.Reason)
		text("note", a.Note)
		money(a.Amount)
	case providers.Email:
		list(argTo, a.To)
		list(argCc, a.Cc)
		list(argBcc, a.Bcc)
		text("subject", a.Subject)
		text("body", a.Body)
		text("html", a.HTML)
		text("reply_to", a.ReplyTo)
		text("template", a.Template)
	}
	return all
}
