package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/tools"
)

// wholeIntent is a call's _meta with an intent that names everything.
const wholeIntent = `{"onceward/operation": {"workflow_id": "case-1842", "step": "notify", "business_object": "application-731", "run_id": "run-77"}}`

// aLedger answers what a test wants. What a test doesn't set may not be called.
type aLedger struct {
	t       testing.TB
	execute func(ledger.Request) (ledger.Answer, error)
	get     func(tenant, id string) (ledger.Answer, error)
	list    func(ledger.Filter) ([]ledger.Operation, error)
}

func (l aLedger) Execute(_ context.Context, r ledger.Request) (ledger.Answer, error) {
	if l.execute == nil {
		l.t.Error("a call that must be refused reached the ledger's Execute")
		return ledger.Answer{}, nil
	}
	return l.execute(r)
}

func (l aLedger) Get(_ context.Context, tenant, id string) (ledger.Answer, error) {
	if l.get == nil {
		l.t.Error("a call that must be refused reached the ledger's Get")
		return ledger.Answer{}, nil
	}
	return l.get(tenant, id)
}

func (l aLedger) Approve(context.Context, string, ledger.Person) (ledger.Operation, error) {
	l.t.Error("a call approved something")
	return ledger.Operation{}, nil
}

func (l aLedger) List(_ context.Context, f ledger.Filter) ([]ledger.Operation, error) {
	if l.list == nil {
		l.t.Error("a call that must be refused reached the ledger's List")
		return nil, nil
	}
	return l.list(f)
}

// aProvider can do all and takes everything but what refuse says.
type aProvider struct {
	providers.Provider
	refuse error
}

func (aProvider) Traits(string) (providers.Traits, bool) { return providers.Traits{}, true }

func (p aProvider) Prepare(o providers.Order) ([]byte, error) {
	if p.refuse != nil {
		return nil, p.refuse
	}
	return json.Marshal(o)
}

func secret(t testing.TB) ledger.Secret {
	t.Helper()
	s, err := ledger.NewSecret([]byte("a secret for tests"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// options are those of a strict server without templates.
// called is when calls are made.
var called = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func options(t testing.TB) tools.Options {
	p := aProvider{}
	return tools.Options{Mode: intent.Strict, Secret: secret(t), Now: func() time.Time { return called }, Providers: map[string]providers.Provider{
		providers.EmailSend: p, providers.PaymentOrderCreate: p, providers.RefundCreate: p,
	}}
}

func workflowOptions(t testing.TB) tools.Options {
	o := options(t)
	o.Mode, o.Scope = intent.Workflow, intent.Scope{WorkflowID: "case-1842"}
	return o
}

// A bench is a real MCP server with the tools on it.
type bench struct {
	t   testing.TB
	mcp *server.MCPServer
	log *bytes.Buffer
}

func newBench(t testing.TB, l tools.Ledger, o tools.Options) bench {
	t.Helper()
	b := bench{t: t, mcp: server.NewMCPServer("onceward", "test"), log: &bytes.Buffer{}}
	o.Log = slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	set, err := tools.New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Register(b.mcp); err != nil {
		t.Fatal(err)
	}
	return b
}

// A reply is what a client reads.
type reply struct {
	Content []struct{ Type, Text string }
	IsError bool            `json:"isError"`
	Raw     json.RawMessage `json:"structuredContent"`

	all        string // the whole message
	structured map[string]any
}

func (r reply) text() string {
	var text string
	for _, c := range r.Content {
		text += c.Text + "\n"
	}
	return text
}

func (r reply) get(name string) any { return r.structured[name] }

func (r reply) fields() []string {
	names := []string{}
	list, _ := r.structured["fields"].([]any)
	for _, f := range list {
		names = append(names, fmt.Sprint(f))
	}
	return names
}

// call sends tools/call with exact bytes for the arguments.
func (b bench) call(ctx context.Context, name, args, meta string) reply {
	b.t.Helper()
	return b.send(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":%s}}`, name, args, meta))
}

func (b bench) send(ctx context.Context, message string) reply {
	b.t.Helper()
	response, err := json.Marshal(b.mcp.HandleMessage(ctx, json.RawMessage(message)))
	if err != nil {
		b.t.Fatal(err)
	}
	var envelope struct {
		Result *reply
		Error  json.RawMessage
	}
	if err := json.Unmarshal(response, &envelope); err != nil {
		b.t.Fatal(err)
	}
	if envelope.Result == nil {
		b.t.Fatalf("the answer is a protocol error: %s", envelope.Error)
	}
	r := *envelope.Result
	r.all = string(response)
	if len(r.Raw) > 0 {
		if err := json.Unmarshal(r.Raw, &r.structured); err != nil {
			b.t.Fatal(err)
		}
	}
	return r
}

// direct calls a handler with headers, as an HTTP transport does.
func (b bench) direct(name, args string, header http.Header) *mcp.CallToolResult {
	b.t.Helper()
	var request mcp.CallToolRequest
	request.Header = header
	if err := json.Unmarshal([]byte(fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)), &request.Params); err != nil {
		b.t.Fatal(err)
	}
	result, err := b.mcp.GetTool(name).Handler(b.t.Context(), request)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// valid are arguments that every tool takes, as JSON members.
var valid = map[string]map[string]string{
	"email_send": {"to": `["ann@example.com"]`, "subject": `"Your refund"`, "body": `"Dear Ann,\nit is on its way."`},
	"payment_order_create": {"debit_account": `"DE00 1234"`, "payee_account": `"FR00-5678"`, "payee_name": `"Example Ltd"`,
		"amount": `"1250.00"`, "currency": `"EUR"`, "business_reference": `"INV-42"`},
	"refund":         {"payment_id": `"pay_8812"`, "amount": `"100.00"`, "currency": `"USD"`},
	"operation_get":  {"operation_id": `"op_01939c1e-7b1e-7c3a-9f6e-2d5b8a4c1f00"`},
	"operation_list": {},
}

// with returns a tool's valid arguments with some changed, or left out where the new
// value is empty.
func with(tool string, changes map[string]string) string {
	members := maps.Clone(valid[tool])
	maps.Copy(members, changes)
	var b bytes.Buffer
	for name, value := range members {
		if value == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", name, value)
	}
	return "{" + b.String() + "}"
}

// captured calls a tool and returns what reached the ledger.
func captured(t testing.TB, o tools.Options, tool, args, meta string) ledger.Request {
	t.Helper()
	var got *ledger.Request
	b := newBench(t, aLedger{t: t, execute: func(r ledger.Request) (ledger.Answer, error) {
		got = &r
		return ledger.Answer{Status: ledger.AnswerSucceeded, Operation: ledger.Operation{ID: "op_1", Action: r.Action}}, nil
	}}, o)
	if r := b.call(t.Context(), tool, args, meta); got == nil {
		t.Fatalf("%s was refused: %s", tool, r.text())
	}
	return *got
}
