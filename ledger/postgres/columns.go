package postgres

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
)

// columns ties every field of an Operation to a column of agent_operations. Reading,
// inserting and updating all go by this list.
var columns = []column{
	{"idempotency_key", key{}},
	{"operation_id", text(func(o *ledger.Operation) *string { return &o.ID })},
	{"tenant", name(func(o *ledger.Operation) *string { return &o.Tenant })},
	{"action_type", text(func(o *ledger.Operation) *string { return &o.Action })},
	{"status", text(func(o *ledger.Operation) *string { return (*string)(&o.Status) })},
	{"attempt_count", number(func(o *ledger.Operation) *int { return &o.Attempts })},
	{"moves", number(func(o *ledger.Operation) *int { return &o.Moves })},
	{"identity", text(func(o *ledger.Operation) *string { return (*string)(&o.Intent.Identity) })},
	{"workflow_id", text(func(o *ledger.Operation) *string { return &o.Intent.WorkflowID })},
	{"step", text(func(o *ledger.Operation) *string { return &o.Intent.Step })},
	{"business_object", text(func(o *ledger.Operation) *string { return &o.Intent.BusinessObject })},
	{"revision", number(func(o *ledger.Operation) *int { return &o.Intent.Revision })},
	{"run_id", text(func(o *ledger.Operation) *string { return &o.Intent.RunID })},
	{"payload_hash", hash(func(o *ledger.Operation) *[32]byte { return (*[32]byte)(&o.Fingerprint) })},
	{"content_hash", hash(func(o *ledger.Operation) *[32]byte { return (*[32]byte)(&o.Content) })},
	{"field_hashes", fields(func(o *ledger.Operation) *ledger.FieldHashes { return &o.Fields })},
	{"provider", text(func(o *ledger.Operation) *string { return &o.Provider })},
	{"provider_scope", text(func(o *ledger.Operation) *string { return &o.Scope })},
	{"provider_key", text(func(o *ledger.Operation) *string { return &o.ProviderKey })},
	{"provider_operation_id", text(func(o *ledger.Operation) *string { return &o.ProviderOperationID })},
	{"provider_status", text(func(o *ledger.Operation) *string { return &o.ProviderStatus })},
	{"lease_until", moment(func(o *ledger.Operation) *time.Time { return &o.LeaseUntil })},
	{"first_sent_at", moment(func(o *ledger.Operation) *time.Time { return &o.FirstSentAt })},
	{"created_at", moment(func(o *ledger.Operation) *time.Time { return &o.CreatedAt })},
	{"updated_at", moment(func(o *ledger.Operation) *time.Time { return &o.UpdatedAt })},
	{"completed_at", moment(func(o *ledger.Operation) *time.Time { return &o.CompletedAt })},
	{"actor", text(func(o *ledger.Operation) *string { return &o.Last.Actor })},
	{"reason", text(func(o *ledger.Operation) *string { return &o.Last.Reason })},
	{"evidence_json", document(func(o *ledger.Operation) *json.RawMessage { return &o.Last.Evidence })},
	{"reference_json", document(func(o *ledger.Operation) *json.RawMessage { return &o.Reference })},
	{"result_json", document(func(o *ledger.Operation) *json.RawMessage { return &o.Result })},
	{"alike", short(func(o *ledger.Operation) *ledger.FieldHash { return &o.Alike })},
	{"amount", amount(func(o *ledger.Operation) *int64 { return &o.Amount.Minor })},
	{"currency", text(func(o *ledger.Operation) *string { return &o.Amount.Currency })},
	{"reserved", text(func(o *ledger.Operation) *string { return &o.Reserved })},
	{"chain", hash(func(o *ledger.Operation) *[32]byte { return (*[32]byte)(&o.Chain) })},
	{"base_key", hash(func(o *ledger.Operation) *[32]byte { return (*[32]byte)(&o.BaseKey) })},
	{"business_operation_id", text(func(o *ledger.Operation) *string { return &o.Intent.BusinessOperationID })},
	{"key_generation", number(func(o *ledger.Operation) *int { return &o.Generation })},
	{"last_error_code", text(func(o *ledger.Operation) *string { return &o.ErrorCode })},
	{"lease_owner", text(func(o *ledger.Operation) *string { return &o.LeaseOwner })},
	{"unsettled_since", moment(func(o *ledger.Operation) *time.Time { return &o.UnsettledSince })},
	{"next_check_at", moment(func(o *ledger.Operation) *time.Time { return &o.NextCheckAt })},
	{"checks", number(func(o *ledger.Operation) *int { return &o.Checks })},
	{"expires_at", moment(func(o *ledger.Operation) *time.Time { return &o.ExpiresAt })},
	{"approval_state", text(func(o *ledger.Operation) *string { return (*string)(&o.Approval.State) })},
	{"approval_reason", text(func(o *ledger.Operation) *string { return &o.Approval.Reason })},
	{"approval_run", flag(func(o *ledger.Operation) *bool { return &o.Approval.Run })},
	{"review_opened_at", moment(func(o *ledger.Operation) *time.Time { return &o.Review.OpenedAt })},
	{"review_reason", text(func(o *ledger.Operation) *string { return &o.Review.Reason })},
	{"repeat_until", moment(func(o *ledger.Operation) *time.Time { return &o.Repeat.Until })},
	{"repeat_same_content", flag(func(o *ledger.Operation) *bool { return &o.Repeat.SameContent })},
	{"conflicts", number(func(o *ledger.Operation) *int { return &o.Conflicts })},
	{"pruned", tombstone{}},
}

