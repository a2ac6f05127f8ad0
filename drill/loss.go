package drill

import (
	"context"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers/sandbox"
)

// lossScenarios are about answers that don't come, or prove nothing.
func lossScenarios() []scenario {
	return []scenario{
		{"the request is lost", nil, fault(sandbox.LoseRequest)},
		{"the reply is lost", nil, fault(sandbox.LoseReply)},
		{"no answer before the deadline", nil, fault(sandbox.Hang)},
		{"it acts after we gave up", nil, fault(sandbox.ActLate)},
		{"an error of the provider's, after it acted", nil, fault(sandbox.ServerError)},
		{"an error that is kept under the key", keepsNoErrors, fault(sandbox.CachedError)},
		{"still running", noKeys, fault(sandbox.InFlight)},
		{"the reply is lost, then it can't be reached", nil, fault(sandbox.LoseReply, sandbox.Unavailable)},
		{"the reply is lost, then it refuses", nil, fault(sandbox.LoseReply, sandbox.Refuse)},
		{"it ignores the key", onlyTheKey, fault(sandbox.KeyIgnored, sandbox.LoseReply)},
		{"it forgets the key", onlyTheKey, fault(sandbox.PruneKey, sandbox.LoseReply)},
		{"a reply is lost, and the key's window ends", noWindow, windowOver},
		{"a repeat at the window's end is long under way", noWindow, lastMoment},
		{"a definite no", nil, definiteNo},
		{"it rejects later what it accepted", noLookup, rejectedLater},
		{"it can't be reached for a moment", nil, unreachable},
		{"it can't be reached at all", nil, neverReached},
	}
}

// fault plays one call with faults: whatever the provider can, the promises hold.
func fault(kinds ...sandbox.FaultKind) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		if err := st.open(ctx, kinds...); err != nil {
			return err
		}
		a, err := st.settle(ctx, st.first, st.ordinary())
		st.must(a.Status == succeeded || a.Status == unknown && a.Review, "the repeat got %s", a)
		return err
	}
}

func keepsNoErrors(s Subject) string {
	if why := noKeys(s); why != "" {
		return why
	}
	if !s.Traits.CachesErrors {
		return s.Provider + " keeps no errors under a key"
	}
	return ""
}

func noWindow(s Subject) string {
	if why := noKeys(s); why != "" {
		return why
	}
	if s.Traits.Window == 0 {
		return s.Provider + " knows a key for ever"
	}
	return ""
}

// lostAndAway plays a lost reply; then no server looks until a while after the first request.
func lostAndAway(ctx context.Context, st *stage, away time.Duration) error {
	if err := st.open(ctx, sandbox.LoseReply); err != nil {
		return err
	}
	c := st.ordinary()
	if _, err := st.act(ctx, st.first, c); err != nil {
		return err
	}
	op, err := st.operation(ctx, c)
	if err != nil {
		return err
	}
	st.clock.to(op.FirstSentAt.Add(away))
	if err := st.first.ledger.Sweep(ctx); err != nil {
		return err
	}
	_, err = st.wait(ctx, st.first, c)
	return err
}

func windowOver(ctx context.Context, st *stage) error {
	return lostAndAway(ctx, st, st.subject.Traits.Window)
}

func lastMoment(ctx context.Context, st *stage) error {
	t := st.subject.Traits
	deadline := st.subject.Policy.Promise(t.Promise()).Deadline
	st.travel = func(attempt int) time.Duration {
		if attempt == 1 {
			return 0
		}
		return deadline
	}
	return lostAndAway(ctx, st, t.Window-t.Margin-time.Millisecond)
}

func definiteNo(ctx context.Context, st *stage) error {
	if err := st.open(ctx, sandbox.Refuse); err != nil {
		return err
	}
	a, err := st.settle(ctx, st.first, st.ordinary())
	st.expect("the call", a, failedFinal)
	return err
}

func rejectedLater(ctx context.Context, st *stage) error {
	if err := st.open(ctx, sandbox.RejectLater); err != nil {
		return err
	}
	c := st.ordinary()
	a, err := st.settle(ctx, st.first, c)
	if err != nil {
		return err
	}
	st.expect("the call", a, succeeded)
	for range maxSteps { // it is looked at again and again
		op, err := st.operation(ctx, c)
		if err != nil {
			return err
		}
		if op.NextCheckAt.IsZero() {
			st.must(op.ProviderStatus == "rejected" && st.heard(op.ID, "rejected_later"), "it was rejected, and nobody was told")
			st.knownAfter = op.UpdatedAt.Sub(st.begun)
			st.tell("accepted, noticed after %s, an alarm raised, still %s", text(st.knownAfter), op.Status)
			return nil
		}
		st.clock.to(op.NextCheckAt)
		if err := st.first.ledger.Sweep(ctx); err != nil {
			return err
		}
	}
	st.must(false, "it was rejected, and is still being looked at")
	return nil
}

func unreachable(ctx context.Context, st *stage) error {
	if err := st.open(ctx, sandbox.Unavailable); err != nil {
		return err
	}
	a, err := st.settle(ctx, st.first, st.ordinary())
	st.expect("the repeat", a, succeeded)
	return err
}

// neverReached repeats a few times, then lets the time for retries pass.
func neverReached(ctx context.Context, st *stage) error {
	if err := st.openWith(ctx, []sandbox.Fault{{Action: st.subject.Action, Kind: sandbox.Unavailable, Count: sandbox.Always}}); err != nil {
		return err
	}
	c := st.ordinary()
	if _, err := st.act(ctx, st.first, c); err != nil {
		return err
	}
	for range 3 {
		op, err := st.operation(ctx, c)
		if err != nil {
			return err
		}
		st.must(op.Status == ledger.FailedRetryable, "it wasn't sent, and it is %s", op.Status)
		if op.Status != ledger.FailedRetryable || !op.NextCheckAt.Before(op.ExpiresAt) {
			break
		}
		if err := st.step(ctx, st.first, c, op); err != nil {
			return err
		}
	}
	op, err := st.operation(ctx, c)
	if err != nil {
		return err
	}
	st.clock.to(op.ExpiresAt)
	if err := st.first.ledger.Sweep(ctx); err != nil {
		return err
	}
	a, err := st.wait(ctx, st.first, c)
	st.expect("the last repeat", a, failedFinal)
	return err
}
