package intent

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// The members of an intent.
const (
	fieldWorkflowID          = "workflow_id"
	fieldStep                = "step"
	fieldBusinessObject      = "business_object"
	fieldRevision            = "revision"
	fieldBusinessOperationID = "business_operation_id"
	fieldRunID               = "run_id"
)

const adviceWhole = "An intent is workflow_id, step and business_object (with revision if it isn't 1), or " +
	"business_operation_id (with workflow_id for grouping); run_id may come with both. The orchestrator has to correct it."

// decode reads a whole intent that carrier brought: a map, as encoding/json
// makes it, or a json.RawMessage, which is checked first. Names must match
// exactly: through a map, because a struct would take STEP for step.
func decode(carrier string, v any) (Intent, error) {
	m, err := object(carrier, v)
	if err != nil {
		return Intent{}, err
	}
	var f faults
	var strange []string
	for name := range m {
		switch name {
		case fieldWorkflowID, fieldStep, fieldBusinessObject, fieldRevision, fieldBusinessOperationID, fieldRunID:
		default:
			strange = append(strange, name)
		}
	}
	slices.Sort(strange)
	for _, name := range strange {
		f.add(shown(name), "is not a member of an intent")
	}
	in := Intent{WorkflowID: f.id(m, fieldWorkflowID), RunID: f.id(m, fieldRunID)}
	if _, second := m[fieldBusinessOperationID]; second {
		in.BusinessOperationID = f.businessOperationID(m)
	} else {
		for _, name := range []string{fieldWorkflowID, fieldStep, fieldBusinessObject} {
			if _, ok := m[name]; !ok {
				f.add(name, "is missing")
			}
		}
		in.Step, in.BusinessObject = f.id(m, fieldStep), f.id(m, fieldBusinessObject)
		in.Revision = f.revision(m)
	}
	if err := f.err(carrier, adviceWhole); err != nil {
		return Intent{}, err
	}
	return in, nil
}

func object(carrier string, v any) (map[string]any, error) {
	refuse := func(problem string, fields ...string) error {
		return &Error{Code: CodeInvalid, Fields: fields,
			Message: fmt.Sprintf("%s is not valid: %s. %s", carrier, problem, adviceWhole)}
	}
	if raw, ok := v.(json.RawMessage); ok {
		var err *JSONError
		if v, err = readJSON(raw, KnownMembers); err != nil {
			return nil, refuse(err.Error(), err.fields()...)
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, refuse("it must be a JSON object")
	}
	return m, nil
}

// id reads one of the strings; an absent one is "".
func (f *faults) id(m map[string]any, name string) string {
	v, ok := m[name]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.add(name, "must be a string")
		return ""
	}
	f.check(name, s)
	return s
}

func (f *faults) businessOperationID(m map[string]any) string {
	id := f.id(m, fieldBusinessOperationID)
	if p, ok := perCallPrefix(id); ok {
		f.add(fieldBusinessOperationID, fmt.Sprintf("begins with %q: such an id is made anew for every call, "+
			"so a repeated call would count as another action; give the id that the business knows this action by", p))
	}
	for _, name := range []string{fieldStep, fieldBusinessObject, fieldRevision} {
		if _, ok := m[name]; ok {
			f.add(name, "can't stand together with business_operation_id")
		}
	}
	return id
}

// revision reads the revision, which is 1 where it is absent. A call's _meta
// arrives with float64 in the place of numbers, so 2.0 can't be told from 2
// there and passes everywhere.
func (f *faults) revision(m map[string]any) int {
	v, ok := m[fieldRevision]
	if !ok {
		return 1
	}
	n := math.NaN()
	switch v := v.(type) {
	case float64:
		n = v
	case int:
		n = float64(v)
	case int64:
		n = float64(v)
	case json.Number:
		if parsed, err := v.Float64(); err == nil {
			n = parsed
		}
	}
	if !(n >= 1 && n <= MaxRevision) || n != math.Trunc(n) {
		f.add(fieldRevision, fmt.Sprintf("must be an integer from 1 to %d", MaxRevision))
		return 0
	}
	return int(n)
}
