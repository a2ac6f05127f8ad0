package providers

import (
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// ParseMoney reads an amount of money as the tools take it: a decimal string such
// as "1250.00" and an ISO 4217 code, whose letter case doesn't matter. "100",
// "100.0" and "100.00" are the same amount of a currency with two digits.
//
// A sign, an exponent, a space, a separator, a leading zero before another digit
// and more digits than the currency has are refused, even if they wouldn't
// change the value: whoever writes "0100" or "1.000" may mean something else. So
// are zero and what doesn't fit 64 bits. No float is involved. The error is an
// *[ArgumentError] for "amount" or "currency".
func ParseMoney(amount, code string) (Money, error) {
	code, digits, ok := currencyOf(code)
	if !ok {
		return Money{}, &ArgumentError{"currency", "must be a current ISO 4217 code, such as USD or EUR"}
	}
	whole, fraction, pointed := strings.Cut(amount, ".")
	switch {
	case !onlyDigits(whole) || pointed && !onlyDigits(fraction):
		return Money{}, amountError(`must be a plain decimal number written as a string, such as "1250.00": digits and at most one point between them, without sign, exponent, spaces or separators`)
	case len(whole) > 1 && whole[0] == '0':
		return Money{}, amountError("must not begin with a zero that another digit follows")
	case len(fraction) > digits:
		return Money{}, amountError("has more digits after the point than " + code + ", which has " + strconv.Itoa(digits))
	}
	minor, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	if err != nil {
		return Money{}, amountError("is too large")
	}
	if minor == 0 {
		return Money{}, amountError("must be more than zero")
	}
	return Money{Minor: minor, Currency: code}, nil
}

// Decimal writes the amount with as many digits after the point as its currency
// has: "1250.00" for dollars, "1250" for yen, "1250.000" for Kuwaiti dinars. An amount
// of an unknown currency is written in minor units.
func (m Money) Decimal() string {
	digits, _ := currency.GetDigits(m.Currency)
	if digits == 0 {
		return strconv.FormatInt(m.Minor, 10)
	}
	text, sign := strconv.FormatInt(m.Minor, 10), ""
	if strings.HasPrefix(text, "-") {
		text, sign = text[1:], "-"
	}
	if missing := int(digits) + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	point := len(text) - int(digits)
	return sign + text[:point] + "." + text[point:]
}

// currencyOf gives a currency's code in capitals and its number of digits after
// the point. Only ASCII letters count: the long s is no S.
func currencyOf(code string) (capitals string, digits int, ok bool) {
	for i := range len(code) {
		if c := code[i] &^ 0x20; c < 'A' || c > 'Z' {
			return "", 0, false
		}
	}
	capitals = strings.ToUpper(code)
	n, ok := currency.GetDigits(capitals)
	return capitals, int(n), ok
}

func onlyDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func amountError(problem string) error { return &ArgumentError{"amount", problem} }
