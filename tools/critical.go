package tools

import (
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// The arguments that make it another action. Free text is never among them.
var (
	emailCritical   = []string{"to", "cc", "bcc", "template", "about"}
	paymentCritical = []string{"debit_account", "payee_account", "amount", "currency", "business_reference"}
	refundCritical  = []string{"payment_id", "amount", "currency"}
)

// Critical names the arguments, by action type, whose hashes a tombstone keeps: a
// repeat of it is still told from another action.
func Critical() map[string][]string {
	return map[string][]string{
		providers.EmailSend:          emailCritical,
		providers.PaymentOrderCreate: paymentCritical,
		providers.RefundCreate:       refundCritical,
	}
}

// worth is what limits on amounts count; nothing where it isn't money.
func worth(order providers.Arguments) ledger.Amount {
	m, _ := providers.Worth(order)
	return ledger.Amount{Minor: m.Minor, Currency: m.Currency}
}
