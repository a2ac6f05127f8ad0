package providers

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseMoney(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		amount, currency string
		want             Money
		decimal          string
	}{
		{"1250.00", "USD", Money{125000, "USD"}, "1250.00"},
		{"100", "USD", Money{10000, "USD"}, "100.00"},
		{"100.0", "USD", Money{10000, "USD"}, "100.00"},
		{"100.00", "usd", Money{10000, "USD"}, "100.00"},
		{"0.01", "EUR", Money{1, "EUR"}, "0.01"},
		{"0.10", "EUR", Money{10, "EUR"}, "0.10"},
		{"1250", "JPY", Money{1250, "JPY"}, "1250"},
		{"1.250", "KWD", Money{1250, "KWD"}, "1.250"},
		{"0.001", "KWD", Money{1, "KWD"}, "0.001"},
		{"1", "CLF", Money{10000, "CLF"}, "1.0000"},
		{"92233720368547758.07", "USD", Money{math.MaxInt64, "USD"}, "92233720368547758.07"},
		{"9223372036854775807", "JPY", Money{math.MaxInt64, "JPY"}, "9223372036854775807"},
	} {
		t.Run(tt.amount+" "+tt.currency, func(t *testing.T) {
			t.Parallel()
			got, err := ParseMoney(tt.amount, tt.currency)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ParseMoney (-want +got):\n%s", diff)
			}
			if got.Decimal() != tt.decimal {
				t.Errorf("Decimal() = %q, want %q", got.Decimal(), tt.decimal)
			}
		})
	}
}

func TestParseMoneyRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, amount, currency, field string }{
		{"empty", "", "USD", "amount"},
		{"zero", "0", "USD", "amount"},
		{"zero with digits", "0.00", "USD", "amount"},
		{"negative", "-1.00", "USD", "amount"},
		{"plus", "+1.00", "USD", "amount"},
		{"exponent", "1e3", "USD", "amount"},
		{"capital exponent", "1E3", "USD", "amount"},
		{"hexadecimal", "0x10", "USD", "amount"},
		{"underscore", "1_000", "USD", "amount"},
		{"leading space", " 1.00", "USD", "amount"},
		{"trailing space", "1.00 ", "USD", "amount"},
		{"line break", "1.00\n", "USD", "amount"},
		{"thousands separator", "1,250.00", "USD", "amount"},
		{"decimal comma", "1250,00", "USD", "amount"},
		{"no digit before the point", ".50", "USD", "amount"},
		{"no digit after the point", "1.", "USD", "amount"},
		{"point alone", ".", "USD", "amount"},
		{"two points", "1.0.0", "USD", "amount"},
		{"leading zero", "01.00", "USD", "amount"},
		{"leading zeros", "00.50", "USD", "amount"},
		{"three digits for two", "1.005", "USD", "amount"},
		{"a third digit that is zero", "1.000", "USD", "amount"},
		{"digits for yen", "1.0", "JPY", "amount"},
		{"four digits for three", "1.0000", "KWD", "amount"},
		{"above 64 bits", "92233720368547758.08", "USD", "amount"},
		{"far above 64 bits", strings.Repeat("9", 400), "USD", "amount"},
		{"Arabic digits", "١٠٠", "USD", "amount"},
		{"full-width digits", "１００", "USD", "amount"},
		{"not a number", "NaN", "USD", "amount"},
		{"infinity", "Inf", "USD", "amount"},
		{"unknown currency", "1.00", "ZZZ", "currency"},
		{"no currency", "1.00", "", "currency"},
		{"currency with a space", "1.00", "USD ", "currency"},
		{"long s in a currency", "1.00", "uſd", "currency"},
		{"name of a currency", "1.00", "dollar", "currency"},
		{"symbol of a currency", "1.00", "$", "currency"},
		{"bad UTF-8 in a currency", "1.00", "US\xff", "currency"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseMoney(tt.amount, tt.currency)
			problem, ok := errors.AsType[*ArgumentError](err)
			if !ok {
				t.Fatalf("ParseMoney = %v, %v; want an *ArgumentError", got, err)
			}
			if problem.Field != tt.field {
				t.Errorf("field = %q, want %q", problem.Field, tt.field)
			}
			if got != (Money{}) {
				t.Errorf("money = %v beside the error", got)
			}
		})
	}
}