// list names columns for a query.
var list = func() string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}()

type column struct {
	name string
	kind
}

// A kind says how a field is kept. A value of nil is NULL, which is also what the
// column holds if nothing is said; numbers are 0 then. set takes what PostgreSQL sends for a
// value, nil for NULL; the driver asks for the binary format of all types but text, which is the
// same in both.
type kind interface {
	same(a, b *ledger.Operation) bool
	value(o *ledger.Operation) any
	set(o *ledger.Operation, b []byte) error
}

// unset reports whether v is what a column holds if nothing is said.
func unset(v any) bool {
	return v == nil || v == int32(0) || v == int64(0) || v == "" || v == false
}

type (
	key      struct{}                                    // in its text form
	text     func(*ledger.Operation) *string             // "" is NULL
	name     func(*ledger.Operation) *string             // "" is ''
	number   func(*ledger.Operation) *int                // integer
	amount   func(*ledger.Operation) *int64              // bigint
	flag     func(*ledger.Operation) *bool               // boolean
	moment   func(*ledger.Operation) *time.Time          // timestamptz; zero is NULL
	hash     func(*ledger.Operation) *[32]byte           // bytea; zero is NULL
	short    func(*ledger.Operation) *ledger.FieldHash   // bytea; zero is NULL
	document func(*ledger.Operation) *json.RawMessage    // text; empty is NULL
	fields   func(*ledger.Operation) *ledger.FieldHashes // bytea
)

func (key) same(a, b *ledger.Operation) bool { return a.Key == b.Key }
func (key) value(o *ledger.Operation) any    { return o.Key.String() }
func (key) set(o *ledger.Operation, b []byte) (err error) {
	o.Key, err = ledger.ParseKey(string(b))
	return err
}

func (f text) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f text) value(o *ledger.Operation) any {
	if s := *f(o); s != "" {
		return s
	}
	return nil
}
func (f text) set(o *ledger.Operation, b []byte) error { *f(o) = string(b); return nil }

func (f name) same(a, b *ledger.Operation) bool        { return *f(a) == *f(b) }
func (f name) value(o *ledger.Operation) any           { return *f(o) }
func (f name) set(o *ledger.Operation, b []byte) error { *f(o) = string(b); return nil }

