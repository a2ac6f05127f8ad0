package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/onceward/onceward/ledger"
)

// recipients draws 1 to 6 different addresses.
func recipients(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,8}@[a-z]{1,8}\.example`), 1, 6, rapid.ID).Draw(t, "recipients")
}

func array(list []string) string {
	b, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestMailFingerprint: order, letter case, repetition and words don't matter;
// who gets it does.
func TestMailFingerprint(t *testing.T) {
	t.Parallel()
	capture := capturer(t)
	rapid.Check(t, func(rt *rapid.T) {
		list := recipients(rt)
		first := capture("email_send", map[string]string{"to": array(list)})
		shuffled := rapid.Permutation(list).Draw(rt, "shuffled")
		for i := range shuffled {
			if rapid.Bool().Draw(rt, "upper") {
				shuffled[i] = strings.ToUpper(shuffled[i])
			}
		}
		if rapid.Bool().Draw(rt, "one twice") {
			shuffled = append(shuffled, shuffled[0])
		}
		again := capture("email_send", map[string]string{"to": array(shuffled), "subject": quoted("S" + rapid.StringMatching(`[ -~]*`).Draw(rt, "subject")),
			"body": quoted("B" + rapid.String().Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }).Draw(rt, "body"))})
		if first.Digest.Fingerprint != again.Digest.Fingerprint || first.Key != again.Key {
			rt.Fatalf("%v and %v have different fingerprints", list, shuffled)
		}
		other := capture("email_send", map[string]string{"to": array(append(list, "someone@else.example"))})
		copied := capture("email_send", map[string]string{"to": array(list), "cc": `["someone@else.example"]`})
		hidden := capture("email_send", map[string]string{"to": array(list), "bcc": `["someone@else.example"]`})
		distinct(rt, first, other, copied, hidden)
	})
}

// TestMoneyFingerprint: the spelling of an amount doesn't matter, a cent does.
func TestMoneyFingerprint(t *testing.T) {
	t.Parallel()
	capture := capturer(t)
	rapid.Check(t, func(rt *rapid.T) {
		units, cents := rapid.IntRange(1, 1e9).Draw(rt, "units"), 10*rapid.IntRange(0, 9).Draw(rt, "tens")
		note := rapid.StringMatching(`[ -~]{0,100}`).Draw(rt, "note")
		first := capture("refund", map[string]string{"amount": fmt.Sprintf(`"%d.%02d"`, units, cents), "currency": `"USD"`})
		again := capture("refund", map[string]string{"amount": fmt.Sprintf(`"%d.%d"`, units, cents/10), "currency": `"usd"`, "note": quoted(note), "reason": `"duplicate"`})
		if first.Digest.Fingerprint != again.Digest.Fingerprint {
			rt.Fatalf("%d.%02d spelt otherwise has another fingerprint", units, cents)
		}
		distinct(rt, first,
			capture("refund", map[string]string{"amount": fmt.Sprintf(`"%d.%02d"`, units, cents+1)}),
			capture("refund", map[string]string{"amount": fmt.Sprintf(`"%d.%02d"`, units, cents), "currency": `"EUR"`}),
			capture("refund", map[string]string{"amount": fmt.Sprintf(`"%d.%02d"`, units, cents), "payment_id": `"pay_2"`}))
	})
}

// TestPaymentFingerprint: one changed critical argument is another action, and no other
// argument is.
func TestPaymentFingerprint(t *testing.T) {
	t.Parallel()
	capture := capturer(t)
	first := capture("payment_order_create", nil)
	all := []ledger.Request{first}
	for name, value := range map[string]string{
		"debit_account": `"DE00 1235"`, "payee_account": `"FR00 5679"`, "amount": `"1250.01"`, "currency": `"USD"`, "business_reference": `"INV-43"`,
	} {
		all = append(all, capture("payment_order_create", map[string]string{name: value}))
	}
	// What moves from one argument to another is no less a change.
	all = append(all, capture("payment_order_create", map[string]string{"debit_account": `"FR00-5678"`, "payee_account": `"DE00 1234"`}))
	distinct(t, all...)
	for name, value := range map[string]string{"payee_name": `"Example Limited"`, "purpose": `"thanks"`, "debit_account": `"de001234"`} {
		if r := capture("payment_order_create", map[string]string{name: value}); r.Digest.Fingerprint != first.Digest.Fingerprint {
			t.Errorf("%s changed the fingerprint", name)
		}
	}
}

func distinct(t rapid.TB, requests ...ledger.Request) {
	t.Helper()
	for i, a := range requests {
		for _, b := range requests[:i] {
			if a.Digest.Fingerprint == b.Digest.Fingerprint || a.Digest.Content == b.Digest.Content {
				t.Fatalf("two different actions have the same fingerprint or content")
			}
		}
	}
}

// capturer calls tools of one strict server and returns what reaches the ledger.
func capturer(t *testing.T) func(tool string, change map[string]string) ledger.Request {
	var got *ledger.Request
	b := newBench(t, aLedger{t: t, execute: func(r ledger.Request) (ledger.Answer, error) {
		got = &r
		return ledger.Answer{Status: ledger.AnswerSucceeded, Operation: ledger.Operation{ID: "op_1", Action: r.Action}}, nil
	}}, options(t))
	return func(tool string, change map[string]string) ledger.Request {
		got = nil
		if r := b.call(t.Context(), tool, with(tool, change), wholeIntent); got == nil {
			t.Fatalf("%s was refused: %s", tool, r.text())
		}
		return *got
	}
}
