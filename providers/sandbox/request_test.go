package sandbox

import (
	"bytes"
	"errors"
	"testing"

	"github.com/onceward/onceward/providers"
)

func TestPrepare(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{
		providers.EmailSend: `{"to":["alice@example.com","bob@example.com"],"cc":["carol@example.com"],"bcc":["alice@example.com"],` +
			`"subject":"Hello Alice","body":"Dear Alice <&>","reply_to":"dave@example.com"}`,
		providers.PaymentOrderCreate: `{"debit_account":"DE02120300000000202051","payee_account":"DE02500105170137075030","payee_name":"Alice Example",` +
			`"amount":"1250.00","currency":"EUR","business_reference":"invoice-17","purpose":"Flat of Alice"}`,
		providers.RefundCreate: `{"payment_id":"pay_8812","amount":"100.00","currency":"USD","reason":"duplicate","note":"Alice called"}`,
	} {
		// It is pure: an open journal isn't needed, and each time gives the same.
		var s Sandbox
		for range 3 {
			if got := prepare(t, &s, samples[action]); !bytes.Equal(got, []byte(want)) {
				t.Errorf("request of %s:\n%s\nwant:\n%s", action, got, want)
			}
		}
	}
}

func TestPrepareRefusesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	var s Sandbox
	for field, arguments := range map[string]providers.Arguments{
		"to":     providers.Email{Subject: "x", Body: "x"},
		"amount": providers.Refund{PaymentID: "pay_8812", Amount: providers.Money{Minor: -1, Currency: "USD"}},
	} {
		_, err := s.Prepare(providers.Order{Arguments: arguments})
		if problem, ok := errors.AsType[*providers.ArgumentError](err); !ok || problem.Field != field {
			t.Errorf("error = %v, want an *ArgumentError for %s", err, field)
		}
	}
	if _, err := s.Prepare(providers.Order{Arguments: providers.PaymentOrder{}}); err == nil {
		t.Error("an order of nothing was prepared")
	}
	if _, err := s.Prepare(providers.Order{}); err == nil {
		t.Error("no arguments were prepared")
	}
}
