package drill

import (
	"context"
	"path/filepath"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
)

// forEver is the window of a key that is never forgotten.
const forEver = 100 * 365 * 24 * time.Hour

// outside is the provider of one scenario: a sandbox that has the traits of the configured one.
type outside struct {
	box    *sandbox.Sandbox
	coming *sandbox.Sandbox // the same journal, with what a late request has yet to do
	traits providers.Traits
	clock  *clock
	// silent: the first request gets no answer before the deadline.
	silent   bool
	deadline time.Duration

	// before runs before an attempt looks at the clock, travel passes once it has looked: a
	// worker that sleeps, and a request that is long under way.
	before func(attempt int)
	travel func(attempt int) time.Duration
}

// openOutside makes the provider with a journal of its own. kill is the crash faults' end of the
// process.
func openOutside(ctx context.Context, dir string, s Subject, c *clock, faults []sandbox.Fault, kill func()) (*outside, error) {
	promise := s.Policy.Promise(s.Traits.Promise())
	// What acts late acts as late as it is promised to: just before lease and settle time are over.
	late := promise.Lease + s.Traits.Settle - time.Millisecond
	o := sandbox.Options{
		Deadline: late, Lease: late + 10, Settle: s.Traits.Settle, Lag: s.Traits.LookupLag, Window: s.Traits.Window,
		Lookup: s.Traits.Lookup != providers.NoLookup, Idempotent: s.Traits.Key != providers.NoKey,
		Faults: append(faults, s.Faults...), Now: c.Now, Kill: kill,
	}
	if o.Window == 0 {
		o.Window = forEver
	}
	path := filepath.Join(dir, "provider.db")
	box, err := sandbox.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	p := &outside{box: box, traits: s.Traits, clock: c, deadline: promise.Deadline}
	p.silent = len(faults) > 0 && (faults[0].Kind == sandbox.Hang || faults[0].Kind == sandbox.ActLate)
	o.Now = func() time.Time { return c.Now().Add(forEver) }
	if p.coming, err = sandbox.Open(ctx, path, o); err != nil {
		_ = box.Close() // the other error tells more
		return nil, err
	}
	return p, nil
}

var _ providers.Provider = (*outside)(nil)

func (p *outside) Traits(string) (providers.Traits, bool) { return p.traits, true }

func (p *outside) Prepare(o providers.Order) ([]byte, error) { return p.box.Prepare(o) }

// Apply has the sandbox do it. The drill's clock says how long it took, so the real one doesn't
// end it.
func (p *outside) Apply(ctx context.Context, action string, a ledger.Attempt) (ledger.Receipt, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if p.before != nil {
		p.before(a.Number)
	}
	look := a.MaySend
	a.MaySend = func() error {
		err := look()
		if err == nil && p.travel != nil {
			p.clock.pass(p.travel(a.Number))
		}
		return err
	}
	if !p.silent || a.Number > 1 {
		return p.box.Apply(ctx, action, a)
	}
	return p.unanswered(ctx, cancel, action, a)
}

// unanswered waits until the request has been taken in, and gives up then.
func (p *outside) unanswered(ctx context.Context, giveUp func(), action string, a ledger.Attempt) (ledger.Receipt, error) {
	ended := make(chan error, 1)
	go func() {
		_, err := p.box.Apply(ctx, action, a)
		ended <- err
	}()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for taken := false; ; {
		select {
		case err := <-ended:
			if !taken {
				return ledger.Receipt{}, err
			}
			p.clock.pass(p.deadline)
			return ledger.Receipt{}, context.DeadlineExceeded
		case <-look.C:
			found, err := p.effects(context.WithoutCancel(ctx))
			if taken = taken || err == nil && len(found) > 0; taken {
				giveUp()
			}
		}
	}
}

func (p *outside) Lookup(ctx context.Context, action string, q ledger.Question) (ledger.Receipt, error) {
	return p.box.Lookup(context.WithoutCancel(ctx), action, q)
}

// effects is all that the provider has done, or has yet to do: by provider key, how often.
func (p *outside) effects(ctx context.Context) (map[string]int, error) {
	found := map[string]int{}
	for effect, err := range p.coming.Effects(ctx) {
		if err != nil {
			return nil, err
		}
		found[effect.ProviderKey]++
	}
	return found, nil
}

func (p *outside) close() {
	_ = p.coming.Close() // both are thrown away
	_ = p.box.Close()
}
