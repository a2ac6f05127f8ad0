package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A clock stands still until it is moved.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

func fresh(t testing.TB) string { return filepath.Join(t.TempDir(), "data", "sandbox.db") }

func open(t testing.TB, path string, o Options) *Sandbox {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// with is a provider that behaves, but for what is listed.
func with(t testing.TB, faults string) Options {
	t.Helper()
	list, err := ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Faults = list
	return o
}

// Arguments with personal data in every field that may hold some.
var (
	email = providers.Email{
		To: []string{"alice@example.com", "bob@example.com"}, Cc: []string{"carol@example.com"}, Bcc: []string{"alice@example.com"},
		Subject: "Hello Alice", Body: "Dear Alice <&>", ReplyTo: "dave@example.com",
	}
	order = providers.PaymentOrder{
		DebitAccount: "DE02120300000000202051", PayeeAccount: "DE02500105170137075030", PayeeName: "Alice Example",
		Amount: providers.Money{Minor: 125000, Currency: "EUR"}, BusinessReference: "invoice-17", Purpose: "Flat of Alice",
	}
	repayment = providers.Refund{
		PaymentID: "pay_8812", Amount: providers.Money{Minor: 10000, Currency: "USD"},
		Reason: "duplicate", Note: "Alice called",
	}
	// None of them could stand in a random id.
	private = []string{"example.com", "hello alice", "dear alice", "alice example", "flat of", "alice called", "DE02120300000000202051", "DE02500105170137075030"}
)

var samples = map[string]providers.Arguments{
	providers.EmailSend:          email,
	providers.PaymentOrderCreate: order,
	providers.RefundCreate:       repayment,
}

var results = map[string]string{
	providers.EmailSend:          `{"recipients":3}`,
	providers.PaymentOrderCreate: `{"business_reference":"invoice-17","amount":"1250.00","currency":"EUR"}`,
	providers.RefundCreate:       `{"payment_id":"pay_8812","amount":"100.00","currency":"USD"}`,
}

func prepare(t testing.TB, s *Sandbox, a providers.Arguments) []byte {
	t.Helper()
	request, err := s.Prepare(providers.Order{Arguments: a})
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func attempt(key string, request []byte) ledger.Attempt {
	return ledger.Attempt{
		ProviderKey: key,
		Payload:     ledger.Payload{Request: request},
		MaySend:     func() error { return nil },
	}
}

// refundOnce makes one attempt of the sample refund.
func refundOnce(t testing.TB, s *Sandbox, key string) (ledger.Receipt, error) {
	t.Helper()
	return s.Apply(t.Context(), providers.RefundCreate, attempt(key, prepare(t, s, repayment)))
}

func ask(t testing.TB, s *Sandbox, key string) (ledger.Receipt, error) {
	t.Helper()
	return s.Lookup(t.Context(), providers.RefundCreate, ledger.Question{ProviderKey: key})
}

// said puts an answer in one line: the state, or the mark and code.
func said(r ledger.Receipt, err error) string {
	if err == nil {
		return string(r.State) + "/" + r.ProviderStatus
	}
	if errors.Is(err, providers.ErrAbsent) {
		return "absent"
	}
	if errors.Is(err, context.DeadlineExceeded) && providers.MarkOf(err) == "" {
		return "timeout"
	}
	if e, ok := errors.AsType[*providers.Error](err); ok {
		return string(e.Mark) + ":" + e.Code
	}
	return "?"
}

func effects(t testing.TB, s *Sandbox) []Effect {
	t.Helper()
	var all []Effect
	for e, err := range s.Effects(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func wantEffects(t testing.TB, s *Sandbox, want int) {
	t.Helper()
	if got := len(effects(t, s)); got != want {
		t.Errorf("%d effects, want %d", got, want)
	}
}

func wantSaid(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// nothingPrivate fails if a personal datum of the samples is in what the ledger keeps
// or the log prints.
func nothingPrivate(t testing.TB, r ledger.Receipt, err error) {
	t.Helper()
	text := fmt.Sprintf("%s %s %s %s %s %v", r.ProviderOperationID, r.ProviderStatus, r.Reference, r.Result, r.Evidence, err)
	for _, datum := range private {
		if strings.Contains(strings.ToLower(text), strings.ToLower(datum)) {
			t.Errorf("%q stands in %s", datum, text)
		}
	}
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t), DefaultOptions())
	prefix := map[string]string{providers.EmailSend: "em_", providers.PaymentOrderCreate: "po_", providers.RefundCreate: "re_"}
	for action, arguments := range samples {
		a := attempt("key of "+action, prepare(t, s, arguments))
		first, err := s.Apply(t.Context(), action, a)
		if err != nil {
			t.Fatal(err)
		}
		id := first.ProviderOperationID
		if !strings.HasPrefix(id, prefix[action]) || len(id) < 20 {
			t.Errorf("id of %s: %q", action, id)
		}
		want := ledger.Receipt{
			ProviderOperationID: id, ProviderStatus: "accepted", State: ledger.Settled,
			Result:   json.RawMessage(results[action]),
			Evidence: json.RawMessage(`{"provider":"sandbox","answer":"accepted","provider_operation_id":"` + id + `"}`),
		}
		if diff := cmp.Diff(want, first); diff != "" {
			t.Errorf("first (-want +got):\n%s", diff)
		}

		again, err := s.Apply(t.Context(), action, a)
		if err != nil {
			t.Fatal(err)
		}
		want.Evidence = json.RawMessage(`{"provider":"sandbox","answer":"accepted","provider_operation_id":"` + id + `","replayed":true}`)
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("again (-want +got):\n%s", diff)
		}

		found, err := s.Lookup(t.Context(), action, ledger.Question{ProviderKey: a.ProviderKey, Payload: a.Payload})
		if err != nil {
			t.Fatal(err)
		}
		want.Evidence = json.RawMessage(`{"provider":"sandbox","lookup":"found","provider_operation_id":"` + id + `"}`)
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("look-up (-want +got):\n%s", diff)
		}
	}
	wantEffects(t, s, len(samples))
}

func TestTraits(t *testing.T) {
	t.Parallel()
	o := Options{
		Deadline: time.Second, Lease: 3 * time.Second, Settle: time.Minute, Lag: 2 * time.Minute, Window: time.Hour,
		Lookup: true, Idempotent: true,
	}
	full := providers.Traits{
		Deadline: time.Second, Lease: 3 * time.Second, Settle: time.Minute,
		Key: providers.KeyInHeader, Window: time.Hour, Margin: 3 * time.Second, Reuse: providers.ReuseRefused,
		CachesErrors: true, Lookup: providers.LookupByKey, LookupLag: 2 * time.Minute, ProvesAbsence: true,
	}
	path := fresh(t)
	for action := range samples {
		got, ok := open(t, path, o).Traits(action)
		if diff := cmp.Diff(full, got); diff != "" || !ok {
			t.Errorf("traits of %s: %v (-want +got):\n%s", action, ok, diff)
		}
	}
	o.Lookup, o.Idempotent = false, false
	full.Key, full.Reuse = providers.NoKey, providers.ReuseActs
	full.Lookup, full.ProvesAbsence = providers.NoLookup, false
	bare := open(t, path, o)
	got, _ := bare.Traits(providers.RefundCreate)
	if diff := cmp.Diff(full, got); diff != "" {
		t.Errorf("bare traits (-want +got):\n%s", diff)
	}
	if _, ok := bare.Traits("invoice.send"); ok {
		t.Error("serves an unknown action type")
	}
}
