package tools_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onceward/onceward/ledger"
)

// planted is personal data in every argument that may hold some.
var planted = map[string]map[string]string{
	"email_send": {"to": `["planted.ann@example.com"]`, "cc": `["planted.cc@example.com"]`, "bcc": `["planted.bcc@example.com"]`,
		"subject": `"planted subject"`, "body": `"planted body"`, "html": `"<p>planted html</p>"`, "reply_to": `"planted.reply@example.com"`, "template": `"planted template"`},
	"payment_order_create": {"debit_account": `"PLANTED00DEBIT"`, "payee_account": `"PLANTED00PAYEE"`, "payee_name": `"Planted Person"`, "purpose": `"planted purpose"`},
	"refund":               {"note": `"planted note"`},
}

// TestNoPersonalDataComesBack: neither a client nor the log reads it, whatever the
// outcome.
func TestNoPersonalDataComesBack(t *testing.T) {
	t.Parallel()
	for tool, arguments := range planted {
		for _, tc := range outcomes {
			b := newBench(t, aLedger{t: t, execute: func(ledger.Request) (ledger.Answer, error) { return tc.answer, nil }}, options(t))
			clean(t, b, tool+", "+tc.name, b.call(t.Context(), tool, with(tool, arguments), wholeIntent))
		}
		for name, err := range map[string]error{
			"a conflict": &ledger.Refusal{Code: ledger.OperationConflict, Fields: []string{"to", "subject"}, OperationID: "op_1"},
			"a bug":      errors.New("a bug"),
		} {
			b := newBench(t, aLedger{t: t, execute: func(ledger.Request) (ledger.Answer, error) { return ledger.Answer{}, err }}, options(t))
			clean(t, b, tool+", "+name, b.call(t.Context(), tool, with(tool, arguments), wholeIntent))
		}
	}
}

// TestNoPersonalDataComesBackWhenRefused: a wrong value isn't quoted either, nor a name
// that a model took for one.
func TestNoPersonalDataComesBackWhenRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, aLedger{t: t}, options(t))
	for _, tc := range []struct{ tool, name, value string }{
		{"email_send", "to", `["planted@"]`}, {"email_send", "to", `["Planted Person <p@example.com>"]`}, {"email_send", "to", `"planted@example.com"`},
		{"email_send", "to", `["planted\ud800"]`}, {"email_send", "to", `[{"planted": "planted"}]`}, {"email_send", "to", "[\"planted\xff\"]"},
		{"email_send", "to", `{"planted@example.com": {"planted": 1, "planted": 2}}`},
		{"email_send", "subject", `"planted\nsubject"`}, {"email_send", "body", `["planted"]`}, {"email_send", "reply_to", `"planted"`},
		{"email_send", "planted@example.com", `"planted"`}, {"email_send", "planted@example.com", `"\ud800"`}, {"email_send", "x", `{"planted": "planted"}`},
		{"payment_order_create", "payee_account", `"PLANTED?"`}, {"payment_order_create", "business_reference", `" planted"`},
		{"payment_order_create", "amount", `"planted"`}, {"payment_order_create", "currency", `"planted"`}, {"payment_order_create", "amount", `{"planted": 1}`},
		{"refund", "reason", `"planted"`}, {"refund", "note", `"planted` + strings.Repeat(" planted", 99) + `"`},
		{"operation_get", "operation_id", `"planted@example.com"`}, {"operation_list", "status", `"planted"`}, {"operation_list", "limit", `"planted"`},
	} {
		r := b.call(t.Context(), tc.tool, with(tc.tool, map[string]string{tc.name: tc.value}), wholeIntent)
		if r.get("code") != "invalid_arguments" {
			t.Errorf("%s, %s: %s was taken: %s", tc.tool, tc.name, tc.value, r.text())
		}
		clean(t, b, tc.tool+", "+tc.name, r)
	}
}

func clean(t *testing.T, b bench, name string, r reply) {
	t.Helper()
	for where, text := range map[string]string{"the answer": r.all, "the log": b.log.String()} {
		if strings.Contains(strings.ToLower(text), "planted") {
			t.Errorf("%s: personal data in %s: %s", name, where, text)
		}
	}
}
