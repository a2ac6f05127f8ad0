package ledger

import (
	"encoding/json"
	"time"
)

// An Operation is one business action and all the ledger knows of it. It holds no
// personal data: arguments are kept sealed, apart from it, and only as long as a
// retry may need them. A zero time means "not set".
type Operation struct {
	ID      string // "op_" and a UUIDv7
	Key     Key
	BaseKey Key // what all revisions share; zero unless the identity is "workflow"
	Tenant  string
	Action  string // "email.send", "payment_order.create", "refund"

	Intent      Intent
	Fingerprint Hash      // of the critical arguments: is it still the same action?
	Content     Hash      // of all arguments: did the model reword it?
	Alike       FieldHash // of what two look-alikes share; zero where nobody looks for them
	Fields      FieldHashes

	Amount Amount // what the limits on amounts count; zero where it isn't money

	Status   Status
	Attempts int // how many there were; the number of the last one fences its outcome

	Provider            string
	Scope               string // of the provider at the first attempt: endpoint, account and mode, hashed
	ProviderKey         string // how the provider knows the operation; see ProviderKey
	Generation          int    // of the provider key
	ProviderOperationID string
	ProviderStatus      string          // the provider's own word
	Reference           json.RawMessage // what a look-up needs besides the key; no personal data
	Result              json.RawMessage // what the tool returned; no personal data; null once pruned
	ErrorCode           string

	LeaseOwner     string
	LeaseUntil     time.Time // until then the last attempt's worker is presumed alive
	FirstSentAt    time.Time // not after the first request that may have reached the provider
	UnsettledSince time.Time // since then some attempt may have had its effect, and nobody knows
	NextCheckAt    time.Time // when automation, or a retry, is next due; zero: it isn't
	Checks         int       // look-ups made in vain since the last attempt
	ExpiresAt      time.Time // when a planned operation lapses, or retries end

	Approval Approval
	Review   Review
	Repeat   Repeat

	Reserved string // which limits' counts it is in while it may have its effect; see reservation

	Conflicts int // calls refused because critical arguments differed
	Pruned    bool

	Moves int // how many transitions it has; the version that every write compares
	Last  Note
	Chain Chain // proves the above; see audit.go

	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time // when it became final
}

// An Intent is what the orchestrator said an operation is for. It is stored to
// be found again; the identity itself is the Key.
type Intent struct {
	Identity            Identity
	WorkflowID          string
	Step                string
	BusinessObject      string
	Revision            int
	BusinessOperationID string
	RunID               string
}

// An Identity tells what named the operation.
type Identity string

const (
	// Strict: a whole intent came with the call.
	Strict Identity = "strict"
	// Workflow: a scope came with the connection, and declared arguments of the
	// tool name the action in it. People help it: see decide.go.
	Workflow Identity = "workflow"
)

// FieldHashes are digests of the single arguments, by name, so that a conflict
// or an ignored change can be named without keeping a value.
type FieldHashes map[string]FieldHash

// An Approval is what a person has to say before a planned operation runs.
type Approval struct {
	State  ApprovalState
	Reason string // why it is needed: "alike", "late_change", "second_intent", "new_arguments", or the policy's rule
	Run    bool   // it runs at once when approved
}

// An ApprovalState says how far an approval has come.
type ApprovalState string

const (
	// NotNeeded: the operation never waited for a person.
	NotNeeded ApprovalState = ""
	// Waiting: a person was asked.
	Waiting ApprovalState = "waiting"
	// Approved: a person has let it go; the next claim spends it.
	Approved ApprovalState = "approved"
	// Spent: the operation was claimed with this approval.
	Spent ApprovalState = "spent"
	// Denied: a person said no.
	Denied ApprovalState = "denied"
	// Expired: nobody decided in time.
	Expired ApprovalState = "expired"
)

// A Review is a question that automation can't answer. It is open while OpenedAt
// is set.
type Review struct {
	OpenedAt time.Time
	Reason   string // "unverifiable", "attempts_used_up", "scope_changed", "contradiction", ...
}

// Open reports whether a person is asked.
func (r Review) Open() bool { return !r.OpenedAt.IsZero() }

// A Repeat is a person's permission for one more action with the same name
// ("workflow" identity only). It is spent by the call that uses it.
type Repeat struct {
	Until       time.Time
	SameContent bool // also for a call whose content equals this operation's
}

// A Note says who made the last move, why, and what proves it.
type Note struct {
	Actor    string          // "worker:...", "person:...", "sweep:..."
	Reason   string          // a word: "claimed", "provider_answered", "lease_expired", ...
	Evidence json.RawMessage // no personal data
}

// A Transition is one line of an operation's history. The history is append-only
// and written in the same commit as the status.
type Transition struct {
	Seq      int
	From     Status // empty for the first
	To       Status
	Attempt  int
	Reason   string
	Evidence json.RawMessage
	Actor    string
	At       time.Time
}
