package ledger

import (
	"context"
)

// Prune drops results and details of final operations, and leaves tombstones: a repeat after a year
// is still a replay.
// critical names, per action type, the arguments whose hashes stay. It says how many it made.
func (l *Ledger) Prune(ctx context.Context, what Prunable, critical map[string][]string) (int, error) {
	l.init()
	return l.Store.Prune(ctx, what, func(op Operation, history []Transition) Operation {
		stone := op.Tombstone(critical[op.Action])
		if l.Audit != nil {
			stone.Chain = l.Audit.chain(&stone, l.Audit.sealedHead(op, history))
		}
		return stone
	})
}

// Tombstone is what stays of a final operation for ever: identity, fingerprint, the hashes of
// the critical arguments, status, the provider's id, times. The "workflow" identity needs the
// content too: whether a call is a repeat or a change that a person must see depends on it.
func (op Operation) Tombstone(critical []string) Operation {
	stone := Operation{
		ID: op.ID, Key: op.Key, BaseKey: op.BaseKey, Tenant: op.Tenant, Action: op.Action,
		Intent:      Intent{Identity: op.Intent.Identity, Revision: op.Intent.Revision},
		Fingerprint: op.Fingerprint, Fields: FieldHashes{},
		Status: op.Status, Attempts: op.Attempts,
		Provider: op.Provider, Generation: op.Generation, ProviderOperationID: op.ProviderOperationID, ProviderStatus: op.ProviderStatus,
		ErrorCode: op.ErrorCode, Conflicts: op.Conflicts,
		Pruned: true, Moves: op.Moves + 1,
		CreatedAt: op.CreatedAt, UpdatedAt: op.UpdatedAt, CompletedAt: op.CompletedAt,
	}
	if !op.BaseKey.IsZero() {
		stone.Content = op.Content
	}
	for _, name := range critical {
		if h, ok := op.Fields[name]; ok {
			stone.Fields[name] = h
		}
	}
	return stone
}
