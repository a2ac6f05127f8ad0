package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// The codes of the sandbox's errors.
const (
	codeUnavailable = "unavailable"
	codeLost        = "connection_lost"
	codeServerError = "server_error"
	codeRefused     = "sandbox_refused"
	codeInvalid     = "invalid_request"
	codeInFlight    = "in_flight"
	codeKeyReused   = "key_reused"
	codeTwoObjects  = "two_objects"
	codeOtherObject = "other_object"
	codeNoLookup    = "no_lookup"
)

// A call is one request as it arrives.
type call struct {
	action  string
	key     string
	request []byte
	digest  [sha256.Size]byte
	result  json.RawMessage
	late    time.Duration // how long from now a request that acts late still runs
}

// Apply implements [providers.Provider]. The idempotency check, the effect, the memory
// of the key and the fault's count are one transaction of the journal.
func (s *Sandbox) Apply(ctx context.Context, action string, a ledger.Attempt) (ledger.Receipt, error) {
	result, err := result(action, a.Payload.Request)
	if err != nil {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Refused, Code: codeInvalid, Err: err}
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.options.Deadline)
		defer cancel()
	}
	if err := a.MaySend(); err != nil {
		return ledger.Receipt{}, err
	}
	answer, err := s.act(ctx, call{
		action:  action,
		key:     a.ProviderKey,
		request: a.Payload.Request,
		digest:  sha256.Sum256(a.Payload.Request),
		result:  result,
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	return answer.arrive(ctx, s.options.Kill)
}

// act is the provider's side of one request: it acts, or not, and says what it would
// answer. Its own error means that nothing happened, but for a commit that failed:
// that one has no mark.
func (s *Sandbox) act(ctx context.Context, c call) (answer, error) {
	tx, err := s.journal.begin(ctx)
	if err != nil {
		return answer{}, unavailable(err)
	}
	defer tx.rollback()
	c.late = s.lateness(ctx)
	v := visit{transaction: tx, options: s.options, call: c, now: s.options.Now()}
	answered, err := v.serve()
	if err != nil {
		return answer{}, unavailable(err)
	}
	if over(ctx) {
		// This process waited or slept for so long that the ledger may have given the
		// attempt up. A request that comes now must not act.
		return answer{}, unavailable(context.DeadlineExceeded)
	}
	if err := tx.commit(); err != nil {
		return answer{}, &providers.Error{Code: codeLost, Err: err}
	}
	return answered, nil
}

// lateness puts the effect of a request that acts late soon after the caller has given
// up: its worker's lease may have little left by then.
func (s *Sandbox) lateness(ctx context.Context) time.Duration {
	o := s.options
	wait := o.Deadline
	if deadline, ok := ctx.Deadline(); ok {
		wait = max(wait, time.Until(deadline))
	}
	return wait + (o.Lease-o.Deadline)/10
}

// over looks at the clock itself: a process that was stopped learns from its timers
// only some time after it goes on.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func unavailable(err error) error {
	return &providers.Error{Mark: providers.NotSent, Code: codeUnavailable, Err: err}
}

// An answer is what the provider says, and what becomes of it on the way.
type answer struct {
	receipt ledger.Receipt
	err     error
	silent  bool // nothing comes back before the caller gives up
	kill    bool // this process doesn't live to read it
}

func (a answer) arrive(ctx context.Context, kill func()) (ledger.Receipt, error) {
	if a.kill {
		kill()
		return ledger.Receipt{}, &providers.Error{Code: codeLost}
	}
	if a.silent {
		<-ctx.Done()
		return ledger.Receipt{}, ctx.Err()
	}
	return a.receipt, a.err
}
