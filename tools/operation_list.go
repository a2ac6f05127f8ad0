package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
)

const (
	defaultListed = 20
	maxListed     = 100
)

// listedStatuses leads from the statuses that answers have to the ledger's.
var listedStatuses = map[ledger.AnswerStatus]ledger.Status{
	ledger.AnswerSucceeded:        ledger.Succeeded,
	ledger.AnswerInProgress:       ledger.Executing,
	ledger.AnswerUnknown:          ledger.Unknown,
	ledger.AnswerAwaitingApproval: ledger.Planned,
	ledger.AnswerFailedRetryable:  ledger.FailedRetryable,
	ledger.AnswerFailedFinal:      ledger.FailedFinal,
}

var listedStatusNames = []string{
	string(ledger.AnswerSucceeded), string(ledger.AnswerInProgress), string(ledger.AnswerUnknown),
	string(ledger.AnswerAwaitingApproval), string(ledger.AnswerFailedRetryable), string(ledger.AnswerFailedFinal),
}

// A list is operation_list's answer.
type list struct {
	Operations []answer `json:"operations"`
	Message    string   `json:"message"`
}

// operationList reads what a workflow has done. Which workflow, the orchestrator says,
// so that a model sees its own work only; half an intent is enough for it.
func (s *Set) operationList() *tool {
	return &tool{
		name:  operationListName,
		title: "list the workflow's operations",
		description: "Lists the emails, payment orders and refunds of the current workflow, newest first. It changes nothing. " +
			"Use it to see what was already done before doing anything.",
		input: object(nil,
			`"status": {"type": "string", "enum": `+enum(listedStatusNames)+`, "description": "Only operations that stand so."}`,
			fmt.Sprintf(`"limit": {"type": "integer", "minimum": 1, "maximum": %d, "description": "At most so many; %d if not given."}`, maxListed, defaultListed)),
		output: listSchema,
		reads:  true,
		run:    s.runList,
	}
}

func (s *Set) runList(ctx context.Context, c call) (*mcp.CallToolResult, error) {
	read := newArguments(c.args)
	status := ledger.AnswerStatus(read.choice("status", listedStatusNames, false))
	limit := read.integer("limit", 1, maxListed, defaultListed)
	if refusal := read.refusal(); refusal != nil {
		return nil, refusal
	}
	resolved, err := s.resolve(intent.Workflow, c)
	if err != nil {
		return nil, err
	}
	if resolved.Intent.WorkflowID == "" {
		return nil, &ledger.Refusal{Code: ledger.IntentMissing, Fields: []string{"workflow_id"},
			Message: "The call's intent names no workflow, so there is nothing to list. The orchestrator has to inject workflow_id as well."}
	}
	filter := ledger.Filter{Tenant: &c.tenant, WorkflowID: resolved.Intent.WorkflowID, Newest: true, Limit: limit}
	if status != "" {
		filter.Statuses = []ledger.Status{listedStatuses[status]}
	}
	found, err := s.ledger.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	said := list{Operations: make([]answer, len(found)), Message: listSentence(len(found), limit, status)}
	for i, op := range found {
		said.Operations[i] = listedAnswer(op)
	}
	return toResult(said, said.Message, "", false)
}

// listedAnswer is the same object that a call gets, without what only a call has: words
// and a time to wait.
func listedAnswer(op ledger.Operation) answer {
	a := ledger.Answer{Operation: op, Replayed: true}
	for status, kept := range listedStatuses {
		if kept == op.Status {
			a.Status = status
		}
	}
	said := describe(a)
	said.RetryAfter = 0
	return said
}

func listSentence(found, limit int, status ledger.AnswerStatus) string {
	what := "operations"
	if found == 1 {
		what = "operation"
	}
	if status != "" {
		what += " with the status " + string(status)
	}
	if found == limit {
		return fmt.Sprintf("The newest %d %s of this workflow. There may be more: the limit can be raised to %d.", found, what, maxListed)
	}
	text := fmt.Sprintf("This workflow has %d %s.", found, what)
	if found > 0 {
		text = strings.TrimSuffix(text, ".") + ", newest first."
	}
	return text
}
