package transport

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxMessage is how long one JSON-RPC message may be, in bytes, on every
// transport. mcp-go has no limit of its own.
const maxMessage = 1 << 20

const methodCancelled = string(mcp.MethodNotificationCancelled)

// A message is what a transport must know of a JSON-RPC message to route it.
// It is read with encoding/json, exactly as mcp-go reads it, so that both see
// the same message where members repeat or differ in case.
type message struct {
	id      any // nil: a notification
	method  string
	modern  bool // names protocol revision 2026-07-28 or later in its _meta
	cancels any  // params.requestId of a cancellation
	result  bool // has a result: mcp-go takes it for an answer to this server
	failed  bool // has an error
}

// isReply reports whether m answers a request of this server's.
func (m message) isReply() bool { return m.method == "" && (m.result || m.failed) }

// wantsAnswer reports whether mcp-go answers m.
func (m message) wantsAnswer() bool { return m.id != nil && !m.result }

// A refusal is a JSON-RPC error for a message that can't be routed.
type refusal struct {
	code int
	text string
}

// parseMessage reads a message that must be one JSON object. A batch is refused:
// no revision that mcp-go serves needs one, and a check of its members could be
// fooled.
func parseMessage(raw []byte) (message, *refusal) {
	var base struct {
		ID     any             `json:"id"`
		Method string          `json:"method"`
		Result any             `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &base); err != nil {
		if !json.Valid(raw) {
			return message{}, &refusal{mcp.PARSE_ERROR, "the message isn't valid JSON"}
		}
		return message{id: base.ID}, &refusal{mcp.INVALID_REQUEST, "the message must be one JSON-RPC object; batches aren't supported"}
	}
	m := message{id: base.ID, method: base.Method, result: base.Result != nil, failed: base.Error != nil}
	// An error here means another shape of params, which mcp-go takes for an
	// older revision too.
	var params struct {
		Params struct {
			Meta *mcp.Meta `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(raw, &params) == nil {
		m.modern = mcp.IsModernProtocol(params.Params.Meta.ProtocolVersion())
	}
	if m.method == methodCancelled {
		var cancel struct {
			Params struct {
				RequestID any `json:"requestId"`
			} `json:"params"`
		}
		if json.Unmarshal(raw, &cancel) == nil {
			m.cancels = cancel.Params.RequestID
		}
	}
	return m, nil
}

// rpcError is a JSON-RPC error answer. A nil id becomes null.
func rpcError(id any, code int, text string) mcp.JSONRPCError {
	return mcp.JSONRPCError{
		JSONRPC: mcp.JSONRPC_VERSION,
		ID:      mcp.NewRequestId(id),
		Error:   mcp.NewJSONRPCErrorDetails(code, text, nil),
	}
}
