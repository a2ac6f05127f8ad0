package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
)

// An era is how a client of one protocol revision talks.
type era string

// The revision with sessions that most clients speak, and the one without.
const (
	sessionEra   era = "2025-06-18"
	statelessEra era = "2026-07-28"
)

// A client speaks MCP over a wire, as a host that injects what the call is for.
type client struct {
	wire   wire
	era    era
	header http.Header // of every message, such as Authorization
	ids    atomic.Int64
}

// begin is the handshake that the older revisions have.
func (c *client) begin(ctx context.Context) error {
	if c.era == statelessEra {
		return nil
	}
	hello := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"session","version":"1"}}}`, c.ids.Add(1), c.era)
	answer, err := c.wire.exchange(ctx, []byte(hello), c.headers("initialize", "", nil))
	if err != nil {
		return err
	}
	var said struct {
		Result struct {
			ProtocolVersion era `json:"protocolVersion"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &said); err != nil || said.Result.ProtocolVersion != c.era {
		return fmt.Errorf("initialize was answered %s, %w", answer, err)
	}
	return c.wire.notify(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), c.headers("notifications/initialized", "", nil))
}

// headers are those of one message over HTTP.
func (c *client) headers(method, name string, more map[string]string) http.Header {
	h := c.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if method != "initialize" {
		h.Set("Mcp-Protocol-Version", string(c.era))
	}
	if c.era == statelessEra {
		h.Set("Mcp-Method", method)
		if name != "" {
			h.Set("Mcp-Name", name)
		}
	}
	for name, value := range more {
		h.Set(name, value)
	}
	return h
}

// eraMeta are the members of _meta that every request of the stateless revision has.
func (e era) meta() map[string]any {
	if e != statelessEra {
		return map[string]any{}
	}
	return map[string]any{
		"io.modelcontextprotocol/protocolVersion":    string(e),
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}
}

// A toolCall is what a model and its orchestrator say.
type toolCall struct {
	Meta    map[string]json.RawMessage `json:"meta"`
	Args    json.RawMessage            `json:"args"`
	Headers map[string]string          `json:"headers"` // HTTP only
}

// with makes a call whose _meta holds the intent, given as JSON.
func with(intent, args string) toolCall {
	return toolCall{Meta: map[string]json.RawMessage{"onceward/operation": json.RawMessage(intent)}, Args: json.RawMessage(args)}
}

// message is the call as it goes over the wire, under an id of its own.
func (c *client) message(tool string, call toolCall) (id int64, message []byte, err error) {
	meta := c.era.meta()
	for name, value := range call.Meta {
		meta[name] = value
	}
	params := map[string]any{"name": tool}
	if len(meta) > 0 {
		params["_meta"] = meta
	}
	if call.Args != nil {
		params["arguments"] = call.Args
	}
	id = c.ids.Add(1)
	message, err = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
	return id, message, err
}

// call makes one call and waits for its answer.
func (c *client) call(ctx context.Context, tool string, call toolCall) (reply, error) {
	_, message, err := c.message(tool, call)
	if err != nil {
		return reply{}, err
	}
	answer, err := c.wire.exchange(ctx, message, c.headers("tools/call", tool, call.Headers))
	if err != nil {
		return reply{}, err
	}
	return parseReply(answer)
}

// A reply is a JSON-RPC answer to tools/call.
type reply struct {
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Result *struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent"`
	} `json:"result"`
}

func parseReply(answer []byte) (reply, error) {
	var r reply
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, fmt.Errorf("%w: %.200q", err, answer)
	}
	if (r.Error == nil) == (r.Result == nil) {
		return r, fmt.Errorf("neither a result nor an error, or both: %.200q", answer)
	}
	return r, nil
}

// fields are what a test may look at: the structured content, with isError beside it; or
// error and error_message.
func (r reply) fields() (map[string]any, error) {
	if r.Error != nil {
		return map[string]any{"error": json.Number(fmt.Sprint(r.Error.Code)), "error_message": r.Error.Message}, nil
	}
	fields := map[string]any{}
	if r.Result.StructuredContent != nil {
		decoder := json.NewDecoder(bytes.NewReader(r.Result.StructuredContent))
		decoder.UseNumber()
		if err := decoder.Decode(&fields); err != nil {
			return nil, err
		}
	}
	fields["isError"] = r.Result.IsError
	if len(r.Result.Content) > 0 {
		fields["text"] = r.Result.Content[0].Text
	}
	return fields, nil
}

// An outcome is the part of an answer that most tests count by.
type outcome struct {
	OperationID         string `json:"operation_id"`
	Status              string `json:"status"`
	Replayed            bool   `json:"replayed"`
	Attempts            int    `json:"attempts"`
	ProviderOperationID string `json:"provider_operation_id"`
	ProviderStatus      string `json:"provider_status"`
	Review              bool   `json:"review"`
	Code                string `json:"code"`
	Next                string `json:"next"`
}

func (r reply) outcome() (outcome, error) {
	if r.Error != nil {
		return outcome{}, fmt.Errorf("JSON-RPC error %d: %s", r.Error.Code, r.Error.Message)
	}
	var o outcome
	if err := json.Unmarshal(r.Result.StructuredContent, &o); err != nil {
		return o, fmt.Errorf("%w: %+v", err, r.Result)
	}
	return o, nil
}
