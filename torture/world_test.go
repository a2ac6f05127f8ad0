package torture

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/onceward/onceward/ledger"
)

// A world is a plot being played: a store, the outside world, up to three servers.
type world struct {
	t      *testing.T
	plot   plot
	time   timing
	store  ledger.Store   // the judge's
	stores []ledger.Store // the servers'
	model  *model
	audit  *ledger.Auditor
	tally  *tally
	key    string // tells this schedule's operations from those of others on the same store

	servers  [3]*server
	offsets  [3]time.Duration
	launched int
	judged   int // what was written and done when it was judged last

	mu        sync.Mutex
	ids       *rand.ChaCha8
	told      map[int]string           // under which id a caller was told of success
	states    map[int]ledger.Operation // as last written, as far as anybody here knows
	approved  map[string]bool          // operation and amount, that a person has let go
	lettingGo map[int]bool             // a person is about to
	boundary  [3]bool                  // a planned breakage of this server was met
	wrong     string
	lines     []string
}

// A timing is the clock of a world, and what moves it on.
type timing interface {
	now() time.Time
	sleep(d time.Duration)      // blocks whoever calls for a time of the world's clock
	run(work func())            // starts work beside
	pass(d time.Duration)       // moves the clock on, and lets everybody act who waits for it
	await(done <-chan struct{}) // moves the clock on until done
	finish()                    // waits for all work
}

func (w *world) now() time.Time        { return w.time.now() }
func (w *world) sleep(d time.Duration) { w.time.sleep(d) }

func (w *world) rules() ledger.Rules { return w.plot.Rules }

// newID is a UUIDv7 whose time is the world's: ids are in the order of creation, and the
// audit trail's checkpoints go by that.
func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b [16]byte
	_, _ = w.ids.Read(b[:]) // it never fails
	ms := uint64(w.now().UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return "op_" + uuid.UUID(b).String()
}

func (w *world) fail(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, a...)
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong != ""
}

func (w *world) trace(format string, a ...any) {
	at := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, at.Format("02 15:04:05 ")+fmt.Sprintf(format, a...))
}

func (w *world) fired(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.boundary[n] = true
}

// committed notes what was written.
func (w *world) committed(m ledger.Move) {
	to := m.To()
	i := w.opOf(to.Key)
	w.trace("written: operation %d %s to %s, attempt %d, %s by %s", i, m.From().Status, to.Status, to.Attempts, to.Last.Reason, to.Last.Actor)
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.states[i]; !ok || was.Moves < to.Moves {
		w.states[i] = to
	}
	if to.Approval.State == ledger.Approved && m.From().Approval.State != ledger.Approved && w.lettingGo[i] {
		w.approved[approval(i, to.Fingerprint)] = true
	}
	if m.From().Status == ledger.Unknown && to.Status != ledger.Unknown && to.Status != ledger.Executing {
		w.tally.settled.Add(1)
	}
}

func (w *world) state(op int) ledger.Operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[op]
}

func sum(parts ...any) [32]byte {
	h := sha256.New()
	for _, p := range parts {
		text := fmt.Sprint(p)
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return [32]byte(h.Sum(nil))
}

func (w *world) keyOf(op int) ledger.Key { return sum("key", w.key, op) }

func (w *world) opOf(k ledger.Key) int {
	for i := range w.plot.Ops {
		if w.keyOf(i) == k {
			return i
		}
	}
	return -1
}

// request is a call as an orchestrator makes it.
func (w *world) request(op int, changed, reworded bool) ledger.Request {
	plan := w.plot.Ops[op]
	o := order{Op: op, Amount: plan.Amount, Note: "sorry"}
	if changed {
		o.Amount += 500
	}
	if reworded {
		o.Note = "really sorry"
	}
	amount, note, alike := sum("amount", o.Amount), sum("note", o.Note), sum("alike", w.key, o.Amount)
	r := ledger.Request{
		Action: plan.Action, Key: w.keyOf(op), Intent: ledger.Intent{
			Identity: ledger.Strict, WorkflowID: "case-" + w.key, Step: fmt.Sprint(op), BusinessObject: "order-1", Revision: 1, RunID: plan.Run,
		},
		Digest: ledger.Digest{
			Fingerprint: sum("fingerprint", o.Amount), Content: sum("content", o.Amount, o.Note), Alike: ledger.FieldHash(alike[:8]),
			Fields:   ledger.FieldHashes{"amount": ledger.FieldHash(amount[:8]), "note": ledger.FieldHash(note[:8])},
			Critical: []string{"amount"},
		},
		Prepare: func(string, string) (ledger.Payload, error) {
			b, err := json.Marshal(o)
			return ledger.Payload{Arguments: b, Request: b}, err
		},
	}
	if plan.Action != "email.send" {
		r.Amount = ledger.Amount{Minor: o.Amount, Currency: currency}
	}
	if plan.Approval {
		r.Approval = "policy"
	}
	return r
}

// play plays a plot and says what went wrong, if anything did.
func (w *world) play() string {
	w.model = &model{w: w, cap: w.plot.Cap, records: map[string]record{}, broken: map[int]bool{}}
	for _, op := range w.plot.Ops {
		w.model.scripts = append(w.model.scripts, op.Acts)
	}
	w.offsets = w.plot.Offsets
	w.told, w.states, w.approved = map[int]string{}, map[int]ledger.Operation{}, map[string]bool{}
	w.lettingGo = map[int]bool{}
	w.ids = rand.NewChaCha8(sum(w.key, w.plot.Seed))
	for n := range w.servers {
		w.servers[n] = w.launch(n, w.plot.Breaks[n])
		w.lookAtClock(w.servers[n])
	}
	for i, e := range w.plot.Steps {
		w.trace("step %d: %v", i+1, e)
		w.take(e)
		w.time.pass(0)
		w.judge()
		if w.failed() {
			break
		}
	}
	if !w.failed() {
		w.end()
	}
	for _, s := range w.servers {
		s.frozen.Store(0)
	}
	w.time.pass(time.Hour) // what is still under way ends
	w.time.finish()
	w.tally.schedules.Add(1)
	return w.wrong
}
