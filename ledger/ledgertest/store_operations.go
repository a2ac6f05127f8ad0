package ledgertest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/onceward/onceward/ledger"
)

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)

var (
	never time.Time
	// start is when the first operation was made; stores keep microseconds.
	start = time.Date(2026, 11, 30, 10, 0, 0, 123456000, time.UTC)
)

// strict is the i-th operation whose orchestrator named it; each was made a minute
// after the one before.
func strict(i int) ledger.Operation {
	return ledger.Operation{
		ID: fmt.Sprintf("op_%04d", i), Key: ledger.Key(digest("key", i)), Action: "refund",
		Intent:      ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-1842", Step: "refund_customer", BusinessObject: fmt.Sprintf("order-%d", i), Revision: 1, RunID: "run-77"},
		Fingerprint: ledger.Hash(digest("fingerprint", i)), Content: ledger.Hash(digest("content", i)),
		Fields:    ledger.FieldHashes{"amount": {1, byte(i)}, "currency": {2, byte(i)}, "note": {3, byte(i)}},
		CreatedAt: start.Add(time.Duration(i) * minute),
	}
}

// revision is a revision of the i-th operation that was named by its arguments.
func revision(i, n int) ledger.Operation {
	op := strict(1000*n + i)
	op.BaseKey = ledger.Key(digest("base", i))
	op.Alike = aShortHash(i)
	op.Intent = ledger.Intent{Identity: ledger.Workflow, WorkflowID: "case-1842", Revision: n}
	return op
}

func digest(purpose string, i int) [32]byte { return sha256.Sum256(fmt.Append(nil, purpose, i)) }

func aShortHash(i int) ledger.FieldHash {
	d := digest("alike", i)
	return ledger.FieldHash(d[:8])
}

func seal(op ledger.Operation) []byte { return []byte("sealed for " + op.ID) }

func note(reason string) ledger.Note {
	return ledger.Note{Actor: "worker:test", Reason: reason, Evidence: json.RawMessage(`{"because":"` + reason + `"}`)}
}

func byPerson(reason string) ledger.Note {
	n := note(reason)
	n.Actor = "person:anna"
	return n
}

func aClaim(op ledger.Operation) ledger.Claim {
	return ledger.Claim{Owner: "host-1", At: op.CreatedAt, Lease: minute, Provider: "sandbox", Scope: "scope-1", Settled: true}
}

// next is a claim of an operation that exists.
func next(op ledger.Operation, settled bool) ledger.Claim {
	c := aClaim(op)
	c.At, c.Settled, c.Generation = op.UpdatedAt.Add(second), settled, op.Generation
	return c
}

func aReceipt(op ledger.Operation) ledger.Receipt {
	return ledger.Receipt{
		ProviderOperationID: "re_" + op.ID, ProviderStatus: "accepted",
		Reference: json.RawMessage(`{"look":"here"}`), Result: json.RawMessage(`{"amount":"100.00"}`),
	}
}

// A step takes an operation on.
type step func(ledger.Operation) (ledger.Move, error)

func succeeds(op ledger.Operation) (ledger.Move, error) {
	return op.Succeed(op.UpdatedAt.Add(second), aReceipt(op), never, note("provider_answered"))
}

func succeedsForNow(op ledger.Operation) (ledger.Move, error) {
	return op.Succeed(op.UpdatedAt.Add(second), aReceipt(op), op.UpdatedAt.Add(hour), note("provider_answered"))
}

func fails(op ledger.Operation) (ledger.Move, error) {
	return op.Fail(op.UpdatedAt.Add(second), "card_declined", note("provider_answered"))
}

func isDenied(op ledger.Operation) (ledger.Move, error) {
	return op.Fail(op.UpdatedAt.Add(second), "approval_denied", byPerson("denied"))
}

func isPostponed(op ledger.Operation) (ledger.Move, error) {
	return op.Postpone(op.UpdatedAt.Add(second), "unavailable", op.UpdatedAt.Add(minute), op.UpdatedAt.Add(hour), note("not_sent"))
}

func isDoubted(op ledger.Operation) (ledger.Move, error) {
	return op.Doubt(op.UpdatedAt.Add(second), "timeout", op.UpdatedAt.Add(minute), note("no_proof"))
}

func isAsked(op ledger.Operation) (ledger.Move, error) {
	return op.Ask(op.UpdatedAt.Add(second), "", "unverifiable", note("review_opened"))
}

func isClaimed(op ledger.Operation) (ledger.Move, error) {
	return op.Claim(next(op, true), note("claimed"))
}

func isClaimedUnsettled(op ledger.Operation) (ledger.Move, error) {
	return op.Claim(next(op, false), note("sent_again_under_key"))
}

func isClaimedAnew(op ledger.Operation) (ledger.Move, error) {
	c := next(op, true)
	c.Generation++
	return op.Claim(c, note("absence_proven"))
}

func isReplanned(op ledger.Operation) (ledger.Move, error) {
	r := &ledger.Request{Digest: ledger.Digest{
		Fingerprint: ledger.Hash(digest("other fingerprint", 1)), Content: ledger.Hash(digest("other content", 1)),
		Fields: ledger.FieldHashes{"amount": {9}},
	}, Amount: ledger.Amount{Minor: 999, Currency: "EUR"}}
	return op.Replan(op.UpdatedAt.Add(second), op.UpdatedAt.Add(hour), r, []byte("sealed anew"), note("new_arguments"))
}

func isApproved(op ledger.Operation) (ledger.Move, error) {
	return op.Observe(op.UpdatedAt.Add(second), byPerson("approved"), func(o *ledger.Operation) {
		o.Approval.State, o.ExpiresAt = ledger.Approved, op.UpdatedAt.Add(hour)
	})
}

func conflicts(op ledger.Operation) (ledger.Move, error) {
	return op.Observe(op.UpdatedAt.Add(second), note("conflict"), func(o *ledger.Operation) { o.Conflicts++ })
}

func isLetGo(op ledger.Operation) (ledger.Move, error) {
	return op.Observe(op.UpdatedAt.Add(second), byPerson("resolved_retry"), func(o *ledger.Operation) {
		o.UnsettledSince, o.Review, o.NextCheckAt, o.Scope = never, ledger.Review{}, o.UpdatedAt, ""
	})
}
