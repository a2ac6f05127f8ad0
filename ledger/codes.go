package ledger

// Codes that the ledger itself writes into last_error_code; a provider's come beside them.
const (
	CodeApprovalDenied  = "approval_denied"
	CodeApprovalExpired = "approval_expired"
	CodeDropped         = "dropped"       // a person said that it didn't happen and shall not
	CodeRetryExpired    = "retry_expired" // never sent, and the time for retries is over
	CodeLeaseExpired    = "lease_expired" // the worker was not heard of again
	CodePanic           = "panic"         // a bug in a provider; what it did is open
	CodeUnsealed        = "payload_unreadable"

	// CodeServerError is every provider's word for an error of its own, answered as
	// such (HTTP 5xx). A provider may keep it under the key.
	CodeServerError = "server_error"
)

// Why a person is asked.
const (
	ReviewUnverifiable  = "unverifiable"       // the provider can't tell, and no repeat is safe
	ReviewAttemptsUsed  = "attempts_used_up"   // every safe attempt was made
	ReviewErrorKept     = "error_kept_by_key"  // the provider keeps an error under the key
	ReviewScopeChanged  = "scope_changed"      // endpoint, account or mode is another one now
	ReviewContradiction = "contradiction"      // the provider shows what can't be
	ReviewUnreadable    = "payload_unreadable" // no seal key opens the payload
	ReviewNoProvider    = "no_provider"        // nobody here serves the action type
)

// Why a person has to agree first; a policy's rules have words of their own.
const (
	ApprovalAlike        = "alike"         // "workflow" identity: what was just done, under a new name
	ApprovalLateChange   = "late_change"   // "workflow" identity: an old repeat, with other content
	ApprovalSecondIntent = "second_intent" // the same critical arguments under another key
	ApprovalNewArguments = "new_arguments" // denied or lapsed before, and asked for with others
)
