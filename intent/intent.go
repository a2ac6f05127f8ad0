// Package intent reads what the orchestrator says a call is for, and turns it
// into the key of the business action.
//
// The intent comes from what a host injects beside a call (the call's _meta,
// HTTP headers, the process's own flags) and never from what a model wrote:
// tool arguments, Mcp-Param-* headers that mirror them, JSON-RPC ids, session
// ids and client info are not read here. A repeated call has new ones of all
// these; only the intent stays.
package intent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MetaKey is the member of a call's _meta that holds the whole intent. No
// other member of _meta may begin with "onceward/".
const MetaKey = "onceward/operation"

// MaxRevision is the highest revision an intent may have.
const MaxRevision = 1_000_000

// maxIDRunes bounds each of an intent's strings, in characters.
const maxIDRunes = 128

// An Intent is what the orchestrator says one call is for. It has one of two
// forms: WorkflowID, Step, BusinessObject and Revision, or
// BusinessOperationID. Strings are compared byte by byte, without Unicode
// normalisation.
type Intent struct {
	// WorkflowID names the case. In the second form it groups operations, for
	// lists and limits, and is no part of their identity.
	WorkflowID string
	// Step names what is done in the case, BusinessObject what it is done to.
	Step, BusinessObject string
	// Revision is from 1 to MaxRevision: an orchestrator raises it when a
	// corrected action is a new one. It is 0 in the second form, which has none.
	Revision int
	// BusinessOperationID is the second form: one id that the business itself
	// gave this action.
	BusinessOperationID string
	// RunID changes with every run. It is for limits and audit, never identity.
	RunID string
}

// A Scope is what a connection or a process says for all its calls. An empty
// string is one that wasn't given.
type Scope struct{ WorkflowID, RunID string }

// Validate checks a scope that comes from flags or the environment, once, at
// start-up. Its error is an [*Error] and names the flag.
func (s Scope) Validate() error {
	var f faults
	if s.WorkflowID != "" {
		f.check("workflow_id", s.WorkflowID)
	}
	if s.RunID != "" {
		f.check("run_id", s.RunID)
	}
	return f.err("The process's scope (--workflow-id, ONCEWARD_WORKFLOW_ID, --run-id, ONCEWARD_RUN_ID)",
		"Correct the flag or the environment variable.")
}

// checkID says what is wrong with one of an intent's strings, or "".
//
// Control characters are those of category Cc. U+2028 and U+2029 are
// separators, not controls, and pass like any other letter: nothing here is
// split into lines, and the key has them as they stand.
func checkID(s string) string {
	switch {
	case s == "":
		return "must not be empty"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case utf8.RuneCountInString(s) > maxIDRunes:
		return "has more than 128 characters"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "has a control character"
	}
	return ""
}

// perCallPrefixes begin ids that a model's API or a framework makes anew for
// every call: OpenAI, Anthropic, Amazon Bedrock, vLLM, Pydantic AI, and
// Kimi's "functions.name:0".
var perCallPrefixes = []string{"call_", "toolu_", "tooluse_", "chatcmpl-tool-", "pyd_ai_", "functions."}

// perCallPrefix returns the prefix that gives id away as made for one call.
func perCallPrefix(id string) (string, bool) {
	for _, p := range perCallPrefixes {
		if strings.HasPrefix(id, p) {
			return p, true
		}
	}
	return "", false
}
