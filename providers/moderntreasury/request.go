package moderntreasury

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/onceward/onceward/providers"
)

// A request is a payment order as it is sent, but for its external_id, which is the key
// of the attempt ("Create Payment Order").
type request struct {
	Type                  string   `json:"type"`
	Subtype               string   `json:"subtype,omitempty"`
	Priority              string   `json:"priority,omitempty"`
	Direction             string   `json:"direction"`
	Amount                int64    `json:"amount"` // in the currency's smallest unit
	Currency              string   `json:"currency"`
	OriginatingAccountID  string   `json:"originating_account_id"`
	ReceivingAccountID    string   `json:"receiving_account_id"`
	RemittanceInformation string   `json:"remittance_information,omitempty"`
	Metadata              metadata `json:"metadata"`
}

type metadata struct {
	BusinessReference string `json:"business_reference"`
}

// Prepare implements [providers.Provider].
func (p *Provider) Prepare(o providers.Order) ([]byte, error) {
	order, ok := o.Arguments.(providers.PaymentOrder)
	if !ok {
		return nil, fmt.Errorf("moderntreasury creates payment orders, not %s", o.Arguments.Action())
	}
	switch {
	case !slices.Contains(p.currencies, order.Amount.Currency):
		return nil, &providers.ArgumentError{Field: "currency", Problem: "must be one of those that the configuration allows: " + strings.Join(p.currencies, ", ")}
	case order.Amount.Minor <= 0:
		return nil, &providers.ArgumentError{Field: "amount", Problem: "must be more than zero"}
	case order.BusinessReference == "":
		return nil, &providers.ArgumentError{Field: "business_reference", Problem: "is missing"}
	}
	r := p.order
	r.Amount, r.Currency = order.Amount.Minor, order.Amount.Currency
	r.RemittanceInformation, r.Metadata.BusinessReference = order.Purpose, order.BusinessReference
	if r.OriginatingAccountID, ok = p.account(order.DebitAccount); !ok {
		return nil, notAnAccount("debit_account")
	}
	if r.ReceivingAccountID, ok = p.account(order.PayeeAccount); !ok {
		return nil, notAnAccount("payee_account")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("render the payment order: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withExternalID puts the key first into a rendered request, the same way every time.
func withExternalID(rendered []byte, key string) []byte {
	return append([]byte(`{"external_id":"`+key+`",`), rendered[1:]...)
}

func notAnAccount(field string) error {
	return &providers.ArgumentError{Field: field, Problem: "must be the id (UUID) of an account at Modern Treasury, or a name that the configuration gives one"}
}

// account reads an account argument, which the tools write in capitals, without spaces and
// hyphens.
func (p *Provider) account(argument string) (id string, ok bool) {
	if id, ok := p.accounts[argument]; ok {
		return id, true
	}
	return uuid(argument)
}

// uuid writes 32 hexadecimal digits as a UUID.
func uuid(s string) (string, bool) {
	s = strings.ToLower(strings.ReplaceAll(s, "-", ""))
	if len(s) != 32 || strings.Trim(s, "0123456789abcdef") != "" {
		return "", false
	}
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:], true
}

// readAccounts brings the names into the tools' spelling.
func readAccounts(configured map[string]string) (map[string]string, error) {
	accounts := make(map[string]string, len(configured))
	for name, account := range configured {
		spelt := strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(name))
		id, ok := uuid(account)
		_, twice := accounts[spelt]
		switch {
		case spelt == "":
			return nil, fmt.Errorf("accounts has an empty name")
		case twice:
			return nil, fmt.Errorf("accounts has %q twice: letter case, spaces and hyphens don't count", name)
		case !ok:
			return nil, fmt.Errorf("accounts: %q names no account: write its id, a UUID", name)
		}
		accounts[spelt] = id
	}
	return accounts, nil
}
