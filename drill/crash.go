package drill

import (
	"context"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers/sandbox"
)

// crashScenarios are about servers that die, sleep or lose the ledger.
func crashScenarios() []scenario {
	return []scenario{
		{"the server is killed before the effect", nil, killed(sandbox.CrashBefore)},
		{"the server is killed after the effect", nil, killed(sandbox.CrashAfter)},
		{"a restart while it is executing", nil, restarted},
		{"another server takes over from one that sleeps", nil, sleeper},
		{"the ledger can't be written", nil, unwritable},
		{"the outcome can't be written", nil, outcomeLost},
	}
}

// killed plays a server that dies around the effect, and another one that comes after its lease.
func killed(kind sandbox.FaultKind) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		c, err := st.dies(ctx, kind)
		if err != nil {
			return err
		}
		next, err := st.another(ctx)
		if err != nil {
			return err
		}
		a, err := st.wait(ctx, next, c)
		st.must(a.Status == succeeded || a.Status == unknown && a.Review, "the repeat got %s", a)
		return err
	}
}

// dies plays a call whose server dies. What it still answers, nobody hears.
func (st *stage) dies(ctx context.Context, kind sandbox.FaultKind) (call, error) {
	if err := st.open(ctx, kind); err != nil {
		return call{}, err
	}
	c := st.ordinary()
	if _, err := st.act(ctx, st.first, c); err != nil {
		return c, err
	}
	op, err := st.operation(ctx, c)
	st.must(op.Status == ledger.Executing, "its server is gone, and it is %s", op.Status)
	return c, err
}

func restarted(ctx context.Context, st *stage) error {
	c, err := st.dies(ctx, sandbox.CrashAfter)
	if err != nil {
		return err
	}
	next, err := st.start(ctx, st.outside.box.Scope(), impatient)
	if err != nil {
		return err
	}
	if err := next.ledger.Sweep(ctx); err != nil { // as every server does at its start
		return err
	}
	a, err := st.call(ctx, next, c)
	if err != nil {
		return err
	}
	st.expect("a repeat before the lease is over", a, inProgress)
	if err := st.effectsNow(ctx, "before the lease is over", 1); err != nil {
		return err
	}
	if next, err = st.another(ctx); err != nil {
		return err
	}
	a, err = st.wait(ctx, next, c)
	st.must(a.Status == succeeded || a.Status == unknown && a.Review, "the repeat got %s", a)
	return err
}

// sleeper plays a worker that is stopped between its claim and its request for longer than its
// lease, while another server goes on.
func sleeper(ctx context.Context, st *stage) error {
	var c call
	var other error
	st.before = func(attempt int) {
		if attempt > 1 {
			return
		}
		op, err := st.operation(ctx, c)
		if other = err; err != nil {
			return
		}
		st.clock.to(op.LeaseUntil.Add(time.Second))
		next, err := st.another(ctx)
		if other = err; err == nil {
			_, other = st.wait(ctx, next, c)
		}
	}
	if err := st.open(ctx); err != nil {
		return err
	}
	c = st.ordinary()
	if _, err := st.act(ctx, st.first, c); err != nil {
		return err
	}
	if other != nil {
		return other
	}
	a, err := st.wait(ctx, st.first, c)
	st.must(a.Status == succeeded || a.Status == unknown && a.Review, "the repeat got %s", a)
	return err
}

func unwritable(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	c := st.ordinary()
	if err := st.admit(ctx, st.first, c); err != nil {
		return err
	}
	st.first.line.noClaims.Store(true)
	a, err := st.call(ctx, st.first, c)
	if err != nil {
		return err
	}
	st.must(a.Status == refused && a.Code == string(ledger.LedgerUnavailable), "the call got %s, not ledger_unavailable", a)
	if err := st.effectsNow(ctx, "while the ledger can't be written", 0); err != nil {
		return err
	}
	st.first.line.noClaims.Store(false)
	a, err = st.call(ctx, st.first, c)
	st.expect("the call after that", a, succeeded)
	st.tell("refused, and nothing is sent; the same call later succeeds")
	return err
}

func outcomeLost(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	c := st.ordinary()
	if err := st.admit(ctx, st.first, c); err != nil {
		return err
	}
	st.first.line.noMoves.Store(true)
	a, err := st.call(ctx, st.first, c)
	if err != nil {
		return err
	}
	st.expect("the call", a, unknown)
	st.first.line.noMoves.Store(false)
	if err := st.first.ledger.Sweep(ctx); err != nil {
		return err
	}
	a, err = st.wait(ctx, st.first, c)
	st.expect("the repeat", a, succeeded)
	st.tell("unknown, then written by the next sweep: %s", a.Status)
	return err
}
