package intent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A Mode says how much the orchestrator has to say about each call.
type Mode string

const (
	// Strict demands a whole intent. It is what every unknown Mode means, too.
	Strict Mode = "strict"
	// Workflow is for hosts that can inject a scope only: where a call has no
	// whole intent, the scope's workflow_id and the tool's declared identifying
	// arguments are its identity.
	Workflow Mode = "workflow"
)

// The HTTP headers that are read. HeaderOperation holds the whole intent as
// JSON in ASCII, the others one id each.
const (
	HeaderOperation  = "Onceward-Operation"
	HeaderWorkflowID = "Onceward-Workflow-Id"
	HeaderRunID      = "Onceward-Run-Id"
)

// Names of the carriers that have no header's name, as Resolved has them.
const (
	CarrierMeta    = "_meta"
	CarrierProcess = "process"
)

// Carried is all that came with a call and may say what it is for.
type Carried struct {
	// Meta is the call's params._meta, all its members. Values are as
	// encoding/json decodes them into an any, or a json.RawMessage.
	Meta map[string]any
	// Header is the header of the HTTP request that brought the call, or nil.
	// Its names are in canonical form, as net/http has them.
	Header http.Header
	// Process is the scope from the server's own flags and environment. It
	// must have passed Validate.
	Process Scope
}

// A Resolved is what the carriers of a call agree on.
type Resolved struct {
	Intent Intent
	// Whole says that the intent alone is the identity. Otherwise Intent has
	// WorkflowID, perhaps RunID, and Revision 1.
	Whole bool
	// Carriers names, for logs, where the intent's parts came from: CarrierMeta,
	// CarrierProcess or a header.
	Carriers []string
}

// A claim is one carrier's value for one member, or for the whole intent.
type claim[T any] struct {
	carrier string
	value   T
}

// Read finds the intent of a call in what it carried. A whole intent comes from
// _meta or HeaderOperation; from the scope it takes what it leaves out, which
// can be run_id and, in the form of business_operation_id, workflow_id.
//
// The error is an [*Error]. It has CodeMissing where mode wants more than was
// carried, CodeInvalid for half an intent, an unknown member of it, or anything
// else that looks like ours and can't be read, and CodeConflict where two
// carriers name different actions, different run_ids, or a different
// workflow_id that no whole intent settles.
func Read(mode Mode, c Carried) (Resolved, error) {
	wholes, err := wholeIntents(c)
	if err != nil {
		return Resolved{}, err
	}
	workflows, runs, err := scopes(c)
	if err != nil {
		return Resolved{}, err
	}
	if len(wholes) == 0 {
		switch {
		case mode != Workflow:
			return Resolved{}, errNoIntent()
		case len(workflows) == 0:
			return Resolved{}, errNoWorkflow()
		}
	}

	r := Resolved{Intent: Intent{Revision: 1}, Whole: len(wholes) > 0}
	var stated, statedRuns []claim[string]
	for _, w := range wholes {
		if err := sameAction(wholes[0], w); err != nil {
			return Resolved{}, err
		}
		r.Intent = w.value
		r.note(w.carrier)
		if w.value.WorkflowID != "" {
			stated = append(stated, claim[string]{w.carrier, w.value.WorkflowID})
		}
		if w.value.RunID != "" {
			statedRuns = append(statedRuns, claim[string]{w.carrier, w.value.RunID})
		}
	}
	if len(stated) > 0 {
		workflows = stated
	}
	if r.Intent.WorkflowID, err = r.agree(fieldWorkflowID, workflows); err != nil {
		return Resolved{}, err
	}
	if r.Intent.RunID, err = r.agree(fieldRunID, append(statedRuns, runs...)); err != nil {
		return Resolved{}, err
	}
	return r, nil
}

// agree returns what all claims say, "" if there are none, and notes the first
// one's carrier.
func (r *Resolved) agree(field string, claims []claim[string]) (string, error) {
	if len(claims) == 0 {
		return "", nil
	}
	first := claims[0]
	for _, c := range claims[1:] {
		if c.value != first.value {
			return "", errConflict(first.carrier, c.carrier, field)
		}
	}
	r.note(first.carrier)
	return first.value, nil
}

func (r *Resolved) note(carrier string) {
	if !slices.Contains(r.Carriers, carrier) {
		r.Carriers = append(r.Carriers, carrier)
	}
}

// wholeIntents reads the carriers that are written anew for each call.
func wholeIntents(c Carried) ([]claim[Intent], error) {
	strange := func(name string) bool { return name != MetaKey && hasPrefixFold(name, metaPrefix) }
	if name, found := leastKey(c.Meta, strange); found {
		return nil, &Error{Code: CodeInvalid, Fields: []string{shown(name)},
			Message: fmt.Sprintf("_meta has a member %s that isn't known here. The only one that begins with %q is %q.",
				shown(name), metaPrefix, MetaKey)}
	}
	var wholes []claim[Intent]
	if v, ok := c.Meta[MetaKey]; ok {
		in, err := decode(`_meta["`+MetaKey+`"]`, v)
		if err != nil {
			return nil, err
		}
		wholes = append(wholes, claim[Intent]{CarrierMeta, in})
	}
	for _, v := range c.Header.Values(HeaderOperation) {
		if strings.ContainsFunc(v, func(r rune) bool { return r > '~' }) {
			return nil, &Error{Code: CodeInvalid, Fields: []string{HeaderOperation},
				Message: "The header " + HeaderOperation + ` has a character outside ASCII. Write it as a \u escape: what proxies make of others differs.`}
		}
		in, err := decode("The header "+HeaderOperation, json.RawMessage(v))
		if err != nil {
			return nil, err
		}
		wholes = append(wholes, claim[Intent]{HeaderOperation, in})
	}
	return wholes, nil
}

const metaPrefix = "onceward/"

// sameAction compares what identifies the action; workflow_id and run_id where
// they don't are compared with all that is said about them.
func sameAction(a, b claim[Intent]) error {
	x, y := a.value, b.value
	var fields []string
	differ := func(name string, differs bool) {
		if differs {
			fields = append(fields, name)
		}
	}
	differ(fieldWorkflowID, x.WorkflowID != y.WorkflowID && x.BusinessOperationID+y.BusinessOperationID == "")
	differ(fieldStep, x.Step != y.Step)
	differ(fieldBusinessObject, x.BusinessObject != y.BusinessObject)
	differ(fieldRevision, x.Revision != y.Revision)
	differ(fieldBusinessOperationID, x.BusinessOperationID != y.BusinessOperationID)
	if len(fields) == 0 {
		return nil
	}
	return errConflict(a.carrier, b.carrier, fields...)
}
