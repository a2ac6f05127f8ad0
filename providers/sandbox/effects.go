package sandbox

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// An Effect is one thing that happened. Its arguments are what was sent, addresses
// and all: the sandbox is the outside world, and its journal is no ledger.
type Effect struct {
	ActionType          string          `json:"action_type"`
	ProviderKey         string          `json:"provider_key"`
	ProviderOperationID string          `json:"provider_operation_id"`
	At                  time.Time       `json:"at"`
	Arguments           json.RawMessage `json:"arguments"`
}

// Effects yields what has happened by now, oldest first; a request that still runs
// has done nothing yet. It ends after an error.
func (s *Sandbox) Effects(ctx context.Context) iter.Seq2[Effect, error] {
	return func(yield func(Effect, error) bool) {
		rows, err := s.journal.reader.QueryContext(ctx, sqlListEffects, s.options.Now().UnixNano())
		if err != nil {
			yield(Effect{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var e Effect
			var at int64
			var arguments []byte
			if err := rows.Scan(&e.ActionType, &e.ProviderKey, &e.ProviderOperationID, &at, &arguments); err != nil {
				yield(Effect{}, err)
				return
			}
			e.At, e.Arguments = time.Unix(0, at).UTC(), arguments
			if !yield(e, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Effect{}, err)
		}
	}
}
