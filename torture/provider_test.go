package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Times of the model's provider.
const (
	deadline = 5 * time.Second
	lease    = 10 * time.Second
)

// A capability is what a provider promises, and keeps unless a fault says otherwise.
type capability struct {
	Key, Asked  bool // it knows keys; it can be asked
	Caches      bool // it says that errors are kept under their key
	Window      time.Duration
	Settle, Lag time.Duration
}

func (c capability) traits() providers.Traits {
	t := providers.Traits{
		Deadline: deadline, Lease: lease, Settle: c.Settle, Window: c.Window, Margin: lease, CachesErrors: c.Caches,
		LookupLag: c.Lag, ProvesAbsence: c.Asked,
	}
	if c.Key {
		t.Key = providers.KeyInHeader
	}
	if c.Asked {
		t.Lookup = providers.LookupByKey
	}
	return t
}

// What may become of a request. All but the last ones are the sandbox's faults, by their names.
var acts = []string{
	"act", "unavailable", "lose-request", "lose-reply", "hang", "act-late", "server-error", "cached-error",
	"refuse", "in-flight", "key-ignored", "prune-key", "reject-later", "crash-before", "crash-after",
	"slow", "slow-lose-reply", "slow-lose-request", "panic",
}

// A model is the outside world: it does what it is asked, or misbehaves by its script, and keeps
// a journal of its own.
type model struct {
	w   *world
	cap capability

	mu      sync.Mutex
	scripts [][]string // by operation; honest after the last
	effects []effect
	records map[string]record // what is known of keys
	broken  map[int]bool      // operations for which it broke its promise
	vain    int               // so many look-ups fail
}

type effect struct {
	op       int
	key, id  string
	order    order
	at       time.Time
	rejected bool
}

type record struct {
	id         string
	failed     bool
	at, doneAt time.Time
}

// An order is the request as it was rendered.
type order struct {
	Op     int    `json:"op"`
	Amount int64  `json:"amount"`
	Note   string `json:"note"`
}

// A desk is the model as one server reaches it.
type desk struct {
	*model
	srv *server
}

var _ providers.Provider = desk{}

func (d desk) Traits(string) (providers.Traits, bool)               { return d.cap.traits(), true }
func (d desk) Prepare(providers.Order) ([]byte, error)              { return nil, errors.New("not used") }
func lost() error                                                   { return errors.New("the connection broke") }
func marked(m providers.Mark, code string) error                    { return &providers.Error{Mark: m, Code: code} }
func answered(e effect, state ledger.State) (ledger.Receipt, error) { return e.receipt(state), nil }

func (e effect) receipt(state ledger.State) ledger.Receipt {
	if e.rejected && state != ledger.Accepted {
		state = ledger.Rejected
	}
	return ledger.Receipt{
		ProviderOperationID: e.id, ProviderStatus: string(state), State: state,
		Evidence: json.RawMessage(fmt.Sprintf(`{"id":%q}`, e.id)), Result: json.RawMessage(`{"ok":true}`),
	}
}

// Apply is one request on the wire.
func (d desk) Apply(_ context.Context, _ string, a ledger.Attempt) (ledger.Receipt, error) {
	d.srv.stand()
	if d.srv.dead.Load() {
		return ledger.Receipt{}, marked(providers.NotSent, "dead")
	}
	if err := a.MaySend(); err != nil {
		return ledger.Receipt{}, err
	}
	var o order
	if err := json.Unmarshal(a.Payload.Request, &o); err != nil {
		d.w.fail("the request isn't what was rendered: %v", err)
		return ledger.Receipt{}, marked(providers.Refused, "unreadable")
	}
	d.w.tally.requests.Add(1)
	d.w.sent(d.srv, a, o)
	act := d.next(o.Op, a.ProviderKey)
	d.w.trace("server %d sends %s, attempt %d of operation %d: %s", d.srv.n, a.ProviderKey[:6], a.Number, o.Op, act)
	return d.serve(act, a, o)
}

// next is what becomes of an operation's next request.
func (m *model) next(op int, key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.scripts[op]) == 0 {
		return "act"
	}
	act := m.scripts[op][0]
	if (act == "key-ignored" || act == "prune-key") && (!m.cap.Key || m.records[key].at.IsZero()) {
		return "act" // there is nothing to forget
	}
	m.scripts[op] = m.scripts[op][1:]
	return act
}

