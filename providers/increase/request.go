package increase

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/onceward/onceward/providers"
)

const usd = "USD"

// maxAddendum is how many characters the payment related information of an ACH addendum
// holds (Nacha's file format; not confirmed in Increase's documentation).
const maxAddendum = 80

// A kind is a kind of transfer: where it is created and listed, and what it is called.
type kind struct {
	path       string
	objectType string
}

var kinds = map[string]kind{
	"ach":     {"ach_transfers", "ach_transfer"},
	"account": {"account_transfers", "account_transfer"},
}

// A request is the body of either kind of transfer ("ACH Transfers", "Account
// Transfers": Create).
type request struct {
	AccountID            string   `json:"account_id"`
	Amount               int64    `json:"amount"` // cents; a positive ACH amount is a credit
	StatementDescriptor  string   `json:"statement_descriptor,omitempty"`
	ExternalAccountID    string   `json:"external_account_id,omitempty"`
	AccountNumber        string   `json:"account_number,omitempty"`
	RoutingNumber        string   `json:"routing_number,omitempty"`
	Funding              string   `json:"funding,omitempty"`
	IndividualName       string   `json:"individual_name,omitempty"`
	Addenda              *addenda `json:"addenda,omitempty"`
	Description          string   `json:"description,omitempty"`
	DestinationAccountID string   `json:"destination_account_id,omitempty"`
	RequireApproval      bool     `json:"require_approval,omitempty"`
}

type addenda struct {
	Category string   `json:"category"`
	Freeform freeform `json:"freeform"`
}

type freeform struct {
	Entries []entry `json:"entries"`
}

type entry struct {
	PaymentRelatedInformation string `json:"payment_related_information"`
}

// Prepare implements [providers.Provider].
func (p *Provider) Prepare(o providers.Order) ([]byte, error) {
	order, ok := o.Arguments.(providers.PaymentOrder)
	if !ok {
		return nil, fmt.Errorf("increase creates payment orders, not %s", o.Arguments.Action())
	}
	switch {
	case order.Amount.Currency != usd:
		return nil, &providers.ArgumentError{Field: "currency", Problem: "must be USD: Increase moves nothing else"}
	case order.Amount.Minor <= 0:
		return nil, &providers.ArgumentError{Field: "amount", Problem: "must be more than zero"}
	case order.BusinessReference == "":
		return nil, &providers.ArgumentError{Field: "business_reference", Problem: "is missing"}
	}
	debit, err := p.ownAccount("debit_account", order.DebitAccount)
	if err != nil {
		return nil, err
	}
	r := request{AccountID: debit, Amount: order.Amount.Minor, RequireApproval: p.requireApproval}
	if p.kind == kinds["account"] {
		err = p.accountTransfer(&r, order)
	} else {
		err = p.achTransfer(&r, order)
	}
	if err != nil {
		return nil, err
	}
	return render(r)
}

func (p *Provider) achTransfer(r *request, order providers.PaymentOrder) error {
	payee := p.resolve(order.PayeeAccount)
	switch {
	case externalID.MatchString(payee):
		r.ExternalAccountID = payee
	case isBankNumber(payee):
		r.RoutingNumber, r.AccountNumber, _ = strings.Cut(payee, ":")
		r.Funding = p.funding
	default:
		return &providers.ArgumentError{Field: "payee_account", Problem: "must be ROUTING:ACCOUNT with a valid routing number, the id of an external account (external_account_...), or a name that the configuration gives one"}
	}
	r.StatementDescriptor, r.IndividualName = order.BusinessReference, order.PayeeName
	if order.Purpose == "" {
		return nil
	}
	if utf8.RuneCountInString(order.Purpose) > maxAddendum {
		return &providers.ArgumentError{Field: "purpose", Problem: fmt.Sprintf("is longer than the %d characters that an ACH transfer carries", maxAddendum)}
	}
	r.Addenda = &addenda{"freeform", freeform{[]entry{{order.Purpose}}}}
	return nil
}

func (p *Provider) accountTransfer(r *request, order providers.PaymentOrder) error {
	payee, err := p.ownAccount("payee_account", order.PayeeAccount)
	if err != nil {
		return err
	}
	r.DestinationAccountID, r.Description = payee, order.BusinessReference
	return nil
}

// render leaves <, > and & as they are: people read them on statements.
func render(r request) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("render the transfer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
