package sandbox

import (
	"bytes"
	"context"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Lookup implements [providers.Provider]: the object with one of the operation's keys,
// if it happened longer ago than the lag. It never counts a fault.
func (s *Sandbox) Lookup(ctx context.Context, action string, q ledger.Question) (ledger.Receipt, error) {
	if !s.options.Lookup {
		return ledger.Receipt{}, &providers.Error{Code: codeNoLookup}
	}
	seen := s.options.Now().Add(-s.options.Lag)
	var found []object
	for _, key := range keysOf(q) {
		objects, err := s.objects(ctx, action, key, seen)
		if err != nil {
			return ledger.Receipt{}, &providers.Error{Code: codeUnavailable, Err: err}
		}
		found = append(found, objects...)
	}
	switch {
	case len(found) == 0:
		return ledger.Receipt{}, providers.ErrAbsent
	case len(found) > 1:
		return ledger.Receipt{}, contradiction(codeTwoObjects)
	}
	o := found[0]
	if sent := q.Payload.Request; len(sent) > 0 && !bytes.Equal(sent, o.request) {
		return ledger.Receipt{}, contradiction(codeOtherObject)
	}
	result, err := result(action, o.request)
	if err != nil {
		return ledger.Receipt{}, &providers.Error{Code: codeUnavailable, Err: err}
	}
	state := ledger.Settled
	if o.rejected {
		state = ledger.Rejected
	}
	return receipt(result, o.id, state, proof{Lookup: "found"}), nil
}

func contradiction(code string) error {
	return &providers.Error{Mark: providers.Contradiction, Code: code}
}

// keysOf lists the keys that the operation ever had, each once.
func keysOf(q ledger.Question) []string {
	keys := []string{q.ProviderKey}
	for _, key := range q.EarlierKeys {
		if key != q.ProviderKey {
			keys = append(keys, key)
		}
	}
	return keys
}

// An object is an effect as a look-up finds it.
type object struct {
	id       string
	rejected bool
	request  []byte
}

// objects finds at most two: more prove nothing else.
func (s *Sandbox) objects(ctx context.Context, action, key string, seen time.Time) ([]object, error) {
	rows, err := s.journal.reader.QueryContext(ctx, sqlFindEffects, key, action, seen.UnixNano())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []object
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.id, &o.rejected, &o.request); err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, rows.Err()
}
