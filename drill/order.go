package drill

import (
	"cmp"
	"maps"
	"slices"

	"github.com/onceward/onceward/providers"
)

// An order is what a call wants done. Every scenario's has a name of its own, so that no two look
// alike.
type order struct {
	action   string
	name     string // the payment, the reference, or whose address it is
	domain   string // of the address
	minor    int64
	currency string
	words    string // free text
	template string
}

func (o order) money() providers.Money { return providers.Money{Minor: o.minor, Currency: o.currency} }

func (o order) address() string { return o.name + "@" + o.domain }

// arguments are the tool's.
func (o order) arguments() map[string]any {
	switch o.action {
	case providers.EmailSend:
		args := map[string]any{"to": []string{o.address()}, "subject": o.words, "body": "This is a drill."}
		if o.template != "" {
			args["template"] = o.template
		}
		return args
	case providers.PaymentOrderCreate:
		return map[string]any{
			"debit_account": "DE89370400440532013000", "payee_account": "GB82WEST12345698765432", "payee_name": "Example Supplies",
			"amount": o.money().Decimal(), "currency": o.currency, "business_reference": o.name, "purpose": o.words,
		}
	default:
		return map[string]any{"payment_id": o.name, "amount": o.money().Decimal(), "currency": o.currency, "note": o.words}
	}
}

// typed is what the policy looks at.
func (o order) typed() providers.Arguments {
	switch o.action {
	case providers.EmailSend:
		return providers.Email{To: []string{o.address()}}
	case providers.PaymentOrderCreate:
		return providers.PaymentOrder{Amount: o.money()}
	default:
		return providers.Refund{Amount: o.money()}
	}
}

// reworded says the same in other words.
func (o order) reworded() order {
	o.words = "The same, said otherwise"
	return o
}

// other is another action under the same name.
func (o order) other() order {
	if o.action == providers.EmailSend {
		o.name += "-other"
		return o
	}
	o.minor++
	return o
}

// plain is an order that passes the policy as easily as any.
func (s Subject) plain() order {
	o := order{action: s.Action, domain: "example.com", words: "A drill"}
	if len(s.Templates) > 0 {
		o.template = s.Templates[0]
	}
	if s.Action == providers.EmailSend {
		if inside := s.Tool.Approval.RecipientsOutside; len(inside) > 0 {
			o.domain = inside[0]
		}
		return o
	}
	o.currency, o.minor = s.currency(), 100
	for _, l := range s.Policy.Rules.Limits {
		if l.Currency == o.currency {
			o.minor = min(o.minor, max(1, l.Max/4)) // some scenarios do two
		}
	}
	if above, ok := s.Tool.Approval.Above[o.currency]; ok {
		if m, err := providers.ParseMoney(string(above), o.currency); err == nil {
			o.minor = max(1, min(o.minor, m.Minor-1)) // one more is still not above
		}
	}
	return o
}

// currency is one that the provider takes, and the limits and the approval speak of.
func (s Subject) currency() string {
	var limited []string
	for _, l := range s.Policy.Rules.Limits {
		if l.Currency != "" {
			limited = append(limited, l.Currency)
		}
	}
	above := slices.Sorted(maps.Keys(s.Tool.Approval.Above))
	fits := func(code string) int {
		n := 0
		for _, named := range [][]string{s.Traits.Currencies, limited, above} {
			if len(named) == 0 || slices.Contains(named, code) {
				n++
			}
		}
		return n
	}
	candidates := slices.Concat(s.Traits.Currencies, limited, above)
	if len(candidates) == 0 {
		return "EUR"
	}
	slices.Sort(candidates)
	return slices.MaxFunc(candidates, func(a, b string) int { return cmp.Compare(fits(a), fits(b)) })
}

// sensitive is an order that needs a person's approval; false if the policy lets all pass.
func (s Subject) sensitive(o order) (order, bool) {
	if s.Policy.NeedsApproval(o.typed()) != "" {
		return o, true
	}
	if s.Action == providers.EmailSend {
		o.domain = "elsewhere.example.net"
		return o, s.Policy.NeedsApproval(o.typed()) != ""
	}
	if above, ok := s.Tool.Approval.Above[o.currency]; ok {
		if m, err := providers.ParseMoney(string(above), o.currency); err == nil {
			o.minor = m.Minor + 1
		}
	}
	return o, s.Policy.NeedsApproval(o.typed()) != ""
}
