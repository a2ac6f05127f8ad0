package providers

import (
	"context"
	"errors"

	"github.com/onceward/onceward/ledger"
)

// Actor gives the ledger a provider's functions for one action type: this is where
// errors become findings. scope is the provider's endpoint, account and mode,
// hashed. ok is false if the provider doesn't serve the action type.
func Actor(name, scope, action string, p Provider) (actor ledger.Actor, ok bool) {
	traits, ok := p.Traits(action)
	if !ok {
		return ledger.Actor{}, false
	}
	actor = ledger.Actor{
		Provider: name,
		Scope:    scope,
		Promise:  traits.Promise(),
		Apply: func(ctx context.Context, a ledger.Attempt) ledger.Finding {
			receipt, err := p.Apply(ctx, action, a)
			return finding(receipt, err)
		},
	}
	if traits.Lookup != NoLookup {
		actor.Lookup = func(ctx context.Context, q ledger.Question) ledger.Finding {
			ctx, clock := withClock(ctx)
			receipt, err := p.Lookup(ctx, action, q)
			f := finding(receipt, err)
			f.Clock = clock.latest
			return f
		}
	}
	return actor, true
}

// finding reads a provider's answer: a receipt if err is nil, and else what err
// proves.
func finding(receipt ledger.Receipt, err error) ledger.Finding {
	if err == nil {
		if receipt.State == ledger.Rejected {
			return ledger.Finding{Verdict: ledger.Refused, Receipt: receipt, Code: "rejected_by_provider"}
		}
		return ledger.Finding{Verdict: ledger.Done, Receipt: receipt}
	}
	if errors.Is(err, ErrAbsent) {
		return ledger.Finding{Verdict: ledger.Absent, Code: "absent"}
	}
	if errors.Is(err, ledger.ErrTooLate) {
		return ledger.Finding{Verdict: ledger.NotSent, Code: "lease_over"}
	}
	marked, ok := errors.AsType[*Error](err)
	if !ok {
		return ledger.Finding{Verdict: ledger.Unclear, Code: unmarkedCode(err)}
	}
	f := ledger.Finding{Code: marked.Code, RetryAfter: marked.RetryAfter, Alarm: marked.Alarm}
	switch marked.Mark {
	case NotSent:
		f.Verdict = ledger.NotSent
	case Refused:
		f.Verdict = ledger.Refused
	case KeyReused, Contradiction:
		f.Verdict = ledger.Contradiction
		if f.Alarm == "" {
			f.Alarm = string(marked.Mark)
		}
	default: // InFlight, or no mark
		f.Verdict = ledger.Unclear
	}
	return f
}

// unmarkedCode names an error whose text must not be kept: it may quote anything.
func unmarkedCode(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return "connection_lost"
	}
}
