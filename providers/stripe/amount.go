package stripe

import (
	"slices"

	"github.com/bojanz/currency"
	"github.com/onceward/onceward/providers"
)

// Stripe's minor units aren't always those of ISO 4217 ("Supported currencies", sections
// "Zero-decimal currencies", "Three-decimal currencies" and "Special cases").
var (
	// An amount of 500 is 500 yen. MGA has two digits in ISO 4217.
	zeroDecimal = []string{"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF"}
	// An amount of 500 is 5 krónur, and there are no fractions. The page has UGX in its list
	// of zero-decimal currencies too; its special cases say how to write it.
	wholeButTwoDecimal = []string{"ISK", "UGX"}
	// The last digit has to be 0.
	threeDecimal = []string{"BHD", "JOD", "KWD", "OMR", "TND"}
)

// amountOf writes an amount in Stripe's units, or refuses: it is never rounded.
func amountOf(m providers.Money) (int64, error) {
	digits, known := currency.GetDigits(m.Currency)
	if !known {
		return 0, &providers.ArgumentError{Field: "currency", Problem: "is no currency that Stripe knows"}
	}
	if m.Minor <= 0 {
		return 0, badAmount("must be more than zero")
	}
	theirs, step := int64(100), int64(1)
	switch {
	case slices.Contains(zeroDecimal, m.Currency):
		theirs = 1
	case slices.Contains(wholeButTwoDecimal, m.Currency):
		step = 100
	case slices.Contains(threeDecimal, m.Currency):
		theirs, step = 1000, 10
	case digits != 2:
		return 0, &providers.ArgumentError{Field: "currency", Problem: "is no currency that Stripe takes"}
	}
	ours := int64(1)
	for range digits {
		ours *= 10
	}
	switch {
	case m.Minor > maxAmount:
		return 0, badAmount("is larger than Stripe takes")
	case m.Minor*theirs%ours != 0:
		return 0, badAmount("has a fraction, which Stripe doesn't take in this currency")
	case m.Minor*theirs/ours%step != 0 && step == 10:
		return 0, badAmount("must end with a zero in the third digit after the point: Stripe takes no other in this currency")
	case m.Minor*theirs/ours%step != 0:
		return 0, badAmount("has a fraction, which Stripe doesn't take in this currency")
	}
	return m.Minor * theirs / ours, nil
}

// maxAmount is far above what Stripe takes (up to twelve digits for some currencies),
// and keeps the multiplication within 64 bits.
const maxAmount = 1e13

func badAmount(problem string) error {
	return &providers.ArgumentError{Field: "amount", Problem: problem}
}
