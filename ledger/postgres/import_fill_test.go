package postgres_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
)

var copiedAt = time.Date(2026, 11, 30, 10, 0, 0, 123456000, time.UTC)

func hashOf(what string, i int) [32]byte { return sha256.Sum256(fmt.Append(nil, what, i)) }

func lineOf(reason, actor string) ledger.Note {
	return ledger.Note{Actor: actor, Reason: reason, Evidence: json.RawMessage(`{ "because": "` + reason + `",  "é": 1.0}`)}
}

// A filler fills a ledger as a server does.
type filler struct {
	*testing.T
	store ledger.Store
	made  int
}

func (f *filler) fresh() ledger.Operation {
	f.made++
	i := f.made
	op := ledger.Operation{
		ID: fmt.Sprintf("op_%06d", i), Key: ledger.Key(hashOf("key", i)), Action: "refund", Tenant: []string{"", "acme"}[i%2],
		Intent:      ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-ü", Step: "refund", BusinessObject: "order", Revision: 1, BusinessOperationID: "b", RunID: "run"},
		Fingerprint: ledger.Hash(hashOf("fingerprint", i)), Content: ledger.Hash(hashOf("content", i)), Alike: ledger.FieldHash{1, byte(i)},
		Fields: ledger.FieldHashes{"amount": {1}, "note": {2}}, Amount: ledger.Amount{Minor: int64(i) << 12, Currency: "USD"},
		Chain: ledger.Chain(hashOf("chain", i)), CreatedAt: copiedAt.Add(time.Duration(i) * time.Minute),
	}
	if i%3 == 0 {
		op.BaseKey, op.Intent.Identity = ledger.Key(hashOf("base", i)), ledger.Workflow
	}
	return op
}

func (f *filler) claim(op ledger.Operation) ledger.Claim {
	return ledger.Claim{
		Owner: "host-1", At: op.CreatedAt, Lease: time.Minute, Provider: "sandbox", Scope: "scope", Settled: true,
		Takes: ledger.Allowance{Reserved: "run,day$2026-11-30"},
	}
}

type moving func(ledger.Operation) (ledger.Move, error)

// add inserts an operation and moves it on.
func (f *filler) add(first moving, steps ...moving) ledger.Operation {
	f.Helper()
	m, err := first(f.fresh())
	if err == nil {
		err = f.store.Begin(f.Context(), ledger.Sought{Key: m.To().Key}, func(ledger.Found) (ledger.Move, error) { return m, nil })
	}
	for _, step := range steps {
		if err != nil {
			break
		}
		if m, err = step(m.To()); err == nil {
			err = f.store.Record(f.Context(), m)
		}
	}
	if err != nil {
		f.Fatal(err)
	}
	return m.To()
}

