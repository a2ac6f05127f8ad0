package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/tools"
)

// many is a JSON array of n different addresses.
func many(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%q", fmt.Sprintf("person%d@example.com", i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// badArguments are refused, each naming the fields, and nothing reaches the ledger.
var badArguments = []struct {
	name, tool string
	change     map[string]string
	fields     []string
	says       string // part of the message
}{
	{"a negative amount", "refund", map[string]string{"amount": `"-1.00"`}, []string{"amount"}, "without sign"},
	{"an amount of zero", "refund", map[string]string{"amount": `"0.00"`}, []string{"amount"}, "more than zero"},
	{"an exponent", "refund", map[string]string{"amount": `"1e2"`}, []string{"amount"}, "exponent"},
	{"a plus sign", "refund", map[string]string{"amount": `"+1.00"`}, []string{"amount"}, "without sign"},
	{"a comma", "refund", map[string]string{"amount": `"1,000.00"`}, []string{"amount"}, "1250.00"},
	{"too many digits", "refund", map[string]string{"amount": `"1.001"`}, []string{"amount"}, "more digits"},
	{"digits that yen don't have", "payment_order_create", map[string]string{"amount": `"100.0"`, "currency": `"JPY"`}, []string{"amount"}, "more digits"},
	{"an amount beyond 64 bits", "refund", map[string]string{"amount": `"92233720368547758.08"`}, []string{"amount"}, "too large"},
	{"an unknown currency", "refund", map[string]string{"currency": `"ABC"`}, []string{"currency"}, "ISO 4217"},
	{"a currency with a look-alike letter", "refund", map[string]string{"currency": `"UſD"`}, []string{"currency"}, "ISO 4217"},
	{"an amount as a number", "refund", map[string]string{"amount": `100.00`}, []string{"amount"}, `must be a string (send a decimal string like "1250.00"`},
	{"an amount as a large number", "refund", map[string]string{"amount": `9007199254740993`}, []string{"amount"}, "must be a string"},
	{"an amount that takes for ever to compute", "refund", map[string]string{"amount": `1e-999999999`}, []string{"amount"}, "must be a string"},
	{"an amount as null", "refund", map[string]string{"amount": `null`}, []string{"amount"}, "must be a string"},
	{"no amount", "refund", map[string]string{"amount": ""}, []string{"amount"}, "amount is required"},
	{"a payment_id with a space after it", "refund", map[string]string{"payment_id": `"pay_1 "`}, []string{"payment_id"}, "space"},
	{"an empty payment_id", "refund", map[string]string{"payment_id": `""`}, []string{"payment_id"}, "empty"},
	{"an unknown reason", "refund", map[string]string{"reason": `"because"`}, []string{"reason"}, "requested_by_customer, duplicate, fraudulent"},
	{"a note that is too long", "refund", map[string]string{"note": quoted(strings.Repeat("é", 257))}, []string{"note"}, "514 bytes"},
	{"a zero byte", "refund", map[string]string{"note": `"a\u0000b"`}, []string{"note"}, "zero byte"},

	{"an address with a line break", "email_send", map[string]string{"to": `["ann@example.com\r\nBcc: eve@example.com"]`}, []string{"to"}, "to[0] has a space, a line break"},
	{"an address with a name", "email_send", map[string]string{"to": `["Ann <ann@example.com>"]`}, []string{"to"}, "bare address"},
	{"two addresses in one", "email_send", map[string]string{"cc": `["ann@example.com,eve@example.com"]`}, []string{"cc"}, "one @"},
	{"one address instead of a list", "email_send", map[string]string{"to": `"ann@example.com"`}, []string{"to"}, "must be an array"},
	{"nobody", "email_send", map[string]string{"to": `[]`}, []string{"to"}, "at least 1"},
	{"2,001 recipients", "email_send", map[string]string{"to": many(2001)}, []string{"to"}, "at most 100, and has 2001"},
	{"101 recipients in all", "email_send", map[string]string{"to": many(50), "cc": many(50), "bcc": `["ann@example.com"]`}, []string{"bcc"}, "more than 100 recipients"},
	{"a number among the addresses", "email_send", map[string]string{"to": `["ann@example.com", 7]`}, []string{"to"}, "to[1] must be a string"},
	{"a subject with a line break", "email_send", map[string]string{"subject": `"a\nBcc: eve@example.com"`}, []string{"subject"}, "line break"},
	{"a subject with another line break", "email_send", map[string]string{"subject": `"a\u2028b"`}, []string{"subject"}, "line break"},
	{"a subject that is too long", "email_send", map[string]string{"subject": quoted(strings.Repeat("é", 500))}, []string{"subject"}, "1000 bytes, at most 998"},
	{"a body that is too long", "email_send", map[string]string{"body": quoted(strings.Repeat("é", 131073))}, []string{"body"}, "262146 bytes"},
	{"an html that is too long", "email_send", map[string]string{"html": quoted(strings.Repeat("a", 262145))}, []string{"html"}, "at most 262144"},
	{"a reply_to that isn't one", "email_send", map[string]string{"reply_to": `"ann"`}, []string{"reply_to"}, "one @"},
	{"broken UTF-8", "email_send", map[string]string{"subject": "\"a\xffb\""}, []string{"subject"}, "UTF-8"},
	{"a lone surrogate", "email_send", map[string]string{"subject": `"a\ud800b"`}, []string{"subject"}, "surrogate"},
	{"a lone surrogate in a list", "email_send", map[string]string{"to": `["ann\udc00@example.com"]`}, []string{"to"}, "surrogate"},
	{"about in strict mode", "email_send", map[string]string{"about": `"case-1"`}, []string{"about"}, "isn't an argument"},

	{"a plain workflow_id", "email_send", map[string]string{"workflow_id": `"case-1842"`}, []string{"workflow_id"}, "comes from the orchestrator"},
	{"a plain idempotency_key", "refund", map[string]string{"idempotency_key": `"k"`}, []string{"idempotency_key"}, "comes from the orchestrator"},
	{"an argument in other letters", "refund", map[string]string{"Amount": `"1.00"`}, []string{}, "differs only in case from amount"},
	{"a line break in a reference", "payment_order_create", map[string]string{"business_reference": `"INV\n42"`}, []string{"business_reference"}, "line break"},
	{"an account with a letter of its own", "payment_order_create", map[string]string{"payee_account": `"DE00 ſ1"`}, []string{"payee_account"}, "A to Z"},
	{"an account of spaces", "payment_order_create", map[string]string{"debit_account": `" - "`}, []string{"debit_account"}, "1 to 64"},
	{"an account that is too long", "payment_order_create", map[string]string{"debit_account": quoted(strings.Repeat("1", 65))}, []string{"debit_account"}, "1 to 64"},
	{"everything wrong at once", "payment_order_create", map[string]string{"amount": `"0"`, "payee_account": `"?"`, "business_reference": `" x"`},
		[]string{"payee_account", "amount", "business_reference"}, "; "},

	{"an operation id that isn't one", "operation_get", map[string]string{"operation_id": `"v1:00"`}, []string{"operation_id"}, "earlier answer"},
	{"a limit of zero", "operation_list", map[string]string{"limit": `0`}, []string{"limit"}, "at least 1"},
	{"a limit that is too high", "operation_list", map[string]string{"limit": `101`}, []string{"limit"}, "at most 100"},
	{"a limit that isn't whole", "operation_list", map[string]string{"limit": `1.5`}, []string{"limit"}, "must be an integer"},
	{"a limit that takes for ever to compute", "operation_list", map[string]string{"limit": `1e-999999999`}, []string{"limit"}, "must be an integer"},
	{"a status that no answer has", "operation_list", map[string]string{"status": `"executing"`}, []string{"status"}, "must be one of"},
}

func TestBadArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, aLedger{t: t}, options(t)) // whatever reaches it fails the test
	for _, tc := range badArguments {
		r := b.call(t.Context(), tc.tool, with(tc.tool, tc.change), wholeIntent)
		if !r.IsError || r.get("status") != "refused" || r.get("code") != "invalid_arguments" || r.get("next") != "fix_arguments" {
			t.Errorf("%s: not refused as it should be: %s", tc.name, r.text())
			continue
		}
		if diff := cmp.Diff(tc.fields, r.fields()); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s%s", tc.name, diff, r.text())
		}
		message, _ := r.get("message").(string)
		if !strings.Contains(message, tc.says) || !strings.Contains(message, "did nothing") {
			t.Errorf("%s: %q doesn't say %q, or not that nothing was done", tc.name, message, tc.says)
		}
	}
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	t.Parallel()
	b := newBench(t, aLedger{t: t}, options(t))
	for _, args := range []string{`[]`, `"x"`, `7`, `true`} {
		if r := b.call(t.Context(), "refund", args, wholeIntent); r.get("code") != "invalid_arguments" {
			t.Errorf("%s was taken: %s", args, r.text())
		}
	}
	r := b.call(t.Context(), "refund", `null`, wholeIntent)
	if diff := cmp.Diff([]string{"payment_id", "amount", "currency"}, r.fields()); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// TestDuplicateMembers: encoding/json would take the last one.
