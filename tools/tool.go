package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/onceward/onceward/intent"
)

// A tool is one definition, and what it does with a call that passed the wrapper.
type tool struct {
	name        string // dotted; of a guarded tool also the action type
	title       string
	description string
	input       json.RawMessage
	output      json.RawMessage
	reads       bool // it changes nothing
	// hints say, by argument, what to send where the schema says no.
	hints map[string]string
	run   func(ctx context.Context, c call) (*mcp.CallToolResult, error)

	schema *jsonschema.Schema
	known  intent.Names
}

// definition is what clients are shown. The annotations are honest: a guarded tool
// really is idempotent, because the identity of an action is enforced.
func (t *tool) definition(listed string) mcp.Tool {
	def := mcp.NewToolWithRawSchema(listed, t.description, t.input)
	def.RawOutputSchema = t.output
	def.Title = t.name + ": " + t.title
	hint := func(b bool) *bool { return &b }
	def.Annotations = mcp.ToolAnnotation{
		Title:           def.Title,
		ReadOnlyHint:    hint(t.reads),
		DestructiveHint: hint(!t.reads),
		IdempotentHint:  hint(true),
		OpenWorldHint:   hint(!t.reads),
	}
	return def
}

// object writes the schema of an object from its properties, each one text like
// `"name": {...}`. No other member is allowed. The order is kept: models read it.
func object(required []string, properties ...string) json.RawMessage {
	quoted, err := json.Marshal(append([]string{}, required...))
	if err != nil {
		panic(err) // strings always marshal
	}
	text := fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s,"additionalProperties":false}`,
		strings.Join(properties, ","), quoted)
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return json.RawMessage(text) // compile says what is wrong with it
	}
	return compact.Bytes()
}

// enum writes a list of strings for a schema.
func enum(values []string) string {
	quoted, err := json.Marshal(values)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(quoted)
}
