package postgres_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
)

var (
	benchTime    = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	benchSeal    = []byte(strings.Repeat("s", 300))
	benchFields  = ledger.FieldHashes{"payment_id": {1}, "amount": {2}, "currency": {3}, "reason": {4}, "note": {5}}
	benchClaim   = ledger.Note{Actor: "worker:host-4711", Reason: "claimed"}
	benchOutcome = ledger.Note{Actor: "worker:host-4711", Reason: "provider_answered", Evidence: json.RawMessage(`{"id":"re_123","status":"accepted"}`)}
)

func benchOperation(i int) ledger.Operation {
	key := ledger.Key(sha256.Sum256(fmt.Append(nil, "key", i)))
	return ledger.Operation{
		ID: fmt.Sprintf("op_01930000-0000-7000-8000-%012d", i), Key: key, Action: "refund",
		Intent:      ledger.Intent{Identity: ledger.Strict, WorkflowID: fmt.Sprintf("case-%d", i/5), Step: "refund_customer", BusinessObject: "order-731", Revision: 1, RunID: "run-77"},
		Fingerprint: ledger.Hash(key), Content: ledger.Hash(key), Fields: benchFields,
	}
}
