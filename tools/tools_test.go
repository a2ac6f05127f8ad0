package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/tools"
)

var update = flag.Bool("update", false, "rewrite the golden files of the tools' definitions")

// modes are the servers whose definitions differ.
func modes(t testing.TB) map[string]tools.Options {
	templates := workflowOptions(t)
	templates.Templates = []string{"refund_approved", "refund_paid"}
	return map[string]tools.Options{"strict": options(t), "workflow": workflowOptions(t), "workflow_templates": templates}
}

// TestDefinitions holds every tool's definition to a golden file: it is what models
// and clients have learnt. `go test ./tools -update` rewrites the files.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	files := map[string]bool{}
	for mode, o := range modes(t) {
		b := newBench(t, aLedger{t: t}, o)
		for name, entry := range b.mcp.ListTools() {
			if mode == "workflow_templates" && name != "email_send" {
				continue // the same as without
			}
			compact, err := json.Marshal(entry.Tool)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, compact, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("..", "testdata", "tools", name+"."+mode+".json")
			files[file] = true
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("no golden file for this tool: %v", err)
				continue
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
	kept, err := filepath.Glob(filepath.Join("..", "testdata", "tools", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		if !files[file] {
			t.Errorf("%s is of no tool", file)
		}
	}
}

// TestEveryTool is about all tools that a server lists, however they got there.
func TestEveryTool(t *testing.T) {
	t.Parallel()
	for mode, o := range modes(t) {
		b := newBench(t, aLedger{t: t}, o) // nothing may reach the ledger
		if unguarded := tools.Unguarded(b.mcp); len(unguarded) > 0 {
			t.Errorf("%s: tools that can be called past the wrapper: %v", mode, unguarded)
		}
		listed := listedNames(t, b.mcp)
		if diff := cmp.Diff([]string{"email_send", "operation_get", "operation_list", "payment_order_create", "refund"}, listed); diff != "" {
			t.Errorf("%s: listed tools (-want +got):\n%s", mode, diff)
		}
		for _, name := range listed {
			entry := b.mcp.GetTool(name)
			if entry == nil {
				t.Errorf("%s: %s is listed and isn't a plain tool: it bypasses the wrapper", mode, name)
				continue
			}
			reads := name == "operation_get" || name == "operation_list"
			yes, no := true, false
			want := mcp.ToolAnnotation{Title: entry.Tool.Title, ReadOnlyHint: &no, DestructiveHint: &yes, IdempotentHint: &yes, OpenWorldHint: &yes}
			if reads {
				want.ReadOnlyHint, want.DestructiveHint, want.OpenWorldHint = &yes, &no, &no
			}
			if diff := cmp.Diff(want, entry.Tool.Annotations); diff != "" {
				t.Errorf("%s: annotations of %s (-want +got):\n%s", mode, name, diff)
			}
			if entry.Tool.Description == "" || entry.Tool.Title == "" || entry.Tool.Execution != nil {
				t.Errorf("%s: %s lacks a title or a description, or offers tasks", mode, name)
			}
			schema := compiled(t, entry.Tool.RawInputSchema)
			if schema.AdditionalProperties != false {
				t.Errorf("%s: %s accepts unknown arguments", mode, name)
			}
			for property, s := range schema.Properties {
				if s.Description == "" {
					t.Errorf("%s: the argument %s of %s has no description", mode, property, name)
				}
			}
			compiled(t, entry.Tool.RawOutputSchema)

			r := b.call(t.Context(), name, with(name, map[string]string{"surprise": `"secret value"`}), wholeIntent)
			if !r.IsError || r.get("code") != "invalid_arguments" || !contains(r.fields(), "surprise") {
				t.Errorf("%s: %s took an unknown argument: %s", mode, name, r.text())
			}
			r = b.call(tools.TurnAway(t.Context()), name, with(name, nil), wholeIntent)
			if !r.IsError || r.get("code") != "shutting_down" {
				t.Errorf("%s: %s did something for a call that was turned away: %s", mode, name, r.text())
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if r = b.call(over, name, with(name, nil), wholeIntent); !r.IsError || r.get("code") != "shutting_down" {
				t.Errorf("%s: %s did something for a caller that was gone: %s", mode, name, r.text())
			}
		}
	}
}

// TestUnguardedToolsAreFound shows that TestEveryTool would notice them.
func TestUnguardedToolsAreFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, aLedger{t: t}, options(t))
	handler := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	}
	b.mcp.AddTool(mcp.NewTool("sneaky"), handler)
	b.mcp.AddTool(mcp.NewTool("wild"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("no arguments") })
	b.mcp.SetTools(append(entries(b.mcp), server.ServerTool{Tool: mcp.NewTool("refund"), Handler: handler})...)
	if diff := cmp.Diff([]string{"refund", "sneaky", "wild"}, tools.Unguarded(b.mcp)); diff != "" {
		t.Errorf("unguarded tools (-want +got):\n%s", diff)
	}
}

func entries(m *server.MCPServer) []server.ServerTool {
	var all []server.ServerTool
	for name, entry := range m.ListTools() {
		if name != "refund" {
			all = append(all, *entry)
		}
	}
	return all
}

func TestNames(t *testing.T) {
	t.Parallel()
	names := func(dotted bool) (map[string]string, []string) {
		o := options(t)
		o.DottedNames = dotted
		set, err := tools.New(aLedger{t: t}, o)
		if err != nil {
			t.Fatal(err)
		}
		m := server.NewMCPServer("onceward", "test")
		if err := set.Register(m); err != nil {
			t.Fatal(err)
		}
		if err := set.Register(m); err == nil {
			t.Error("a second registration replaced the tools silently")
		}
		return set.Names(), listedNames(t, m)
	}
	got, _ := names(false)
	if diff := cmp.Diff(map[string]string{
		"email.send": "email_send", "email_send": "email_send",
		"payment_order.create": "payment_order_create", "payment_order_create": "payment_order_create",
		"refund":        "refund",
		"operation.get": "operation_get", "operation_get": "operation_get",
		"operation.list": "operation_list", "operation_list": "operation_list",
	}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	got, listed := names(true)
	if diff := cmp.Diff([]string{"email.send", "operation.get", "operation.list", "payment_order.create", "refund"}, listed); diff != "" {
		t.Errorf("dotted names (-want +got):\n%s", diff)
	}
	if got["email_send"] != "email.send" {
		t.Errorf("email_send leads to %q", got["email_send"])
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*tools.Options){
		"an unknown mode":        func(o *tools.Options) { o.Mode = "lax" },
		"no mode":                func(o *tools.Options) { o.Mode = "" },
		"a scope that isn't one": func(o *tools.Options) { o.Scope = intent.Scope{WorkflowID: "a\nb"} },
		"a missing provider": func(o *tools.Options) {
			o.Providers = map[string]providers.Provider{providers.RefundCreate: aProvider{}}
		},
		"an empty template":       func(o *tools.Options) { o.Templates = []string{""} },
		"a template listed twice": func(o *tools.Options) { o.Templates = []string{"a", "a"} },
	} {
		o := options(t)
		change(&o)
		if _, err := tools.New(aLedger{t: t}, o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := tools.New(nil, options(t)); err == nil {
		t.Error("no ledger was taken")
	}
}

// listedNames asks as a client does, so that tools of every kind are seen.
func listedNames(t testing.TB, m *server.MCPServer) []string {
	t.Helper()
	response, err := json.Marshal(m.HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
	if err != nil {
		t.Fatal(err)
	}
	var message struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal(response, &message); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range message.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}
