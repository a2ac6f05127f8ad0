package statement

import (
	"errors"
	"strings"

	"github.com/onceward/onceward/providers"
)

// money reads an amount without a sign. Zero, which no order can be over, is legal in a
// statement.
func money(decimal, currency string) (providers.Money, error) {
	whole, fraction, pointed := strings.Cut(decimal, ".")
	if zeros(whole) && (!pointed || zeros(fraction)) {
		one, err := providers.ParseMoney("1", currency)
		return providers.Money{Currency: one.Currency}, err
	}
	return providers.ParseMoney(decimal, currency)
}

func zeros(s string) bool { return s != "" && strings.Trim(s, "0") == "" }

// problemOf words what is wrong with an amount, without the amount.
func problemOf(err error) (field, problem string) {
	if bad, ok := errors.AsType[*providers.ArgumentError](err); ok {
		return bad.Field, bad.Problem
	}
	return "amount", "can't be read"
}

// account is an account as the tools normalise it, so that the two compare.
func account(s string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(s))
}

// A notation is how an export writes numbers.
type notation struct {
	mark      string // before the fraction
	thousands string // between groups of three digits; empty: nothing stands there
}

// plain turns an amount without a sign into digits and a point. ok is false where
// something stands in a wrong place: "1.250" may be a thousand or one.
func (n notation) plain(written string) (decimal string, ok bool) {
	whole, fraction, marked := strings.Cut(written, n.mark)
	if n.thousands != "" && strings.Contains(whole, n.thousands) {
		groups := strings.Split(whole, n.thousands)
		for i, g := range groups {
			if len(g) > 3 || len(g) < 3 && i > 0 || g == "" {
				return "", false
			}
		}
		whole = strings.Join(groups, "")
	}
	if !digits(whole) {
		return "", false
	}
	if marked {
		return whole + "." + fraction, true
	}
	return whole, true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
