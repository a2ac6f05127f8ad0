package tools_test

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/onceward/onceward/ledger"
)

// known are the arguments of each tool in strict mode.
var known = map[string][]string{
	"email_send":           {"to", "cc", "bcc", "subject", "body", "html", "reply_to", "template"},
	"payment_order_create": {"debit_account", "payee_account", "payee_name", "amount", "currency", "business_reference", "purpose"},
	"refund":               {"payment_id", "amount", "currency", "reason", "note"},
}

var fuzzed = []string{"email_send", "payment_order_create", "refund"}

// FuzzFingerprint feeds raw arguments to the tools. Whatever they are, nothing panics;
// what is taken has known members only, each once; and what is normalised stays
// the same action when it is sent again.
func FuzzFingerprint(f *testing.F) {
	for i, tool := range fuzzed {
		f.Add(uint8(i), []byte(with(tool, nil)))
		for _, tc := range badArguments {
			if tc.tool == tool && len(tc.name) < 40 {
				if args := with(tool, tc.change); len(args) < 1000 {
					f.Add(uint8(i), []byte(args))
				}
			}
		}
	}
	f.Add(uint8(0), []byte(`{"to":["Ann@Example.com","ann@example.com"],"subject":"s","body":"b","cc":[],"html":""}`))
	f.Add(uint8(1), []byte(`{"debit_account":"de 1","payee_account":"F-2","payee_name":"n","amount":"1","currency":"jpy","business_reference":"b"}`))
	f.Add(uint8(2), []byte(`{"payment_id":"p","amount":"1.0","amount":"2.0","currency":"USD"}`))
	var taken *ledger.Request
	b := newBench(f, aLedger{t: f, execute: func(r ledger.Request) (ledger.Answer, error) {
		taken = &r
		return ledger.Answer{Status: ledger.AnswerSucceeded, Operation: ledger.Operation{ID: "op_1", Action: r.Action}}, nil
	}}, options(f))
	offer := func(t *testing.T, tool string, raw []byte) *ledger.Request {
		taken = nil
		b.log.Reset()
		b.offer(t, tool, raw)
		return taken
	}
	f.Fuzz(func(t *testing.T, which uint8, raw []byte) {
		tool := fuzzed[int(which)%len(fuzzed)]
		first := offer(t, tool, raw)
		if first == nil {
			return
		}
		var members map[string]any
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatalf("arguments that aren't JSON were taken: %v", err)
		}
		for name := range members {
			if !contains(known[tool], name) {
				t.Fatalf("an unknown argument %q was taken", name)
			}
		}
		payload, err := first.Prepare("op_1", "key")
		if err != nil {
			t.Fatal(err)
		}
		again := offer(t, tool, payload.Arguments)
		if again == nil || again.Digest.Fingerprint != first.Digest.Fingerprint || again.Digest.Content != first.Digest.Content {
			t.Fatalf("the normalised arguments are another action: %s", payload.Arguments)
		}
	})
}

// offer calls a tool with raw arguments, as they come from the wire.
func (b bench) offer(t *testing.T, tool string, raw []byte) {
	var request mcp.CallToolRequest
	request.Params.Name, request.Params.RawArguments = tool, raw
	request.Params.Meta = &mcp.Meta{AdditionalFields: map[string]any{"onceward/operation": map[string]any{"business_operation_id": "b-1"}}}
	result, err := b.mcp.GetTool(tool).Handler(t.Context(), request)
	if err != nil || result.StructuredContent == nil {
		t.Fatalf("a bug: %v, %v\n%s", result, err, b.log)
	}
}
