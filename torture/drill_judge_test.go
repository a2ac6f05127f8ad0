//go:build unix

package torture

import (
	"context"
	"path/filepath"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
	"github.com/onceward/onceward/ledger/sqlite"
	"github.com/onceward/onceward/providers/sandbox"
)

func (d *drill) openStore(ctx context.Context) (ledger.Store, error) {
	if d.place.ledger != "" {
		return postgres.Open(ctx, postgres.Options{URL: d.place.ledger})
	}
	return sqlite.Open(ctx, filepath.Join(d.place.dir, "ledger.db"))
}

// effects are what the sandbox's journal holds, by the provider's key.
func (d *drill) effects(ctx context.Context) map[string][]sandbox.Effect {
	byKey := map[string][]sandbox.Effect{}
	box, err := sandbox.Inspect(ctx, filepath.Join(d.place.dir, "sandbox.db"))
	if err != nil {
		d.fail("the sandbox's journal: %v", err)
		return byKey
	}
	defer box.Close()
	for e, err := range box.Effects(ctx) {
		if err != nil {
			d.fail("the sandbox's journal: %v", err)
			break
		}
		byKey[e.ProviderKey] = append(byKey[e.ProviderKey], e)
	}
	return byKey
}

// judge compares the outside world's journal with the ledger, and with what callers were told.
func (d *drill) judge(ctx context.Context) {
	store, err := d.openStore(ctx)
	if err != nil {
		d.fail("the ledger can't be opened: %v", err)
		return
	}
	defer store.Close()
	effects := d.effects(ctx)
	ops, err := store.Find(ctx, ledger.Filter{Limit: 10 * max(1, d.intents)})
	if err != nil {
		d.fail("the ledger can't be read: %v", err)
	}
	if len(ops) != d.intents {
		d.fail("%d intents, and the ledger has %d operations", d.intents, len(ops))
	}
	byID := map[string]ledger.Operation{}
	for _, op := range ops {
		byID[op.ID] = op
		d.judgeOperation(ctx, store, op, effects[op.ProviderKey])
		delete(effects, op.ProviderKey)
	}
	if len(effects) > 0 {
		d.fail("effects without an operation: %+v", effects)
	}
	for i := range d.intents {
		d.judgeAnswers(i, byID)
	}
	secret, err := ledger.NewSecret([]byte(drillSecret))
	if err != nil {
		d.fail("%v", err)
		return
	}
	l := &ledger.Ledger{Store: store, Audit: ledger.NewAuditor(secret)}
	if report, err := l.VerifyAudit(ctx, ""); err != nil || len(report.Problems) > 0 || report.Operations != len(ops) {
		d.fail("the audit trail: %+v, %v", report, err)
	}
}

func (d *drill) judgeOperation(ctx context.Context, store ledger.Store, op ledger.Operation, effects []sandbox.Effect) {
	if len(effects) > 1 {
		d.fail("%s of %s has %d effects", op.ID, op.Action, len(effects))
	}
	d.tally.effects.Add(int64(len(effects)))
	history, err := store.History(ctx, op.ID)
	if err != nil {
		d.fail("the history of %s: %v", op.ID, err)
	}
	status := ledger.Status("")
	for n, line := range history {
		if line.Seq != n+1 || line.From != status || !legal[[2]ledger.Status{line.From, line.To}] {
			d.fail("line %d of the history of %s is no legal move: %+v", n+1, op.ID, line)
		}
		status = line.To
	}
	switch op.Status {
	case ledger.Succeeded:
		if len(effects) != 1 || effects[0].ProviderOperationID != op.ProviderOperationID {
			d.fail("%s is succeeded as %q, and there are the effects %+v", op.ID, op.ProviderOperationID, effects)
		}
	case ledger.FailedFinal, ledger.FailedRetryable, ledger.Planned:
		if len(effects) > 0 {
			d.fail("%s is %s (%s), and it happened", op.ID, op.Status, op.ErrorCode)
		}
	case ledger.Unknown:
		if !op.Review.Open() && op.NextCheckAt.IsZero() {
			d.fail("%s is unknown, and nobody looks", op.ID)
		}
	case ledger.Executing:
		if time.Since(op.LeaseUntil) > 10*time.Second {
			d.fail("%s is executing, and its lease is long over", op.ID)
		}
	}
	for _, line := range history {
		if line.From == ledger.Unknown && line.To.Final() {
			d.tally.settled.Add(1)
		}
		if line.To == ledger.Executing && line.From != ledger.Executing {
			d.tally.requests.Add(1)
		}
	}
}

// judgeAnswers demands that callers were told one thing, and that it is so.
func (d *drill) judgeAnswers(i int, ops map[string]ledger.Operation) {
	d.mu.Lock()
	answers := d.answers[i]
	d.mu.Unlock()
	id, firsts := "", 0
	for _, a := range answers {
		op := ops[a.OperationID]
		switch a.Status {
		case "succeeded":
			if id != "" && id != a.ProviderOperationID || op.ProviderOperationID != a.ProviderOperationID || op.Status != ledger.Succeeded {
				d.fail("intent %d: a caller was told of the success %q, the ledger says %s %q", i, a.ProviderOperationID, op.Status, op.ProviderOperationID)
			}
			id = a.ProviderOperationID
			if !a.Replayed {
				firsts++
			}
		case "failed_final":
			if op.Status != ledger.FailedFinal {
				d.fail("intent %d: a caller was told that it failed, and it is %s", i, op.Status)
			}
		case "refused":
			if a.Code != "ledger_unavailable" && a.Code != "busy" && a.Code != "shutting_down" {
				d.fail("intent %d: a caller was refused: %s", i, a.Code)
			}
		}
	}
	if firsts > 1 {
		d.fail("intent %d: %d callers were told that theirs was the first", i, firsts)
	}
	if len(answers) == 0 {
		return
	}
	last := answers[len(answers)-1]
	why := ops[last.OperationID].Review.Reason
	if last.Status == "unknown" && !d.unsafe && why != ledger.ReviewAttemptsUsed && why != ledger.ReviewErrorKept {
		d.fail("intent %d: the provider could tell, and in the end a person is asked: %s", i, why)
	}
}
