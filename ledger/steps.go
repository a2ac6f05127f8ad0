package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// The steps of an operation's life. Each returns the one Move it stands for, or an
// error if the operation isn't in a state for it. They are pure.

// A Claim is the right to make one attempt.
type Claim struct {
	Owner    string
	At       time.Time
	Lease    time.Duration
	Provider string
	Scope    string
	// Settled says that what earlier attempts did is known by now (nothing), so that
	// this one's outcome stands alone. Without it an unsettled operation stays so.
	Settled bool
	// Generation of the provider key; it never falls.
	Generation int
	Takes      Allowance
}

// Insert claims an operation that doesn't exist yet: intent and claim are one
// commit.
func (op Operation) Insert(c Claim, sealed []byte, note Note) (Move, error) {
	m, err := fresh(op, Executing, c.At, sealed, note, func(next *Operation) {
		next.claim(c)
		next.Reserved = c.Takes.Reserved
	})
	m.bounds = c.Takes.Bounds
	return m, err
}

// Plan inserts an operation that has to wait for a person.
func (op Operation) Plan(at, expires time.Time, need Approval, sealed []byte, note Note) (Move, error) {
	return fresh(op, Planned, at, sealed, note, func(next *Operation) {
		next.Approval = Approval{State: Waiting, Reason: need.Reason, Run: need.Run}
		next.ExpiresAt = expires
	})
}

func fresh(op Operation, to Status, at time.Time, sealed []byte, note Note, change func(*Operation)) (Move, error) {
	op.CreatedAt = at
	op.Status, op.Moves = "", 0
	m, err := op.step(to, at, note, change)
	m.from, m.seal = Operation{}, sealed
	return m, err
}

// Replan gives new arguments to an operation that was never attempted.
func (op Operation) Replan(at, expires time.Time, r *Request, sealed []byte, note Note) (Move, error) {
	m, err := op.step(Planned, at, note, func(next *Operation) {
		d := r.Digest
		next.Fingerprint, next.Content, next.Alike, next.Fields = d.Fingerprint, d.Content, d.Alike, d.Fields
		next.Approval = Approval{State: Waiting, Reason: ApprovalNewArguments, Run: op.Approval.Run}
		next.Amount = r.Amount
		next.ExpiresAt = expires
		next.ErrorCode = ""
		next.CompletedAt = time.Time{}
	})
	m.seal = sealed
	return m, err
}

// Claim starts the next attempt of an operation that exists.
func (op Operation) Claim(c Claim, note Note) (Move, error) {
	m, err := op.step(Executing, c.At, note, func(next *Operation) {
		next.claim(c)
		if !op.holds() { // it counts already, if an earlier attempt may have had its effect
			next.Reserved = c.Takes.Reserved
		}
	})
	m.bounds = c.Takes.Bounds
	return m, err
}

func (op *Operation) claim(c Claim) {
	op.Attempts++
	op.LeaseOwner, op.LeaseUntil = c.Owner, c.At.Add(c.Lease)
	op.Provider, op.Scope = c.Provider, c.Scope
	op.Generation = max(op.Generation, c.Generation)
	op.ProviderKey = ProviderKey(op.Key, op.Generation)
	if c.Settled {
		op.UnsettledSince = time.Time{}
	}
	if op.UnsettledSince.IsZero() {
		op.FirstSentAt = c.At // nothing earlier counts for the provider's window
	}
	op.NextCheckAt, op.Checks = time.Time{}, 0
	op.Review = Review{}
	op.ErrorCode = ""
	if op.Approval.State == Approved {
		op.Approval.State = Spent
	}
	op.ExpiresAt = time.Time{}
}

// Succeed records proof that it happened, wherever the proof comes from. A next
// look-up is due at check if the object may still turn rejected.
func (op Operation) Succeed(at time.Time, r Receipt, check time.Time, note Note) (Move, error) {
	return op.step(Succeeded, at, note, func(next *Operation) {
		next.settle(at)
		next.take(r)
		next.NextCheckAt = check
	})
}

// Fail ends an operation without effect.
func (op Operation) Fail(at time.Time, code string, note Note) (Move, error) {
	return op.step(FailedFinal, at, note, func(next *Operation) {
		next.settle(at)
		next.ErrorCode = code
		switch note.Reason {
		case "denied":
			next.Approval.State = Denied
		case "expired":
			next.Approval.State = Expired
		}
	})
}

// settle clears what only an operation that is still open has.
func (op *Operation) settle(at time.Time) {
	op.CompletedAt = at
	op.UnsettledSince, op.NextCheckAt, op.ExpiresAt = time.Time{}, time.Time{}, time.Time{}
	op.LeaseOwner = ""
	op.Checks = 0
	op.Review = Review{}
	op.ErrorCode = ""
}

func (op *Operation) take(r Receipt) {
	op.ProviderOperationID = keep(r.ProviderOperationID, op.ProviderOperationID)
	op.ProviderStatus = keep(r.ProviderStatus, op.ProviderStatus)
	if len(r.Reference) > 0 {
		op.Reference = r.Reference
	}
	if len(r.Result) > 0 {
		op.Result = r.Result
	}
}

func keep(fresh, old string) string {
	if fresh != "" {
		return fresh
	}
	return old
}

// Postpone records that an attempt was provably not sent. A new one may be made
// from next on, and none after expires.
func (op Operation) Postpone(at time.Time, code string, next, expires time.Time, note Note) (Move, error) {
	return op.step(FailedRetryable, at, note, func(o *Operation) {
		o.ErrorCode = code
		o.LeaseOwner = ""
		o.FirstSentAt = time.Time{}
		o.NextCheckAt, o.ExpiresAt = next, expires
	})
}

// Doubt records that an attempt may have had its effect; the ledger looks again
// at next. The lease's end is kept: absence counts only from look-ups after it.
func (op Operation) Doubt(at time.Time, code string, next time.Time, note Note) (Move, error) {
	return op.step(Unknown, at, note, func(o *Operation) {
		o.ErrorCode = code
		o.LeaseOwner = ""
		if o.UnsettledSince.IsZero() {
			o.UnsettledSince = o.FirstSentAt
		}
		o.NextCheckAt = next
	})
}

// Ask opens a review: automation stops, and a person decides. An operation that
// was executing becomes unknown by it.
func (op Operation) Ask(at time.Time, code, why string, note Note) (Move, error) {
	to := op.Status
	if to == Executing {
		to = Unknown
	}
	return op.step(to, at, note, func(o *Operation) {
		o.LeaseOwner = ""
		if code != "" {
			o.ErrorCode = code
		}
		if to == Unknown {
			if o.UnsettledSince.IsZero() && op.Status == Executing {
				o.UnsettledSince = o.FirstSentAt
			}
		}
		o.NextCheckAt = time.Time{}
		if !o.Review.Open() {
			o.Review = Review{OpenedAt: at, Reason: why}
		}
	})
}

// Observe notes something without a change of status: a look-up in vain, a
// conflict, a person's permission.
func (op Operation) Observe(at time.Time, note Note, change func(*Operation)) (Move, error) {
	return op.step(op.Status, at, note, change)
}

// ProviderKey is how a provider knows an operation: 32 hexadecimal digits, which fit
// every provider's limit, the same for every attempt of one generation.
func ProviderKey(k Key, generation int) string {
	sum := sha256.Sum256([]byte(k.String() + "|" + strconv.Itoa(generation)))
	return hex.EncodeToString(sum[:])[:32]
}

// evidence renders a journal entry's proof; values that can't be rendered are a
// programming error and leave a marker instead of nothing.
func evidence(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`{"evidence":"unprintable"}`)
	}
	return b
}
