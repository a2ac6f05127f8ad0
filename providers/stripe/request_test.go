package stripe_test

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/stripe"
)

func prepare(t *testing.T, r providers.Refund) ([]byte, error) {
	t.Helper()
	p, err := stripe.New(stripe.Config{APIKeyFile: keyFile(t, plantedKey)})
	if err != nil {
		t.Fatal(err)
	}
	return p.Prepare(providers.Order{OperationID: "op_1", ProviderKey: "k", Arguments: r})
}

func TestRequest(t *testing.T) {
	t.Parallel()
	got, err := prepare(t, providers.Refund{
		PaymentID: "pi_3Abc", Amount: providers.Money{Minor: 125_000, Currency: "EUR"}, Reason: "duplicate", Note: plantedNote,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "amount=125000&metadata%5Bonceward_amount%5D=1250.00&metadata%5Bonceward_currency%5D=EUR" +
		"&metadata%5Bonceward_operation%5D=op_1&payment_intent=pi_3Abc&reason=duplicate"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestPaymentIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"pi_3Abc": "payment_intent", "ch_3Abc": "charge", "py_3Abc": "charge",
		"": "", "re_3Abc": "", "pi_": "", "pi_a/../b": "", "pi_a b": "", "PI_3Abc": "", "xpi_3Abc": "", "pi_é": "",
		"pi_" + strings.Repeat("x", 251): "",
	} {
		got, err := prepare(t, providers.Refund{PaymentID: id, Amount: providers.Money{Minor: 100, Currency: "USD"}})
		if want == "" {
			problem, ok := errors.AsType[*providers.ArgumentError](err)
			if !ok || problem.Field != "payment_id" {
				t.Errorf("%q: %q, %v; want it refused", id, got, err)
			}
			continue
		}
		form, parseErr := url.ParseQuery(string(got))
		if err != nil || parseErr != nil || form.Get(want) != id {
			t.Errorf("%q: %q, %v; want it as %s", id, got, err, want)
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for reason, good := range map[string]bool{"": true, "duplicate": true, "fraudulent": true, "requested_by_customer": true, "expired_uncaptured_charge": false, "other": false} {
		got, err := prepare(t, providers.Refund{PaymentID: "pi_1", Amount: providers.Money{Minor: 100, Currency: "USD"}, Reason: reason})
		if (err == nil) != good {
			t.Errorf("%q: %v, want good: %v", reason, err, good)
		}
		if hasReason := strings.Contains(string(got), "reason="); hasReason != (good && reason != "") {
			t.Errorf("%q: the request is %s", reason, got)
		}
	}
}

// The amounts are those of Stripe's page "Supported currencies", with its own examples.
func TestAmounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		decimal, currency string
		want              string // empty: refused
	}{
		{"10.00", "USD", "1000"}, // "to charge 10 USD, provide an amount value of 1000"
		{"0.01", "EUR", "1"},
		{"10", "JPY", "10"},   // "10 to charge 10 JPY"
		{"500", "JPY", "500"}, // "to charge 500 JPY, provide an amount value of 500"
		{"500", "BIF", "500"},
		{"500", "CLP", "500"},
		{"500", "XPF", "500"},
		{"500", "VUV", "500"},
		{"5", "ISK", "500"}, // "to charge 5 ISK, provide an amount value of 500"
		{"5", "UGX", "500"}, // "to charge 5 UGX, provide an amount value of 500"
		{"500.00", "MGA", "500"},
		{"500.50", "MGA", ""},
		{"5.120", "KWD", "5120"}, // "5.124 KWD must be rounded to 5120 or 5130": it is refused
		{"5.130", "KWD", "5130"},
		{"5.124", "KWD", ""},
		{"5.001", "BHD", ""},
		{"5.010", "TND", "5010"},
		{"10.45", "HUF", "1045"}, // "you can charge two-decimal amounts"
		{"10.45", "TWD", "1045"},
		{"1.000", "IQD", ""}, // not on the page
		{"1.0000", "CLF", ""},
		{"999999.99", "USD", "99999999"},
		{"100000000000.00", "IDR", "10000000000000"},
		{"100000000000.01", "IDR", ""},
		{"92233720368547758.07", "USD", ""},
	} {
		t.Run(tt.decimal+" "+tt.currency, func(t *testing.T) {
			t.Parallel()
			money, err := providers.ParseMoney(tt.decimal, tt.currency)
			if err != nil {
				t.Fatal(err)
			}
			wantAmount(t, money, tt.want)
		})
	}
	for _, money := range []providers.Money{
		{Minor: 0, Currency: "USD"}, {Minor: -1, Currency: "USD"}, {Minor: math.MinInt64, Currency: "JPY"},
		{Minor: 100}, {Minor: 100, Currency: "ZZZ"}, {Minor: 100, Currency: "usd"}, {Minor: math.MaxInt64, Currency: "ISK"},
	} {
		wantAmount(t, money, "")
	}
}

func wantAmount(t *testing.T, money providers.Money, want string) {
	t.Helper()
	got, err := prepare(t, providers.Refund{PaymentID: "pi_1", Amount: money})
	if want == "" {
		if problem, ok := errors.AsType[*providers.ArgumentError](err); !ok || problem.Field != "amount" && problem.Field != "currency" {
			t.Errorf("%d %s: %q, %v; want it refused", money.Minor, money.Currency, got, err)
		}
		if err != nil && strings.Contains(err.Error(), fmt.Sprint(money.Minor)) && money.Minor != 0 {
			t.Errorf("the error quotes the amount: %v", err)
		}
		return
	}
	form, parseErr := url.ParseQuery(string(got))
	if err != nil || parseErr != nil || form.Get("amount") != want {
		t.Errorf("%d %s: amount %q, %v; want %q", money.Minor, money.Currency, form.Get("amount"), err, want)
	}
}