func TestDuplicateMembers(t *testing.T) {
	t.Parallel()
	b := newBench(t, aLedger{t: t}, options(t))
	r := b.call(t.Context(), "refund", `{"payment_id":"p","amount":"1.00","amount":"9.00","currency":"USD"}`, wholeIntent)
	if r.get("code") != "invalid_arguments" || !contains(r.fields(), "amount") {
		t.Errorf("a member given twice was taken: %s", r.text())
	}
}

// TestIntents: what names an action comes from beside the arguments.
func TestIntents(t *testing.T) {
	t.Parallel()
	b := newBench(t, aLedger{t: t}, options(t))
	for name, tc := range map[string]struct{ meta, code, field string }{
		"none":             {`{}`, "intent_missing", "onceward/operation"},
		"half of one":      {`{"onceward/operation":{"workflow_id":"case-1842"}}`, "intent_invalid", "step"},
		"an unknown field": {`{"onceward/operation":{"workflow_id":"c","step":"s","business_object":"o","revison":2}}`, "intent_invalid", "revison"},
		"a per-call id":    {`{"onceward/operation":{"business_operation_id":"call_abc"}}`, "intent_invalid", "business_operation_id"},
	} {
		r := b.call(t.Context(), "refund", with("refund", nil), tc.meta)
		if !r.IsError || r.get("code") != tc.code || r.get("next") != "fix_configuration" || !contains(r.fields(), tc.field) {
			t.Errorf("%s: %s", name, r.text())
		}
	}
}

