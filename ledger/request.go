package ledger

import (
	"fmt"
	"strings"
	"time"
)

// A Request is one call, decoded, validated and named: what [Ledger.Execute]
// needs to let the action happen at most once.
type Request struct {
	Tenant string
	Action string
	Intent Intent

	// Key names the operation when the identity is strict.
	Key Key
	// BaseKey and KeyAt name it when the identity is "workflow": the newest
	// revision is meant, and only a person allows one more.
	BaseKey Key
	KeyAt   func(revision int) Key

	Digest Digest
	Amount Amount

	// Approval says why a person has to agree first: the policy's rule. Empty: nobody has to.
	Approval string

	// Prepare validates and renders what will be sent, once, before the claim. It is
	// pure. Its error refuses the call; a *Refusal is passed on as it is.
	Prepare func(operationID, providerKey string) (Payload, error)
}

// A Digest is what the ledger keeps of the arguments.
type Digest struct {
	Fingerprint Hash
	Content     Hash
	Alike       FieldHash // what a look-alike has in common with it; zero: nobody looks for one
	Fields      FieldHashes
	Critical    []string // the names of the arguments in Fingerprint
}

// An Answer is what a call gets. Its Status is the operation's, but for two: a call
// can be in progress, and a planned operation awaits approval.
type Answer struct {
	Operation  Operation
	Status     AnswerStatus
	Replayed   bool          // this call did nothing; an earlier one did
	Ignored    []string      // arguments that differ from the first call's and were ignored, sorted
	RetryAfter time.Duration // for InProgress, AnswerUnknown and AnswerFailedRetryable
}

// An AnswerStatus is how an [Answer] says where the operation stands.
type AnswerStatus string

// The values of AnswerStatus, as they stand on the wire.
const (
	AnswerSucceeded        AnswerStatus = "succeeded"
	AnswerInProgress       AnswerStatus = "in_progress"
	AnswerUnknown          AnswerStatus = "unknown"
	AnswerAwaitingApproval AnswerStatus = "awaiting_approval"
	AnswerFailedRetryable  AnswerStatus = "failed_retryable"
	AnswerFailedFinal      AnswerStatus = "failed_final"
)

// A Refusal is a call that was turned away: nothing was done, and nothing was
// written that a later, right call would stumble over.
type Refusal struct {
	Code    RefusalCode
	Fields  []string // names of arguments, never their values
	Message string   // for people and models; no values, no personal data
	// OperationID is the operation that the call collided with, where there is one.
	OperationID string
	// RetryAfter is set where trying again later helps.
	RetryAfter time.Duration
	// Cause is for the log.
	Cause error
}

// A RefusalCode says why a call was refused.
type RefusalCode string

// The values of RefusalCode, as they stand on the wire.
const (
	IntentMissing     RefusalCode = "intent_missing"
	IntentInvalid     RefusalCode = "intent_invalid"
	IntentConflict    RefusalCode = "intent_conflict"
	OperationConflict RefusalCode = "operation_conflict"
	InvalidArguments  RefusalCode = "invalid_arguments"
	LimitExceeded     RefusalCode = "limit_exceeded"
	NotFound          RefusalCode = "not_found"
	LedgerUnavailable RefusalCode = "ledger_unavailable"
	ShuttingDown      RefusalCode = "shutting_down"
	Busy              RefusalCode = "busy"
)

func (r *Refusal) Error() string {
	text := string(r.Code)
	if len(r.Fields) > 0 {
		text += " (" + strings.Join(r.Fields, ", ") + ")"
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	if r.Cause != nil {
		text += fmt.Sprintf(" [%v]", r.Cause)
	}
	return text
}

// Unwrap gives the cause.
func (r *Refusal) Unwrap() error { return r.Cause }
