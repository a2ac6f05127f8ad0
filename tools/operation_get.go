package tools

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	operationGetName  = "operation.get"
	operationListName = "operation.list"
)

// operationGet reads one operation of the caller's tenant. It needs no intent: the
// operation's id names it, and reading has no effect to be protected.
func (s *Set) operationGet() *tool {
	return &tool{
		name:  operationGetName,
		title: "read an operation",
		description: "Reads how an earlier email, payment order or refund stands. It changes nothing. " +
			"Use it when an answer said in_progress, unknown or awaiting_approval.",
		input: object([]string{"operation_id"},
			`"operation_id": {"type": "string", "pattern": "^op_[0-9A-Za-z-]{1,61}$", "description": "From an earlier answer, like op_01939c1e-7b1e-7c3a-9f6e-2d5b8a4c1f00."}`),
		output: answerSchema,
		reads:  true,
		hints:  map[string]string{"operation_id": "take it from an earlier answer or from operation_list"},
		run: func(ctx context.Context, c call) (*mcp.CallToolResult, error) {
			read := newArguments(c.args)
			id := read.line("operation_id", maxText, true)
			if refusal := read.refusal(); refusal != nil {
				return nil, refusal
			}
			found, err := s.ledger.Get(ctx, c.tenant, id)
			if err != nil {
				return nil, err
			}
			found.Replayed = true // whatever was done, an earlier call did it
			return answered(found, asked)
		},
	}
}
