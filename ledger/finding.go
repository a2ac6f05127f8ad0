package ledger

import (
	"encoding/json"
	"time"
)

// A Verdict is what an attempt or a look-up proved. Only a proof fails an
// operation; whatever proves nothing is Unclear.
type Verdict string

const (
	// Done: the provider has the object, accepted or settled.
	Done Verdict = "done"
	// Refused: the provider said no, and nothing happened; or the object was
	// found and the provider had rejected it.
	Refused Verdict = "refused"
	// NotSent: not a byte of the request left.
	NotSent Verdict = "not_sent"
	// Unclear: it may have happened. Also: it is still running there.
	Unclear Verdict = "unclear"
	// Absent (look-up only): the provider answered, and has no such object now.
	// Whether that proves anything depends on when it was asked, and on the
	// provider's [Promise].
	Absent Verdict = "absent"
	// Contradiction: the provider has two objects, or another one than was asked
	// for, or says that the key belongs to another request. A person must look.
	Contradiction Verdict = "contradiction"
)

// A State says how far the provider's object has come.
type State string

const (
	// Accepted: the provider has taken it on; it may still turn Rejected.
	Accepted State = "accepted"
	// Settled: it is done and stays so.
	Settled State = "settled"
	// Rejected: the provider took it and then refused it.
	Rejected State = "rejected"
)

// A Receipt is what the provider shows for an object of ours.
type Receipt struct {
	ProviderOperationID string
	ProviderStatus      string // the provider's own word for State
	State               State
	Reference           json.RawMessage // helps later look-ups; no personal data
	Result              json.RawMessage // what the tool's caller gets; no personal data
	Evidence            json.RawMessage // what proves it, for the journal; no personal data
}

// A Finding is what an attempt or a look-up brought back.
type Finding struct {
	Verdict    Verdict
	Receipt    Receipt
	Code       string        // a short word for a Finding that isn't Done, such as "timeout" or the provider's code
	RetryAfter time.Duration // the provider's wish, where it has one
	Clock      time.Time     // what time it was for the provider (look-up only), where its answer told; zero: it didn't
	Alarm      string        // set where a person should hear of it although automation copes
}