func (f number) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f number) value(o *ledger.Operation) any    { return int32(*f(o)) }
func (f number) set(o *ledger.Operation, b []byte) error {
	n, err := integer(b)
	*f(o) = int(n)
	return err
}

func (f amount) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f amount) value(o *ledger.Operation) any    { return *f(o) }
func (f amount) set(o *ledger.Operation, b []byte) (err error) {
	*f(o), err = integer(b)
	return err
}

func (f flag) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f flag) value(o *ledger.Operation) any    { return *f(o) }
func (f flag) set(o *ledger.Operation, b []byte) error {
	*f(o) = len(b) == 1 && b[0] != 0
	return nil
}

func (f moment) same(a, b *ledger.Operation) bool {
	s, t := *f(a), *f(b)
	return s.IsZero() == t.IsZero() && s.UnixMicro() == t.UnixMicro()
}
func (f moment) value(o *ledger.Operation) any {
	if t := *f(o); !t.IsZero() {
		return t
	}
	return nil
}
func (f moment) set(o *ledger.Operation, b []byte) error {
	if b == nil {
		return nil
	}
	t, err := timestamp(b)
	*f(o) = t
	return err
}

func (f hash) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f hash) value(o *ledger.Operation) any {
	if h := f(o); *h != [32]byte{} {
		return h[:]
	}
	return nil
}
func (f hash) set(o *ledger.Operation, b []byte) error {
	if b != nil && copy(f(o)[:], b) != len(f(o)) {
		return fmt.Errorf("ledger/postgres: a hash has %d bytes", len(b))
	}
	return nil
}

func (f short) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f short) value(o *ledger.Operation) any {
	if h := f(o); *h != (ledger.FieldHash{}) {
		return h[:]
	}
	return nil
}
func (f short) set(o *ledger.Operation, b []byte) error {
	if b != nil && copy(f(o)[:], b) != len(f(o)) {
		return fmt.Errorf("ledger/postgres: a short hash has %d bytes", len(b))
	}
	return nil
}

func (f document) same(a, b *ledger.Operation) bool { return bytes.Equal(*f(a), *f(b)) }
func (f document) value(o *ledger.Operation) any {
	if d := *f(o); len(d) > 0 {
		return string(d)
	}
	return nil
}
func (f document) set(o *ledger.Operation, b []byte) error {
	if len(b) > 0 {
		*f(o) = bytes.Clone(b)
	}
	return nil
}

func (f fields) same(a, b *ledger.Operation) bool { return maps.Equal(*f(a), *f(b)) }
func (f fields) value(o *ledger.Operation) any {
	if h := *f(o); len(h) > 0 {
		return h.Bytes()
	}
	return nil
}
func (f fields) set(o *ledger.Operation, b []byte) (err error) {
	if len(b) > 0 {
		*f(o), err = ledger.ParseFieldHashes(b)
	}
	return err
}

// A tombstone's column counts the transitions that went; the Operation says only
// that they did.
type tombstone struct{}

func (tombstone) same(a, b *ledger.Operation) bool { return a.Pruned == b.Pruned }
func (tombstone) value(o *ledger.Operation) any {
	if o.Pruned {
		return int32(o.Moves - 1)
	}
	return nil
}
func (tombstone) set(o *ledger.Operation, b []byte) error {
	o.Pruned = b != nil
	return nil
}

// integer reads an integer or a bigint.
func integer(b []byte) (int64, error) {
	switch len(b) {
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case 8:
		return int64(binary.BigEndian.Uint64(b)), nil
	}
	return 0, fmt.Errorf("ledger/postgres: a number has %d bytes", len(b))
}

// epoch is PostgreSQL's, from which it counts microseconds.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func timestamp(b []byte) (time.Time, error) {
	n, err := integer(b)
	return time.UnixMicro(epoch + n).UTC(), err
}
