package providers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
)

// scripted answers everything with the same receipt and error.
type scripted struct {
	traits  Traits
	receipt ledger.Receipt
	err     error
	asked   []string
}

func (s *scripted) Traits(action string) (Traits, bool) { return s.traits, action == RefundCreate }

func (s *scripted) Prepare(Order) ([]byte, error) { return nil, nil }

func (s *scripted) Apply(_ context.Context, action string, a ledger.Attempt) (ledger.Receipt, error) {
	s.asked = append(s.asked, "apply "+action+" "+a.ProviderKey)
	return s.receipt, s.err
}

func (s *scripted) Lookup(_ context.Context, action string, q ledger.Question) (ledger.Receipt, error) {
	s.asked = append(s.asked, "lookup "+action+" "+q.ProviderKey)
	return s.receipt, s.err
}

func TestWhatErrorsProve(t *testing.T) {
	t.Parallel()
	private := errors.New("mail for alice@example.com bounced")
	object := ledger.Receipt{ProviderOperationID: "re_1", ProviderStatus: "accepted", State: ledger.Settled}
	rejected := ledger.Receipt{ProviderOperationID: "re_1", ProviderStatus: "rejected", State: ledger.Rejected}
	pending := ledger.Receipt{ProviderOperationID: "re_1", ProviderStatus: "accepted", State: ledger.Accepted}
	for _, tt := range []struct {
		name    string
		receipt ledger.Receipt
		err     error
		want    ledger.Finding
	}{
		{"settled", object, nil, ledger.Finding{Verdict: ledger.Done, Receipt: object}},
		{"accepted", pending, nil, ledger.Finding{Verdict: ledger.Done, Receipt: pending}},
		{"rejected", rejected, nil, ledger.Finding{Verdict: ledger.Refused, Receipt: rejected, Code: "rejected_by_provider"}},

		{"not sent", ledger.Receipt{}, &Error{Mark: NotSent, Code: "unavailable", RetryAfter: time.Second, Err: private},
			ledger.Finding{Verdict: ledger.NotSent, Code: "unavailable", RetryAfter: time.Second}},
		{"not sent, credentials refused", ledger.Receipt{}, &Error{Mark: NotSent, Code: "auth", Alarm: "credentials_refused"},
			ledger.Finding{Verdict: ledger.NotSent, Code: "auth", Alarm: "credentials_refused"}},
		{"refused", ledger.Receipt{}, &Error{Mark: Refused, Code: "card_expired", Err: private},
			ledger.Finding{Verdict: ledger.Refused, Code: "card_expired"}},
		{"in flight", ledger.Receipt{}, &Error{Mark: InFlight, Code: "in_flight", RetryAfter: time.Minute},
			ledger.Finding{Verdict: ledger.Unclear, Code: "in_flight", RetryAfter: time.Minute}},
		{"key reused", ledger.Receipt{}, &Error{Mark: KeyReused, Code: "key_reused"},
			ledger.Finding{Verdict: ledger.Contradiction, Code: "key_reused", Alarm: "key_reused"}},
		{"contradiction", ledger.Receipt{}, &Error{Mark: Contradiction, Code: "two_objects"},
			ledger.Finding{Verdict: ledger.Contradiction, Code: "two_objects", Alarm: "contradiction"}},
		{"contradiction with its own alarm", ledger.Receipt{}, &Error{Mark: Contradiction, Code: "amount", Alarm: "other_amount"},
			ledger.Finding{Verdict: ledger.Contradiction, Code: "amount", Alarm: "other_amount"}},
		{"absent", ledger.Receipt{}, ErrAbsent, ledger.Finding{Verdict: ledger.Absent, Code: "absent"}},
		{"absent, wrapped", ledger.Receipt{}, fmt.Errorf("page 2: %w", ErrAbsent), ledger.Finding{Verdict: ledger.Absent, Code: "absent"}},
		{"too late", ledger.Receipt{}, fmt.Errorf("sandbox: %w", ledger.ErrTooLate), ledger.Finding{Verdict: ledger.NotSent, Code: "lease_over"}},

		{"a code without a mark", ledger.Receipt{}, &Error{Code: "server_error"}, ledger.Finding{Verdict: ledger.Unclear, Code: "server_error"}},
		{"an unknown mark", ledger.Receipt{}, &Error{Mark: "maybe", Code: "x"}, ledger.Finding{Verdict: ledger.Unclear, Code: "x"}},
		{"a wrapped mark", ledger.Receipt{}, fmt.Errorf("refunds: %w", &Error{Mark: Refused, Code: "x"}), ledger.Finding{Verdict: ledger.Refused, Code: "x"}},
		{"timeout", ledger.Receipt{}, fmt.Errorf("%w: %w", private, context.DeadlineExceeded), ledger.Finding{Verdict: ledger.Unclear, Code: "timeout"}},
		{"cancelled", ledger.Receipt{}, context.Canceled, ledger.Finding{Verdict: ledger.Unclear, Code: "cancelled"}},
		{"anything else", ledger.Receipt{}, private, ledger.Finding{Verdict: ledger.Unclear, Code: "connection_lost"}},

		// A receipt beside an error proves nothing.
		{"an error with a receipt", object, private, ledger.Finding{Verdict: ledger.Unclear, Code: "connection_lost"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &scripted{traits: Traits{Lookup: LookupByKey}, receipt: tt.receipt, err: tt.err}
			actor, ok := Actor("stripe", "scope", RefundCreate, p)
			if !ok {
				t.Fatal("not served")
			}
			applied := actor.Apply(t.Context(), ledger.Attempt{ProviderKey: "k1"})
			if diff := cmp.Diff(tt.want, applied); diff != "" {
				t.Errorf("Apply (-want +got):\n%s", diff)
			}
			lookedUp := actor.Lookup(t.Context(), ledger.Question{ProviderKey: "k1"})
			if diff := cmp.Diff(tt.want, lookedUp); diff != "" {
				t.Errorf("Lookup (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"apply refund k1", "lookup refund k1"}, p.asked); diff != "" {
				t.Errorf("provider was asked (-want +got):\n%s", diff)
			}
			if text := fmt.Sprintf("%+v", applied); strings.Contains(text, "alice") {
				t.Errorf("the finding quotes the cause: %s", text)
			}
		})
	}
}

func TestActorOfAnActionThatIsNotServed(t *testing.T) {
	t.Parallel()
	if _, ok := Actor("stripe", "scope", EmailSend, &scripted{}); ok {
		t.Error("an actor for an action type that the provider doesn't serve")
	}
}

func TestActorCannotAskWithoutLookup(t *testing.T) {
	t.Parallel()
	// ProvesAbsence without a look-up is a mistake that must not reach the ledger.
	actor, _ := Actor("smtp", "scope", RefundCreate, &scripted{traits: Traits{ProvesAbsence: true}})
	if actor.Lookup != nil || actor.Promise.ProvesAbsence {
		t.Errorf("Lookup set: %v, ProvesAbsence: %v; want neither", actor.Lookup != nil, actor.Promise.ProvesAbsence)
	}
}

func TestPromise(t *testing.T) {
	t.Parallel()
	traits := Traits{
		Deadline: 1, Lease: 2, Settle: 3, Key: KeyInHeader, Window: 4, Margin: 5, Reuse: ReuseRefused,
		CachesErrors: true, Lookup: LookupByReference, LookupLag: 6, ProvesAbsence: true,
	}
	actor, _ := Actor("increase", "a scope", RefundCreate, &scripted{traits: traits})
	want := ledger.Promise{
		Deadline: 1, Lease: 2, Settle: 3, Idempotent: true, Window: 4, Margin: 5,
		CachesErrors: true, LookupLag: 6, ProvesAbsence: true,
	}
	if diff := cmp.Diff(want, actor.Promise); diff != "" {
		t.Errorf("promise (-want +got):\n%s", diff)
	}
	if actor.Provider != "increase" || actor.Scope != "a scope" {
		t.Errorf("actor is %q in %q", actor.Provider, actor.Scope)
	}
	traits.Key = NoKey
	if traits.Promise().Idempotent {
		t.Error("idempotent without a key")
	}
}

func TestMarkOf(t *testing.T) {
	t.Parallel()
	if got := MarkOf(fmt.Errorf("x: %w", &Error{Mark: NotSent})); got != NotSent {
		t.Errorf("MarkOf = %q, want %q", got, NotSent)
	}
	if got := MarkOf(errors.New("x")); got != "" {
		t.Errorf("MarkOf = %q, want none", got)
	}
}

func TestErrorTextsHoldNoCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("no such account: DE02120300000000202051")
	for want, err := range map[string]error{
		"refused: no_account": &Error{Mark: Refused, Code: "no_account", Err: cause},
		"server_error":        &Error{Code: "server_error", Err: cause},
		"amount: is too large": &ArgumentError{
			Field: "amount", Problem: "is too large",
		},
	} {
		if got := err.Error(); got != want {
			t.Errorf("text = %q, want %q", got, want)
		}
	}
	if !errors.Is(&Error{Err: cause}, cause) {
		t.Error("the cause can't be reached")
	}
}