// TestProviderRefusesArguments: what a provider can't take is the model's to correct.
func TestProviderRefusesArguments(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Providers[providers.RefundCreate] = aProvider{refuse: &providers.ArgumentError{Field: "currency", Problem: "this account takes EUR only"}}
	r := captured(t, o, "refund", with("refund", nil), wholeIntent)
	_, err := r.Prepare("op_1", "key")
	refusal, ok := err.(*ledger.Refusal) //nolint:errorlint // the ledger passes it on as it is
	if !ok || refusal.Code != ledger.InvalidArguments || !strings.Contains(refusal.Message, "takes EUR only") {
		t.Fatalf("Prepare returned %v", err)
	}
	if diff := cmp.Diff([]string{"currency"}, refusal.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// TestReadersNeedNoWholeIntent: what the tools that read ask of a call.
func TestReadersNeedNoWholeIntent(t *testing.T) {
	t.Parallel()
	var asked []string
	l := aLedger{t: t,
		get: func(tenant, id string) (ledger.Answer, error) {
			asked = append(asked, "get "+tenant+" "+id)
			return ledger.Answer{}, &ledger.Refusal{Code: ledger.NotFound, Fields: []string{"operation_id"}}
		},
		list: func(f ledger.Filter) ([]ledger.Operation, error) {
			asked = append(asked, fmt.Sprintf("list %s %s %v %d newest=%t", *f.Tenant, f.WorkflowID, f.Statuses, f.Limit, f.Newest))
			return nil, nil
		}}
	b := newBench(t, l, options(t))
	ctx := tools.WithCaller(t.Context(), tools.Caller{Tenant: "acme"})
	r := b.call(ctx, "operation_get", with("operation_get", nil), `{}`)
	if !r.IsError || r.get("code") != "not_found" || !contains(r.fields(), "operation_id") {
		t.Errorf("not found: %s", r.text())
	}
	if r = b.call(ctx, "operation_list", `{}`, `{}`); r.get("code") != "intent_missing" {
		t.Errorf("a list of no workflow: %s", r.text())
	}
	if r = b.call(ctx, "operation_list", `{}`, `{"onceward/operation":{"business_operation_id":"b"}}`); r.get("code") != "intent_missing" {
		t.Errorf("a list of no workflow: %s", r.text())
	}
	b.call(ctx, "operation_list", `{}`, wholeIntent)
	b.call(ctx, "operation_list", `{"status":"awaiting_approval","limit":100}`, wholeIntent)
	b.direct("operation_list", `{"status":"in_progress"}`, map[string][]string{"Onceward-Workflow-Id": {"case-9"}})
	if diff := cmp.Diff([]string{
		"get acme op_01939c1e-7b1e-7c3a-9f6e-2d5b8a4c1f00",
		"list acme case-1842 [] 20 newest=true",
		"list acme case-1842 [planned] 100 newest=true",
		"list  case-9 [executing] 20 newest=true",
	}, asked); diff != "" {
		t.Errorf("the ledger was asked (-want +got):\n%s", diff)
	}
}
