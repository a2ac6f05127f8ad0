package tools

import "strings"

// The properties of an answer, in the order in which they are printed.
const answerProperties = `
	"operation_id": {"type": "string", "description": "Names the operation; operation_get reads it."},
	"action_type": {"type": "string", "enum": ["email.send", "payment_order.create", "refund"]},
	"status": {"type": "string", "enum": ["succeeded", "in_progress", "unknown", "awaiting_approval", "failed_retryable", "failed_final", "refused"],
		"description": "unknown is no failure: it may have happened. refused means that this call did nothing."},
	"replayed": {"type": "boolean", "description": "This call did nothing: an earlier one did it."},
	"attempts": {"type": "integer", "minimum": 0, "description": "Requests sent to the provider so far."},
	"provider": {"type": "string"},
	"provider_operation_id": {"type": "string", "description": "The provider's own id."},
	"provider_status": {"type": "string", "description": "The provider's own word for how far it has come."},
	"completed_at": {"type": "string", "format": "date-time"},
	"result": {"type": ["object", "null"], "description": "The first call's result; null where it isn't kept any more."},
	"ignored_changes": {"type": "array", "items": {"type": "string"}, "description": "Arguments that differ from the first call's. The first call's stand."},
	"retry_after": {"type": "integer", "minimum": 1, "description": "Seconds to wait before the same call is made again."},
	"review": {"type": "boolean", "description": "A person is asked."},
	"expires_at": {"type": "string", "format": "date-time", "description": "Until then a person can approve it."},
	"code": {"type": "string", "description": "Why it failed or was refused."},
	"fields": {"type": "array", "items": {"type": "string"}, "description": "The arguments at fault, or that differ."},
	"next": {"type": "string", "enum": ["none", "wait", "ask_human", "retry_later", "fix_arguments", "fix_configuration"], "description": "What helps."}`

const messageProperty = `"message": {"type": "string"}`

var (
	// answerSchema is the output of every tool that answers with one operation.
	answerSchema = object([]string{"status", "next", "message"}, answerProperties, messageProperty)

	// listSchema is operation_list's: operations, or what a refusal has.
	listSchema = object([]string{"message"},
		`"operations": {"type": "array", "items": `+string(object([]string{"operation_id", "action_type", "status", "attempts", "next"}, answerProperties))+`}`,
		pick(answerProperties, "status", "retry_after", "code", "fields", "next"),
		messageProperty)
)

// pick takes some of the properties above, each of which begins a line.
func pick(properties string, names ...string) string {
	var picked []string
	for part := range strings.SplitSeq(properties, "\n\t\"") {
		for _, name := range names {
			if strings.HasPrefix(part, name+`"`) {
				picked = append(picked, `"`+strings.TrimSuffix(part, ","))
			}
		}
	}
	return strings.Join(picked, ",\n")
}
