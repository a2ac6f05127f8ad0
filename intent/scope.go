package intent

import (
	"fmt"
	"net/http"
	"strings"
)

// headerPrefix begins all our headers.
const headerPrefix = "Onceward-"

// scopes reads what a connection and the process say, the connection first.
func scopes(c Carried) (workflows, runs []claim[string], err error) {
	if err := knownHeaders(c.Header); err != nil {
		return nil, nil, err
	}
	if workflows, err = scopeHeader(c.Header, HeaderWorkflowID, fieldWorkflowID); err != nil {
		return nil, nil, err
	}
	if runs, err = scopeHeader(c.Header, HeaderRunID, fieldRunID); err != nil {
		return nil, nil, err
	}
	if c.Process.WorkflowID != "" {
		workflows = append(workflows, claim[string]{CarrierProcess, c.Process.WorkflowID})
	}
	if c.Process.RunID != "" {
		runs = append(runs, claim[string]{CarrierProcess, c.Process.RunID})
	}
	return workflows, runs, nil
}

// knownHeaders refuses a header that looks like ours and isn't: a misspelt
// Onceward-Operation would leave the call to a weaker identity, silently.
func knownHeaders(h http.Header) error {
	name, found := leastKey(h, func(name string) bool {
		switch name {
		case HeaderOperation, HeaderWorkflowID, HeaderRunID:
			return false
		}
		return hasPrefixFold(name, headerPrefix)
	})
	if !found {
		return nil
	}
	return &Error{Code: CodeInvalid, Fields: []string{shown(name)},
		Message: fmt.Sprintf("The header %s isn't known here. Those that begin with %s are %s, %s and %s.",
			shown(name), headerPrefix, HeaderOperation, HeaderWorkflowID, HeaderRunID)}
}

// leastKey is the least of the keys that are so, whatever order the map has.
func leastKey[V any](m map[string]V, so func(string) bool) (least string, found bool) {
	for k := range m {
		if so(k) && (!found || k < least) {
			least, found = k, true
		}
	}
	return least, found
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// scopeHeader reads a header that holds one id. A repeat with the same value
// is harmless. A comma is refused: proxies join repeated headers with one, and
// "a, b" would be a third id.
func scopeHeader(h http.Header, name, field string) ([]claim[string], error) {
	values := h.Values(name)
	if len(values) == 0 {
		return nil, nil
	}
	for _, v := range values {
		problem := checkID(v)
		if strings.Contains(v, ",") {
			problem = "has a comma, which is how proxies join a header that was sent twice"
		}
		if problem != "" {
			return nil, &Error{Code: CodeInvalid, Fields: []string{field},
				Message: fmt.Sprintf("The header %s %s. Send it once, with one id of 1 to %d characters.", name, problem, maxIDRunes)}
		}
		if v != values[0] {
			return nil, &Error{Code: CodeConflict, Fields: []string{field},
				Message: fmt.Sprintf("The header %s came twice with different values. Send it once.", name)}
		}
	}
	return []claim[string]{{name, values[0]}}, nil
}

// carrierInWords is how a message names a carrier.
func carrierInWords(carrier string) string {
	switch carrier {
	case CarrierMeta:
		return fmt.Sprintf("_meta[%q]", MetaKey)
	case CarrierProcess:
		return "the server's flags or environment"
	}
	return "the header " + carrier
}

func errConflict(a, b string, fields ...string) error {
	from := fmt.Sprintf("%s and %s say", carrierInWords(a), carrierInWords(b))
	if a == b {
		from = fmt.Sprintf("%s came twice and says", carrierInWords(a))
	}
	return &Error{Code: CodeConflict, Fields: fields,
		Message: fmt.Sprintf("Which action this call is for is not clear: %s different things about %s. "+
			"The orchestrator has to inject one intent, or the same one in both places.", from, strings.Join(fields, ", "))}
}

func errNoIntent() error {
	return &Error{Code: CodeMissing, Fields: []string{MetaKey},
		Message: fmt.Sprintf("This call carries no intent, so a repeat of it couldn't be told from a new action. "+
			"The orchestrator has to inject one beside the arguments: _meta[%q] = {\"workflow_id\", \"step\", \"business_object\"} or "+
			"{\"business_operation_id\"}, or the same JSON in the HTTP header %s. Arguments can't supply it. "+
			"A host that can inject only a workflow's id needs a server with --identity workflow.", MetaKey, HeaderOperation)}
}

func errNoWorkflow() error {
	return &Error{Code: CodeMissing, Fields: []string{fieldWorkflowID},
		Message: fmt.Sprintf("Nothing says which workflow this call belongs to. The operator has to start the server with "+
			"--workflow-id (or ONCEWARD_WORKFLOW_ID), or have the host send the HTTP header %s. "+
			"A whole intent in _meta[%q] does as well. Arguments can't supply it.", HeaderWorkflowID, MetaKey)}
}
