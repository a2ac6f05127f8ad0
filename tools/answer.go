package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/onceward/onceward/ledger"
)

// An answer is what a call gets, as it stands on the wire. Members without meaning for
// the status are left out.
type answer struct {
	OperationID         string           `json:"operation_id,omitempty"`
	ActionType          string           `json:"action_type,omitempty"`
	Status              string           `json:"status"`
	Replayed            *bool            `json:"replayed,omitempty"`
	Attempts            *int             `json:"attempts,omitempty"`
	Provider            string           `json:"provider,omitempty"`
	ProviderOperationID string           `json:"provider_operation_id,omitempty"`
	ProviderStatus      string           `json:"provider_status,omitempty"`
	CompletedAt         string           `json:"completed_at,omitempty"`
	Result              *json.RawMessage `json:"result,omitempty"`
	IgnoredChanges      []string         `json:"ignored_changes,omitempty"`
	RetryAfter          int64            `json:"retry_after,omitempty"` // seconds
	Review              bool             `json:"review,omitempty"`
	ExpiresAt           string           `json:"expires_at,omitempty"`
	Code                string           `json:"code,omitempty"`
	Fields              []string         `json:"fields,omitempty"`
	Next                string           `json:"next"`
	Message             string           `json:"message,omitempty"`
}

// What helps; the values of next.
const (
	nextNone             = "none"
	nextWait             = "wait"
	nextAskHuman         = "ask_human"
	nextRetryLater       = "retry_later"
	nextFixArguments     = "fix_arguments"
	nextFixConfiguration = "fix_configuration"
)

const statusRefused = "refused"

// describe says where an operation stands, without words.
func describe(a ledger.Answer) answer {
	op := &a.Operation
	attempts, replayed := op.Attempts, a.Replayed // pointers into a would keep all of it on the heap
	said := answer{
		OperationID: op.ID, ActionType: op.Action, Status: string(a.Status), Attempts: &attempts,
		Provider: op.Provider, ProviderOperationID: op.ProviderOperationID, ProviderStatus: op.ProviderStatus,
		IgnoredChanges: a.Ignored, Review: op.Review.Open(),
	}
	switch a.Status {
	case ledger.AnswerSucceeded:
		said.Next, said.Replayed, said.Result = nextNone, &replayed, result(op.Result)
		said.CompletedAt = date(op.CompletedAt)
	case ledger.AnswerInProgress:
		said.Next, said.RetryAfter = nextWait, seconds(a.RetryAfter)
	case ledger.AnswerUnknown:
		said.Next = nextAskHuman
		if !said.Review {
			said.Next, said.RetryAfter = nextWait, seconds(a.RetryAfter)
		}
	case ledger.AnswerAwaitingApproval:
		said.Next, said.ExpiresAt = nextAskHuman, date(op.ExpiresAt)
	case ledger.AnswerFailedRetryable:
		said.Next, said.Code = nextAskHuman, op.ErrorCode
		if !said.Review { // a person who is asked decides about the next attempt
			said.Next, said.RetryAfter = nextRetryLater, seconds(a.RetryAfter)
		}
	case ledger.AnswerFailedFinal:
		said.Next, said.Code, said.CompletedAt = nextNone, op.ErrorCode, date(op.CompletedAt)
	}
	return said
}

// result is null where there is none any more. A result that isn't an object would
// break the answer, and the answer matters more.
func result(kept json.RawMessage) *json.RawMessage {
	null := json.RawMessage("null")
	if trimmed := bytes.TrimSpace(kept); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		return &null
	}
	return &kept
}

// seconds rounds up: a client that comes too early gets the same answer again.
func seconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// A use of an answer: a call that wanted the action done, or one that only asks.
type use bool

const (
	called use = false
	asked  use = true
)

// answered is the result of a call that reached the ledger. "Done" and "not yet" are
// no errors: an error makes a model try another way.
func answered(a ledger.Answer, u use) (*mcp.CallToolResult, error) {
	said := describe(a)
	said.Message = sentence(said, a.Operation, u)
	no := a.Status == ledger.AnswerFailedRetryable || a.Status == ledger.AnswerFailedFinal
	return toResult(said, said.Message, "Status: "+said.Status+". Operation: "+said.OperationID+".", no && u == called)
}

// refused is the result of a call that was turned away.
func refused(t *tool, r *ledger.Refusal) *mcp.CallToolResult {
	said := answer{
		OperationID: r.OperationID, Status: statusRefused, Code: string(r.Code), Fields: r.Fields, Next: nextOf(r.Code),
	}
	if !t.reads {
		said.ActionType = t.name
	}
	if r.RetryAfter > 0 {
		said.RetryAfter = seconds(r.RetryAfter)
	}
	said.Message = refusalSentence(said, r)
	res, err := toResult(said, said.Message, "Status: refused. Code: "+said.Code+".", true)
	if err != nil {
		return bug(t)
	}
	return res
}

// bug is the result when the server itself is at fault. It has no structured content:
// none of the statuses is true.
func bug(t *tool) *mcp.CallToolResult {
	text := "The server met an error of its own, and can't say what became of this call. Don't do it another way: the same call can be made again, and acts at most once. If this stays, tell the user: the server's log says more."
	if t.reads {
		text = "The server met an error of its own. The same call can be made again. If this stays, tell the user: the server's log says more."
	}
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(text)}, IsError: true}
}

// toResult gives the answer three times: structured; as a sentence, with what names it;
// and as JSON text, which the protocol recommends for clients that know no structure.
func toResult(structured any, message, summary string, isError bool) (*mcp.CallToolResult, error) {
	text, err := json.Marshal(structured)
	if err != nil {
		return nil, fmt.Errorf("print the answer: %w", err)
	}
	sentence := message
	if summary != "" {
		sentence += "\n" + summary
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(sentence), mcp.NewTextContent(string(text))},
		StructuredContent: json.RawMessage(text),
		IsError:           isError,
	}, nil
}
