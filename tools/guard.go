package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A call is what a tool gets once its arguments fit the schema.
type call struct {
	tenant string
	meta   map[string]any
	header http.Header
	args   map[string]any
	inputs mcp.InputResponses // what the client's user answered to a question of an earlier call
	state  string             // what that question gave the client to bring back
}

// wrap is the one way to a tool. What comes back is always a result: an error would
// reach the client word for word, and so would a panic.
func (s *Set) wrap(t *tool) server.ToolHandlerFunc {
	return func(ctx context.Context, request mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
		if passed, ok := ctx.Value(probeKey{}).(*bool); ok {
			*passed = true
			return &mcp.CallToolResult{}, nil
		}
		defer func() {
			if p := recover(); p != nil { // its text may quote anything
				s.log.LogAttrs(ctx, slog.LevelError, "a tool panicked", slog.String("tool", t.name),
					slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
				result = bug(t)
			}
		}()
		result, err := s.enter(ctx, t, request)
		if err == nil {
			return result, nil
		}
		refusal, ok := errors.AsType[*ledger.Refusal](err)
		if !ok {
			s.log.LogAttrs(ctx, slog.LevelError, "a tool failed", slog.String("tool", t.name), slog.Any("error", err))
			return bug(t), nil
		}
		s.log.LogAttrs(ctx, slog.LevelInfo, "refused", slog.String("tool", t.name), slog.String("code", string(refusal.Code)),
			slog.String("operation_id", refusal.OperationID), slog.Any("cause", refusal.Cause))
		return refused(t, refusal), nil
	}
}

func (s *Set) enter(ctx context.Context, t *tool, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	// 1. A call that came too late, or whose caller has gone, starts nothing.
	if TurnedAway(ctx) || ctx.Err() != nil {
		return nil, &ledger.Refusal{Code: ledger.ShuttingDown}
	}
	// 2. The arguments, exactly as they were sent, fit the schema that was shown.
	args, refusal := t.parse(request.GetRawArguments())
	if refusal != nil {
		return nil, refusal
	}
	problems, err := t.violations(args)
	if err != nil {
		return nil, fmt.Errorf("validate the arguments: %w", err)
	}
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	// 3. Who calls, and what came beside the arguments.
	c := call{tenant: CallerFrom(ctx).Tenant, header: request.Header, args: args, inputs: request.Params.InputResponses, state: request.Params.RequestState}
	if request.Params.Meta != nil {
		c.meta = request.Params.Meta.AdditionalFields
	}
	return t.run(ctx, c)
}

// resolve reads what the orchestrator says the call is for.
func (s *Set) resolve(mode intent.Mode, c call) (intent.Resolved, error) {
	r, err := intent.Read(mode, intent.Carried{Meta: c.meta, Header: c.header, Process: s.opts.Scope})
	if bad, ok := errors.AsType[*intent.Error](err); ok {
		return r, &ledger.Refusal{Code: ledger.RefusalCode(bad.Code), Fields: bad.Fields, Message: bad.Message}
	}
	return r, err
}

// An effect is a tool that acts on the world.
type effect struct {
	critical    []string // arguments that make it another action
	identifying []string // of these, what names the action where a whole intent doesn't
	decode      func(*arguments) (providers.Arguments, values)
}

// guarded makes a tool of an effect: this is the only way to the ledger's Execute, and
// the ledger's Execute is the only way to a provider.
func (s *Set) guarded(e effect, t tool) *tool {
	t.output = answerSchema
	action, provider := t.name, s.opts.Providers[t.name]
	t.run = func(ctx context.Context, c call) (*mcp.CallToolResult, error) {
		// 4. The arguments, normalised.
		read := newArguments(c.args)
		order, vals := e.decode(read)
		if refusal := read.refusal(); refusal != nil {
			return nil, refusal
		}
		// 5. The intent: it comes from beside the arguments, never from them.
		resolved, err := s.resolve(s.opts.Mode, c)
		if err != nil {
			return nil, err
		}
		// 6. The key and the hashes.
		r := ledger.Request{Tenant: c.tenant, Action: action, Intent: described(resolved), Amount: worth(order)}
		if s.opts.Approval != nil {
			r.Approval = s.opts.Approval(action, order)
		}
		s.name(&r, resolved, e, vals)
		if r.Digest, err = s.digest(action, e, resolved.Whole, vals); err != nil {
			return nil, err
		}
		// 7. The ledger renders, claims, acts and records, or answers from memory.
		r.Prepare = func(operationID, providerKey string) (ledger.Payload, error) {
			at := s.opts.Now().UTC().Truncate(time.Second)
			return prepare(provider, providers.Order{OperationID: operationID, ProviderKey: providerKey, At: at, Arguments: order}, vals)
		}
		answer, err := s.ledger.Execute(ctx, r)
		if err != nil {
			return nil, e.narrow(err)
		}
		approved, question := s.settle(ctx, c, answer, vals)
		if question != nil {
			return question, nil
		}
		if approved {
			if answer, err = s.ledger.Execute(ctx, r); err != nil {
				return nil, e.narrow(err)
			}
		}
		// 8. The outcome, in words.
		if s.log.Enabled(ctx, slog.LevelDebug) {
			s.log.LogAttrs(ctx, slog.LevelDebug, "answered", slog.String("tool", action), slog.String("operation_id", answer.Operation.ID),
				slog.String("status", string(answer.Status)), slog.Bool("replayed", answer.Replayed), slog.Any("carriers", resolved.Carriers))
		}
		return answered(answer, called)
	}
	return &t
}

// narrow keeps, of the arguments that differ in a conflict, those that matter: the
// others alone would have been ignored.
func (e effect) narrow(err error) error {
	refusal, ok := errors.AsType[*ledger.Refusal](err)
	if !ok || refusal.Code != ledger.OperationConflict {
		return err
	}
	narrowed := *refusal
	narrowed.Fields = nil
	for _, field := range refusal.Fields {
		for _, critical := range e.critical {
			if field == critical {
				narrowed.Fields = append(narrowed.Fields, field)
			}
		}
	}
	return &narrowed
}

type probeKey struct{}

// probed reports whether a handler is the wrapper's: only that knows the probe, and
// stops there.
func probed(ctx context.Context, h server.ToolHandlerFunc, request mcp.CallToolRequest) (passed bool) {
	defer func() { _ = recover() }() // a handler that isn't ours may do anything
	_, err := h(context.WithValue(ctx, probeKey{}, &passed), request)
	return passed && err == nil
}
