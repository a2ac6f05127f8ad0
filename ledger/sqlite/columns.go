package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onceward/onceward/ledger"
)

// columns ties every field of an Operation to a column of agent_operations. Reading,
// inserting and updating all go by this list.
var columns = slices.Concat(common, rare)

// common are the columns that a finished operation usually has set.
var common = []column{
	{"key", hash(func(o *ledger.Operation) *[32]byte { return (*[32]byte)(&o.Key) })},
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
}

// rare are the columns that only waiting, doubtful, pruned or otherwise special operations have
// set. Reading a column costs, set or not; see reads.
var rare = []column{
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

type column struct {
	name string
	kind
}

// A kind says how a field is kept. A value of nil is NULL, which is also what the
// column holds if nothing is said; numbers are 0 then.
type kind interface {
	same(a, b *ledger.Operation) bool
	value(o *ledger.Operation) any
	set(o *ledger.Operation, v any) error
}

// unset reports whether v is what a column holds if nothing is said.
func unset(v any) bool { return v == nil || v == int64(0) || v == "" }

type (
	text     func(*ledger.Operation) *string // "" is NULL
	name     func(*ledger.Operation) *string // "" is ''
	number   func(*ledger.Operation) *int
	flag     func(*ledger.Operation) *bool
	moment   func(*ledger.Operation) *time.Time // microseconds
	amount   func(*ledger.Operation) *int64
	hash     func(*ledger.Operation) *[32]byte         // zero is NULL
	short    func(*ledger.Operation) *ledger.FieldHash // zero is NULL
	document func(*ledger.Operation) *json.RawMessage  // empty is NULL
	fields   func(*ledger.Operation) *ledger.FieldHashes
)

func (f text) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f text) value(o *ledger.Operation) any {
	if s := *f(o); s != "" {
		return s
	}
	return nil
}
func (f text) set(o *ledger.Operation, v any) (err error) { *f(o), err = as[string](v); return err }

func (f name) same(a, b *ledger.Operation) bool           { return *f(a) == *f(b) }
func (f name) value(o *ledger.Operation) any              { return *f(o) }
func (f name) set(o *ledger.Operation, v any) (err error) { *f(o), err = as[string](v); return err }

func (f number) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f number) value(o *ledger.Operation) any    { return int64(*f(o)) }
func (f number) set(o *ledger.Operation, v any) error {
	n, err := as[int64](v)
	*f(o) = int(n)
	return err
}

func (f amount) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f amount) value(o *ledger.Operation) any    { return *f(o) }
func (f amount) set(o *ledger.Operation, v any) (err error) {
	*f(o), err = as[int64](v)
	return err
}

func (f flag) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f flag) value(o *ledger.Operation) any {
	if *f(o) {
		return int64(1)
	}
	return int64(0)
}
func (f flag) set(o *ledger.Operation, v any) error {
	n, err := as[int64](v)
	*f(o) = n != 0
	return err
}

func (f moment) same(a, b *ledger.Operation) bool {
	s, t := *f(a), *f(b)
	return s.IsZero() == t.IsZero() && s.UnixMicro() == t.UnixMicro()
}
func (f moment) value(o *ledger.Operation) any { return micros(*f(o)) }
func (f moment) set(o *ledger.Operation, v any) error {
	n, err := as[int64](v)
	if v != nil {
		*f(o) = time.UnixMicro(n).UTC()
	}
	return err
}

// micros is how a time is kept: nil if it isn't set.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func (f hash) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f hash) value(o *ledger.Operation) any {
	if h := f(o); *h != [32]byte{} {
		return h[:]
	}
	return nil
}
func (f hash) set(o *ledger.Operation, v any) error {
	b, err := as[[]byte](v)
	if err == nil && v != nil && copy(f(o)[:], b) != len(f(o)) {
		err = fmt.Errorf("ledger/sqlite: a hash has %d bytes", len(b))
	}
	return err
}

func (f short) same(a, b *ledger.Operation) bool { return *f(a) == *f(b) }
func (f short) value(o *ledger.Operation) any {
	if h := f(o); *h != (ledger.FieldHash{}) {
		return h[:]
	}
	return nil
}
func (f short) set(o *ledger.Operation, v any) error {
	b, err := as[[]byte](v)
	if err == nil && v != nil && copy(f(o)[:], b) != len(f(o)) {
		err = fmt.Errorf("ledger/sqlite: a short hash has %d bytes", len(b))
	}
	return err
}

func (f document) same(a, b *ledger.Operation) bool { return bytes.Equal(*f(a), *f(b)) }
func (f document) value(o *ledger.Operation) any {
	if d := *f(o); len(d) > 0 {
		return string(d)
	}
	return nil
}
func (f document) set(o *ledger.Operation, v any) error {
	s, err := as[string](v)
	if s != "" {
		*f(o) = json.RawMessage(s)
	}
	return err
}

func (f fields) same(a, b *ledger.Operation) bool { return maps.Equal(*f(a), *f(b)) }
func (f fields) value(o *ledger.Operation) any {
	if h := *f(o); len(h) > 0 {
		return h.Bytes()
	}
	return nil
}
func (f fields) set(o *ledger.Operation, v any) error {
	b, err := as[[]byte](v)
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
		return int64(o.Moves - 1)
	}
	return nil
}
func (tombstone) set(o *ledger.Operation, v any) error {
	o.Pruned = v != nil
	return nil
}

// as takes a value as the driver gives it; NULL is T's zero.
func as[T any](v any) (T, error) {
	t, ok := v.(T)
	if !ok && v != nil {
		return t, fmt.Errorf("ledger/sqlite: a column holds a %T, not a %T", v, t)
	}
	return t, nil
}
