package sandbox

import (
	"encoding/json"

	"github.com/onceward/onceward/ledger"
)

// A proof is what the journal of an operation keeps of an answer. It holds no
// argument.
type proof struct {
	Provider            string `json:"provider"`
	Answer              string `json:"answer,omitempty"`
	Lookup              string `json:"lookup,omitempty"`
	ProviderOperationID string `json:"provider_operation_id"`
	Replayed            bool   `json:"replayed,omitempty"`
}

// The provider's own words for a [ledger.State].
const (
	statusAccepted = "accepted"
	statusRejected = "rejected"
)

func receipt(result json.RawMessage, id string, state ledger.State, p proof) ledger.Receipt {
	p.Provider, p.ProviderOperationID = Name, id
	evidence, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and a bool can always be rendered
	}
	status := statusAccepted
	if state == ledger.Rejected {
		status = statusRejected
	}
	return ledger.Receipt{
		ProviderOperationID: id,
		ProviderStatus:      status,
		State:               state,
		Result:              result,
		Evidence:            evidence,
	}
}
