package providers

import (
	"time"

	"github.com/onceward/onceward/ledger"
)

// Traits are what a provider guarantees for one action type, as data: the ledger
// decides by them, and the documentation's tables are made from them.
type Traits struct {
	Deadline time.Duration // how long one attempt may take
	Lease    time.Duration // how long its worker is presumed alive; longer than Deadline
	Settle   time.Duration // how long a request may go on running there after we gave up

	Key    KeyCarrier // how it takes the key
	Window time.Duration
	Margin time.Duration // taken off Window
	Reuse  Reuse         // what the same key with another payload does there

	// CachesErrors: an error is kept under its key for the window, so that the same
	// key never succeeds.
	CachesErrors bool

	Lookup        LookupBy
	LookupLag     time.Duration // how long an effect may stay invisible to it
	ProvesAbsence bool

	// LimiterFirst: 429 is answered before anything happens.
	LimiterFirst bool

	Currencies []string // ISO 4217; empty: any
}

// A KeyCarrier says how a provider takes an idempotency key. NoKey means that it
// knows none, and a repeat acts again.
type KeyCarrier string

// The ways a key travels.
const (
	NoKey       KeyCarrier = ""
	KeyInHeader KeyCarrier = "header"
	KeyInBody   KeyCarrier = "body"
	KeyIsID     KeyCarrier = "id" // the object's own id
)

// Reuse says what a provider does on the same key with another payload.
type Reuse string

// What happens to a reused key.
const (
	ReuseRefused  Reuse = "refused"
	ReuseReplayed Reuse = "replayed" // the first answer, whatever the body says
	ReuseActs     Reuse = "acts"     // a second effect
)

// A LookupBy says how a provider can be asked. NoLookup means that it can't.
type LookupBy string

// The ways to ask.
const (
	NoLookup          LookupBy = ""
	LookupByKey       LookupBy = "key"
	LookupByReference LookupBy = "reference"
	LookupByParent    LookupBy = "parent_list" // the payment's refunds, all pages
	LookupByMailbox   LookupBy = "mailbox"
)

// Promise is what the ledger needs of the traits.
func (t Traits) Promise() ledger.Promise {
	return ledger.Promise{
		Deadline:      t.Deadline,
		Lease:         t.Lease,
		Settle:        t.Settle,
		Idempotent:    t.Key != NoKey,
		Window:        t.Window,
		Margin:        t.Margin,
		CachesErrors:  t.CachesErrors,
		LookupLag:     t.LookupLag,
		ProvesAbsence: t.Lookup != NoLookup && t.ProvesAbsence,
	}
}