func TestParseMoneyNeverQuotesTheAmount(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"-73519.42", "73519.425", "073519", "7351973519735197351973519", "73519e2"} {
		_, err := ParseMoney(amount, "USD")
		if err == nil || strings.Contains(err.Error(), "73519") {
			t.Errorf("error for a bad amount: %v", err)
		}
	}
}

// TestDigits has the minor units that ISO 4217 gives, so that a change of the currency
// table is noticed.
func TestDigits(t *testing.T) {
	t.Parallel()
	for want, codes := range map[string]string{
		"1":      "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
		"1.00":   "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF IDR INR IRR LAK LBP MGA MXN NOK NZD PLN RUB SEK SGD TRY USD ZAR",
		"1.000":  "BHD IQD JOD KWD LYD OMR TND",
		"1.0000": "CLF UYW",
	} {
		for _, code := range strings.Fields(codes) {
			m, err := ParseMoney("1", code)
			if err != nil || m.Decimal() != want {
				t.Errorf("1 %s = %q, %v; want %q", code, m.Decimal(), err, want)
			}
		}
	}
}

func TestDecimalOfOddAmounts(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Money{
		"-0.05":                 {-5, "USD"},
		"-12.34":                {-1234, "USD"},
		"-92233720368547758.08": {math.MinInt64, "USD"},
		"0.00":                  {0, "USD"},
		"1234":                  {1234, "ZZZ"},
	} {
		if got := m.Decimal(); got != want {
			t.Errorf("%v.Decimal() = %q, want %q", m, got, want)
		}
	}
}

// What Decimal writes, ParseMoney reads, and exact fractions agree on its value.
func TestMoneyRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := Money{
			Minor:    rapid.Int64Range(1, math.MaxInt64).Draw(t, "minor"),
			Currency: rapid.SampledFrom(currency.GetCurrencyCodes()).Draw(t, "currency"),
		}
		got, err := ParseMoney(m.Decimal(), m.Currency)
		if err != nil {
			t.Fatal(err)
		}
		if got != m {
			t.Fatalf("ParseMoney(%q) = %v, want %v", m.Decimal(), got, m)
		}
		if minor := minorOf(t, m.Decimal(), m.Currency); minor.Cmp(big.NewRat(m.Minor, 1)) != 0 {
			t.Fatalf("%q is %v minor units, want %d", m.Decimal(), minor, m.Minor)
		}
	})
}

var plain = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// Whatever text is accepted is plain, and exact fractions agree on its value.
func TestParseMoneyAgreesWithFractions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.StringMatching(`[-+ ]?[0-9]{0,20}[.,e]?[0-9]{0,5}`).Draw(t, "amount")
		code := rapid.SampledFrom([]string{"USD", "JPY", "KWD", "CLF"}).Draw(t, "currency")
		got, err := ParseMoney(amount, code)
		if !plain.MatchString(amount) {
			if err == nil {
				t.Fatalf("%q was accepted", amount)
			}
			return
		}
		minor := minorOf(t, amount, code)
		_, fraction, _ := strings.Cut(amount, ".")
		digits, _ := currency.GetDigits(code)
		good := minor.Sign() > 0 && len(fraction) <= int(digits) && minor.Cmp(big.NewRat(math.MaxInt64, 1)) <= 0
		if good != (err == nil) {
			t.Fatalf("ParseMoney(%q, %s) = %v, %v", amount, code, got, err)
		}
		if good && minor.Cmp(big.NewRat(got.Minor, 1)) != 0 {
			t.Fatalf("ParseMoney(%q, %s) = %v, want %v", amount, code, got, minor)
		}
	})
}

func minorOf(t *rapid.T, amount, code string) *big.Rat {
	value, ok := new(big.Rat).SetString(amount)
	if !ok {
		t.Fatalf("%q is no number", amount)
	}
	digits, _ := currency.GetDigits(code)
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	return value.Mul(value, new(big.Rat).SetInt(scale))
}
