package intent

import (
	"fmt"
	"slices"

	"github.com/onceward/onceward/ledger"
)

// workflowIdentity is the member "identity" of an action that is identified by
// its workflow and its declared arguments.
const workflowIdentity = "workflow"

// An Action is what gets keyed: the members of its canonical JSON and nothing
// else. Two calls are the same business action exactly when their Actions are
// equal. An empty string is a member that isn't there, and so is Revision 0.
type Action struct {
	ActionType string // "email.send"
	Tenant     string // "" where there is none, or for the ledger's heir
	// Identity is "workflow" where Subject is part of the identity, else "".
	Identity            string
	WorkflowID          string
	Step                string
	BusinessObject      string
	BusinessOperationID string
	// Subject is the tool's declared identifying arguments, in its order. A
	// string in it may be empty.
	Subject  []string
	Revision int
}

// Action is the business action that a call of actionType is for. subject
// counts only where r isn't Whole.
func (r Resolved) Action(actionType, tenant string, subject []string) Action {
	in := r.Intent
	a := Action{ActionType: actionType, Tenant: tenant, Revision: in.Revision}
	switch {
	case !r.Whole:
		a.Identity, a.WorkflowID, a.Subject = workflowIdentity, in.WorkflowID, slices.Clone(subject)
	case in.BusinessOperationID != "":
		a.BusinessOperationID = in.BusinessOperationID
	default:
		a.WorkflowID, a.Step, a.BusinessObject = in.WorkflowID, in.Step, in.BusinessObject
	}
	return a
}

// Canonical is the canonical JSON of the action at a revision. An action with
// a BusinessOperationID has no revision, and the argument doesn't matter.
//
// It panics on what no caller may let through, because a key made from it
// could be another action's: an action without type or identity, a subject
// that is empty or isn't UTF-8, a revision below 1.
func (a Action) Canonical(revision int) []byte {
	if a.BusinessOperationID == "" && revision < 1 {
		panic("intent: an action's revision is at least 1")
	}
	return a.canonical(revision)
}

// canonical leaves the revision out where it is 0.
func (a Action) canonical(revision int) []byte {
	m := map[string]any{"action_type": a.ActionType}
	switch {
	case a.ActionType == "":
		panic("intent: an action without a type")
	case a.BusinessOperationID != "":
		m[fieldBusinessOperationID] = a.BusinessOperationID
		revision = 0
	case a.WorkflowID == "":
		panic("intent: an action without an identity")
	case a.Identity == workflowIdentity:
		if len(a.Subject) == 0 {
			panic("intent: an action of a workflow without a subject")
		}
		m["identity"], m[fieldWorkflowID], m["subject"] = workflowIdentity, a.WorkflowID, a.Subject
	default:
		m[fieldWorkflowID], m[fieldStep], m[fieldBusinessObject] = a.WorkflowID, a.Step, a.BusinessObject
	}
	if revision != 0 {
		m[fieldRevision] = revision
	}
	if a.Tenant != "" {
		m["tenant"] = a.Tenant
	}
	b, err := CanonicalJSON(m)
	if err != nil {
		panic(fmt.Sprintf("intent: an action without canonical JSON: %v", err))
	}
	return b
}

// Key is the idempotency key of the action as it stands.
func (a Action) Key(secret ledger.Secret) ledger.Key { return a.KeyAt(secret, a.Revision) }

// KeyAt is the key of the action at another revision: a person who allows one
// more of the same raises it.
func (a Action) KeyAt(secret ledger.Secret, revision int) ledger.Key {
	return secret.Key(a.Canonical(revision))
}

// BaseKey is what all revisions of the action share: the key of the action
// without its revision. No action has it as its own key, save one with a
// BusinessOperationID, which has no revisions.
func (a Action) BaseKey(secret ledger.Secret) ledger.Key { return secret.Key(a.canonical(0)) }