// fill makes operations in every status, with all that can be about them, and tombstones with later lines.
func (f *filler) fill() {
	claimed := func(op ledger.Operation) (ledger.Move, error) {
		return op.Insert(f.claim(op), []byte("sealed "+op.ID), lineOf("claimed", "worker:a"))
	}
	bare := func(op ledger.Operation) (ledger.Move, error) {
		return op.Insert(f.claim(op), nil, lineOf("claimed", "worker:a"))
	}
	planned := func(op ledger.Operation) (ledger.Move, error) {
		return op.Plan(op.CreatedAt, op.CreatedAt.Add(time.Hour), ledger.Approval{Reason: "alike", Run: true}, []byte("sealed"), lineOf("alike", "worker:a"))
	}
	succeeds := func(op ledger.Operation) (ledger.Move, error) {
		r := ledger.Receipt{ProviderOperationID: "re", ProviderStatus: "accepted", Reference: json.RawMessage(`{"look": "here"}`), Result: json.RawMessage(`{"amount": "1.00"}`)}
		return op.Succeed(op.UpdatedAt.Add(time.Second), r, time.Time{}, lineOf("provider_answered", "worker:a"))
	}
	watched := func(op ledger.Operation) (ledger.Move, error) {
		return op.Succeed(op.UpdatedAt.Add(time.Second), ledger.Receipt{ProviderOperationID: "re"}, op.UpdatedAt.Add(time.Hour), lineOf("lookup", "sweep:a"))
	}
	fails := func(op ledger.Operation) (ledger.Move, error) {
		return op.Fail(op.UpdatedAt.Add(time.Second), "declined", lineOf("provider_answered", "worker:a"))
	}
	denied := func(op ledger.Operation) (ledger.Move, error) {
		return op.Fail(op.UpdatedAt.Add(time.Second), "approval_denied", lineOf("denied", "person:anna"))
	}
	postponed := func(op ledger.Operation) (ledger.Move, error) {
		return op.Postpone(op.UpdatedAt.Add(time.Second), "unavailable", op.UpdatedAt.Add(time.Minute), op.UpdatedAt.Add(time.Hour), lineOf("not_sent", "worker:a"))
	}
	doubted := func(op ledger.Operation) (ledger.Move, error) {
		return op.Doubt(op.UpdatedAt.Add(time.Second), "timeout", op.UpdatedAt.Add(time.Minute), lineOf("no_proof", "worker:a"))
	}
	asked := func(op ledger.Operation) (ledger.Move, error) {
		return op.Ask(op.UpdatedAt.Add(time.Second), "", "unverifiable", lineOf("review_opened", "sweep:a"))
	}
	approved := func(op ledger.Operation) (ledger.Move, error) {
		return op.Observe(op.UpdatedAt.Add(time.Second), ledger.Note{Actor: "person:anna", Reason: "approved"}, func(o *ledger.Operation) {
			o.Approval.State, o.NextCheckAt, o.Checks = ledger.Approved, op.UpdatedAt, 2
			o.Repeat = ledger.Repeat{Until: op.UpdatedAt, SameContent: true}
		})
	}
	conflicts := func(op ledger.Operation) (ledger.Move, error) {
		return op.Observe(op.UpdatedAt.Add(time.Second), lineOf("conflict", "worker:b"), func(o *ledger.Operation) { o.Conflicts++ })
	}
	buried := []ledger.Operation{f.add(claimed, succeeds), f.add(claimed, fails), f.add(claimed, succeeds, conflicts)}
	_, err := f.store.Prune(f.Context(), ledger.Prunable{Before: copiedAt.Add(99 * time.Hour), Limit: 10}, func(op ledger.Operation, _ []ledger.Transition) ledger.Operation {
		stone := op.Tombstone([]string{"amount"})
		stone.Chain = op.Chain
		return stone
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, steps := range [][]moving{{conflicts, conflicts}, {succeeds}} { // after the pruning
		for _, step := range steps {
			stone, err := f.store.Find(f.Context(), ledger.Filter{ID: buried[len(steps)%2].ID})
			if err != nil || len(stone) != 1 || !stone[0].Pruned {
				f.Fatal(stone, err)
			}
			m, err := step(stone[0])
			if err := errors.Join(err, f.store.Record(f.Context(), m)); err != nil {
				f.Fatal(err)
			}
		}
	}
	for _, steps := range [][]moving{
		{claimed}, {bare}, {claimed, succeeds}, {claimed, watched}, {claimed, watched, asked}, {claimed, fails}, {claimed, postponed}, {claimed, doubted},
		{claimed, doubted, asked}, {planned}, {planned, approved}, {planned, denied}, {claimed, doubted, succeeds, conflicts},
	} {
		f.add(steps[0], steps[1:]...)
	}
	for name, value := range map[string]string{"secret_check": strings.Repeat("s", 32), "checkpoint:1": `{"number":1}`, "empty": ""} {
		if _, err := f.store.Remember(f.Context(), name, []byte(value)); err != nil {
			f.Fatal(err)
		}
	}
}
