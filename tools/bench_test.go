package tools_test

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/tools"
)

// BenchmarkNew is what a server's start pays for the tools.
func BenchmarkNew(b *testing.B) {
	o := options(b)
	for b.Loop() {
		if _, err := tools.New(aLedger{t: b}, o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplay is what the tools add to a call that the ledger answers at once.
func BenchmarkReplay(b *testing.B) {
	set, err := tools.New(aLedger{t: b, execute: func(ledger.Request) (ledger.Answer, error) {
		return ledger.Answer{Status: ledger.AnswerSucceeded, Replayed: true, Operation: refundOperation(succeeded)}, nil
	}}, options(b))
	if err != nil {
		b.Fatal(err)
	}
	m := server.NewMCPServer("onceward", "test")
	if err := set.Register(m); err != nil {
		b.Fatal(err)
	}
	for _, tool := range []string{"email_send", "refund"} {
		handler := m.GetTool(tool).Handler
		var request mcp.CallToolRequest
		request.Params.RawArguments = json.RawMessage(with(tool, nil))
		request.Params.Meta = &mcp.Meta{AdditionalFields: map[string]any{"onceward/operation": map[string]any{"business_operation_id": "b-1"}}}
		b.Run(tool, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := handler(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
