package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A JSONCheck refuses a message whose members repeat or differ from a known
// name in case only. Its errors hold no value of the message.
type JSONCheck func(raw []byte) error

// StrictJSON makes mcp-go run check on every request, on every transport,
// before anything of it is used. encoding/json lets the last of two members win
// and takes _META for _meta, so that a gateway which reads a message exactly
// could be made to see another one. Notifications aren't checked: nothing but
// the cancellation of a request listens to them.
func StrictJSON(check JSONCheck) server.OnRequestInitializationFunc {
	return func(_ context.Context, _ any, msg any) error {
		raw, ok := msg.(json.RawMessage)
		if !ok {
			return errors.New("the message can't be checked; nothing was done")
		}
		if err := check(raw); err != nil {
			return fmt.Errorf("the message was refused, nothing was done: %w", err)
		}
		return nil
	}
}

// DottedNames lets a call use another name of a tool: names maps what a call
// may say to the name under which the tool is registered. It works on a call
// only; what is listed doesn't change.
func DottedNames(names map[string]string) server.OnBeforeCallToolFunc {
	return func(_ context.Context, _ any, r *mcp.CallToolRequest) {
		if registered, ok := names[r.Params.Name]; ok {
			r.Params.Name = registered
		}
	}
}

// panicText is what a client reads when a handler panicked.
const panicText = "internal error; the server's log says where. If this call acts on the outside world, its outcome is in the ledger: ask operation_get or repeat the call with the same operation context"

// HidePanics answers a panicking tool with an error that doesn't hold the
// panic's text. mcp-go sends that text to the client on SSE, and so does its
// own WithRecovery on every transport. Register it first: it must be outermost.
func HidePanics(log *slog.Logger) server.ToolHandlerMiddleware {
	return func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, r mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
			defer func() {
				if p := recover(); p != nil {
					logPanic(log, p)
					result, err = nil, errors.New(panicText)
				}
			}()
			return next(ctx, r)
		}
	}
}

// logPanic logs where a panic happened. Its value stays out of the log, as it
// may hold an argument of a call; its type and the stack don't.
func logPanic(log *slog.Logger, value any) {
	log.Error("a handler panicked", "type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
}
