package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/providers"
)

// TestNormalisedArguments holds what is kept and sent to what it should be.
func TestNormalisedArguments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, tool string
		change     map[string]string
		want       string // the arguments as a person reads them
	}{
		{"a mail", "email_send", map[string]string{
			"to": `["Zoe@Example.com","ann@example.com","ANN@EXAMPLE.COM"]`, "cc": `[]`, "bcc": `["Bob@Example.com"]`,
			"subject": `"  Exactly\u00a0<this>  "`, "reply_to": `"Desk@Example.com"`, "template": `"refund_paid"`, "html": `""`},
			`{"bcc":["bob@example.com"],"body":"Dear Ann,\nit is on its way.","reply_to":"desk@example.com","subject":"  Exactly` + "\u00a0" + `<this>  ","template":"refund_paid","to":["ann@example.com","zoe@example.com"]}`},
		{"letters beyond ASCII stay", "email_send", map[string]string{"to": `["Zoë.İ@Bücher.example","\u212aate@example.com"]`},
			`{"body":"Dear Ann,\nit is on its way.","subject":"Your refund","to":["zoë.İ@bücher.example","` + "\u212a" + `ate@example.com"]}`},
		{"a payment order", "payment_order_create", map[string]string{
			"debit_account": `" de89-3704 0044-0532 0130 00 "`, "payee_account": `"branch:7/acct_9.x"`, "amount": `"1250.5"`, "currency": `"eur"`,
			"payee_name": `" Example  Ltd "`, "purpose": `"Invoice 42"`},
			`{"amount":"1250.50","business_reference":"INV-42","currency":"EUR","debit_account":"DE89370400440532013000","payee_account":"BRANCH:7/ACCT_9.X","payee_name":" Example  Ltd ","purpose":"Invoice 42"}`},
		{"yen", "refund", map[string]string{"amount": `"100"`, "currency": `"JPY"`, "note": `"line 1\nline 2"`, "reason": `"duplicate"`},
			`{"amount":"100","currency":"JPY","note":"line 1\nline 2","payment_id":"pay_8812","reason":"duplicate"}`},
		{"dinars", "refund", map[string]string{"amount": `"1.5"`, "currency": `"KWD"`}, `{"amount":"1.500","currency":"KWD","payment_id":"pay_8812"}`},
	} {
		r := captured(t, options(t), tc.tool, with(tc.tool, tc.change), wholeIntent)
		payload, err := r.Prepare("op_1", "key")
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, string(payload.Arguments)); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestOrder is what a provider gets: typed, with money in minor units.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := captured(t, options(t), "refund", with("refund", map[string]string{"note": `"n"`}), wholeIntent)
	payload, err := r.Prepare("op_9", "pk_9")
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(providers.Order{OperationID: "op_9", ProviderKey: "pk_9", At: called, Arguments: providers.Refund{
		PaymentID: "pay_8812", Amount: providers.Money{Minor: 10000, Currency: "USD"}, Note: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(payload.Request)); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

// TestAddresses: one plainly bare mailbox, or refused.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"a@b.example", "first.last+tag@sub.example.com", "o'brien_=!#$%&*/?^`{|}~@example.com", "用户@例子.广告", "a@xn--bcher-kva.example",
		strings.Repeat("a", 64) + "@example.com", "a@" + strings.Repeat("b", 63) + ".example", "1@2.example", "a@b.c1",
	} {
		captured(t, options(t), "email_send", with("email_send", map[string]string{"to": "[" + quoted(good) + "]"}), wholeIntent)
	}
	b := newBench(t, aLedger{t: t}, options(t))
	for _, bad := range []string{
		"ann", "@example.com", "ann@", "ann@example", "ann@@example.com", "ann@b@example.com", `"ann b"@example.com`, `"a@b"@example.com`,
		"ann(comment)@example.com", "<ann@example.com>", "ann@example.com;eve@example.com", "ann:eve@example.com", `ann\@example.com`,
		".ann@example.com", "ann.@example.com", "a..b@example.com", "ann@.example.com", "ann@example.com.", "ann@example..com",
		"ann@-example.com", "ann@example-.com", "ann@exam_ple.com", "ann@[192.0.2.1]", "ann@192.0.2.1", "ann @example.com", " ann@example.com",
		"ann@example.com\n", "ann@exam\tple.com", "ann\u00a0@example.com", "ann\u200b@example.com", "\u202eann@example.com", "ann@ex\u00adample.com",
		"ann\u3164@example.com", "ann\x7f@example.com", "ann@example。com", "ann\ufe0f@example.com",
		strings.Repeat("a", 65) + "@example.com", "a@" + strings.Repeat("b", 64) + ".example",
		"a@" + strings.Repeat("b.", 125) + "example", strings.Repeat("é", 33) + "@example.com",
	} {
		for _, field := range []string{"to", "reply_to"} {
			value := quoted(bad)
			if field == "to" {
				value = "[" + value + "]"
			}
			r := b.call(t.Context(), "email_send", with("email_send", map[string]string{field: value}), wholeIntent)
			if r.get("code") != "invalid_arguments" || !contains(r.fields(), field) {
				t.Errorf("%q was taken as %s: %s", bad, field, r.text())
			}
		}
	}
}
