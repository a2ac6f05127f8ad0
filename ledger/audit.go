package ledger

import (
	"encoding/binary"
	"slices"
	"time"
)

// A Chain proves an operation's history and its present state to whoever has the secret. The
// first half is the head of a chain over its transitions: each link is a MAC over the one
// before and the new line. The second half is a MAC over the head and the state. Neither
// can be made, for an edited row, without the secret.
type Chain [32]byte

// IsZero reports whether nothing is proven.
func (c Chain) IsZero() bool { return c == Chain{} }

// half is the length of a chain's halves. 128 bits are beyond any search, and 32 bytes less
// per operation are a tenth of its size.
const half = len(Chain{}) / 2

func (c Chain) head() []byte { return c[:half] }

// An Auditor makes and checks [Chain]s and checkpoints.
type Auditor struct{ secret Secret }

// NewAuditor keys the audit trail with the ledger's secret.
func NewAuditor(s Secret) *Auditor { return &Auditor{s} }

// link adds the move's line to the operation's chain.
func (a *Auditor) link(m *Move) {
	if a == nil || m.IsZero() {
		return
	}
	line := Transition{
		Seq: m.to.Moves, From: m.from.Status, To: m.to.Status, Attempt: m.to.Attempts,
		Reason: m.to.Last.Reason, Evidence: m.to.Last.Evidence, Actor: m.to.Last.Actor, At: m.to.UpdatedAt,
	}
	m.to.Chain = a.chain(&m.to, a.extend(m.from.Chain.head(), m.to.ID, line))
}

// extend is the chain's head after one more line.
func (a *Auditor) extend(head []byte, id string, t Transition) []byte {
	b := appendText(slices.Clone(head), id)
	b = binary.AppendVarint(b, int64(t.Seq))
	b = appendText(b, string(t.From), string(t.To))
	b = binary.AppendVarint(b, int64(t.Attempt))
	b = appendText(b, t.Reason, string(t.Evidence), t.Actor)
	b = appendTime(b, t.At)
	sum := a.secret.Hash("transition", b)
	return sum[:half]
}

// chain ties the state of an operation to the head of its history.
func (a *Auditor) chain(op *Operation, head []byte) Chain {
	var c Chain
	copy(c[:], head)
	sum := a.secret.Hash("operation", op.appendState(slices.Clone(head)))
	copy(c[half:], sum[:])
	return c
}

// appendState writes every field but the chain and the last note, which is in the history.
func (op *Operation) appendState(b []byte) []byte {
	b = appendText(b, op.ID, string(op.Key[:]), string(op.BaseKey[:]), op.Tenant, op.Action)
	i := &op.Intent
	b = appendText(b, string(i.Identity), i.WorkflowID, i.Step, i.BusinessObject, i.BusinessOperationID, i.RunID)
	b = appendNumbers(b, i.Revision)
	b = append(b, op.Fingerprint[:]...)
	b = append(b, op.Content[:]...)
	b = append(b, op.Alike[:]...)
	for _, name := range sortedNames(op.Fields) {
		field := op.Fields[name]
		b = appendText(b, name, string(field[:]))
	}
	b = appendText(b, op.Amount.Currency)
	b = binary.AppendVarint(b, op.Amount.Minor)
	b = appendText(b, string(op.Status), op.Provider, op.Scope, op.ProviderKey, op.ProviderOperationID, op.ProviderStatus,
		string(op.Reference), string(op.Result), op.ErrorCode, op.LeaseOwner,
		string(op.Approval.State), op.Approval.Reason, op.Review.Reason, op.Reserved)
	b = appendNumbers(b, op.Attempts, op.Generation, op.Checks, op.Conflicts, op.Moves,
		bit(op.Approval.Run), bit(op.Repeat.SameContent), bit(op.Pruned))
	for _, t := range []time.Time{op.LeaseUntil, op.FirstSentAt, op.UnsettledSince, op.NextCheckAt, op.ExpiresAt,
		op.Review.OpenedAt, op.Repeat.Until, op.CreatedAt, op.UpdatedAt, op.CompletedAt} {
		b = appendTime(b, t)
	}
	return b
}

// appendText writes texts so that no two lists of texts give the same bytes.
func appendText(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

func appendNumbers(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, int64(n))
	}
	return b
}

// appendTime writes a time as stores keep it, to the microsecond.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), t.UnixMicro())
}

func bit(set bool) int {
	if set {
		return 1
	}
	return 0
}

func sortedNames(f FieldHashes) []string {
	names := make([]string, 0, len(f))
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