func (d desk) serve(act string, a ledger.Attempt, o order) (ledger.Receipt, error) {
	switch act {
	case "unavailable":
		return ledger.Receipt{}, marked(providers.NotSent, "unavailable")
	case "lose-request":
		return ledger.Receipt{}, lost()
	case "slow-lose-request":
		d.w.sleep(deadline - time.Second)
		return ledger.Receipt{}, lost()
	case "refuse":
		return ledger.Receipt{}, marked(providers.Refused, "card_declined")
	case "crash-before":
		d.srv.die()
		return ledger.Receipt{}, lost()
	case "cached-error":
		return ledger.Receipt{}, d.keepError(a.ProviderKey)
	case "key-ignored", "prune-key":
		d.breakPromise(o.Op, a.ProviderKey)
	case "slow", "slow-lose-reply":
		d.w.sleep(deadline - time.Second)
	}
	at, state, rejected := d.w.now(), ledger.Settled, act == "reject-later"
	if rejected {
		state = ledger.Accepted
	}
	if act == "act-late" {
		at = at.Add(deadline + d.cap.Settle/2)
	}
	e, err := d.handle(a.ProviderKey, o, at, rejected)
	switch act {
	case "lose-reply", "slow-lose-reply":
		return ledger.Receipt{}, lost()
	case "hang", "act-late":
		d.w.sleep(deadline)
		return ledger.Receipt{}, context.DeadlineExceeded
	case "server-error":
		return ledger.Receipt{}, marked("", ledger.CodeServerError)
	case "in-flight":
		return ledger.Receipt{}, marked(providers.InFlight, "in_flight")
	case "crash-after":
		d.srv.die()
		return ledger.Receipt{}, lost()
	case "panic":
		panic("a bug, with jane@example.com in it")
	}
	if err != nil {
		return ledger.Receipt{}, err
	}
	return answered(e, state)
}

// handle acts, unless the key is remembered.
func (m *model) handle(key string, o order, at time.Time, rejected bool) (effect, error) {
	now := m.w.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.records[key]
	switch {
	case ok && known.failed:
		return effect{}, marked("", ledger.CodeServerError)
	case ok && m.cap.Key && now.Before(known.at.Add(m.cap.Window)):
		i := slices.IndexFunc(m.effects, func(e effect) bool { return e.id == known.id })
		e := m.effects[i]
		if now.Before(known.doneAt) {
			return e, marked(providers.InFlight, "in_flight")
		}
		if e.order != o {
			m.w.fail("a repeat of operation %d under its key isn't the same request", o.Op)
		}
		return e, nil
	}
	e := effect{op: o.Op, key: key, id: fmt.Sprintf("re_%d", len(m.effects)+1), order: o, at: at, rejected: rejected}
	m.effects = append(m.effects, e)
	m.records[key] = record{id: e.id, at: now, doneAt: at}
	m.w.tally.effects.Add(1)
	m.w.acted(e)
	return e, nil
}

func (m *model) keepError(key string) error {
	now := m.w.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records[key].at.IsZero() {
		m.records[key] = record{failed: true, at: now, doneAt: now}
	}
	return marked("", ledger.CodeServerError)
}

// breakPromise forgets a key inside its window.
func (m *model) breakPromise(op int, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.records[key].failed {
		m.broken[op] = true
	}
	delete(m.records, key)
}

// Lookup looks a key up.
func (d desk) Lookup(_ context.Context, _ string, q ledger.Question) (ledger.Receipt, error) {
	d.srv.stand()
	d.w.tally.lookUps.Add(1)
	begun := d.w.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.vain > 0 || d.srv.dead.Load() {
		d.vain--
		return ledger.Receipt{}, lost()
	}
	var found []effect
	for _, e := range d.effects {
		if (e.key == q.ProviderKey || slices.Contains(q.EarlierKeys, e.key)) && !begun.Before(e.at.Add(d.cap.Lag)) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return ledger.Receipt{}, providers.ErrAbsent
	case 1:
		return answered(found[0], ledger.Settled)
	}
	return ledger.Receipt{}, marked(providers.Contradiction, "two_objects")
}

// done is what it did for an operation, or is about to do.
func (m *model) done(op int) (effects []effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.effects {
		if e.op == op {
			effects = append(effects, e)
		}
	}
	return effects
}

func (m *model) isBroken(op int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken[op]
}

// behave ends all misbehaviour.
func (m *model) behave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.scripts)
	m.vain = 0
}
