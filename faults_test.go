package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers/sandbox"
	"github.com/onceward/onceward/tools"
	"github.com/onceward/onceward/transport"
)

// A traitPair is what the provider can: be asked, and know keys.
type traitPair struct{ lookup, idempotent bool }

var (
	bothTraits = traitPair{true, true}
	askOnly    = traitPair{true, false}
	keyOnly    = traitPair{false, true}
	neither    = traitPair{false, false}
)

// An ending is where repeated calls lead.
type ending struct {
	Status         string
	Effects        int
	Review         bool
	ProviderStatus string
	Alarm          bool // somebody is told
}

var (
	once       = ending{Status: "succeeded", Effects: 1, ProviderStatus: "accepted"}
	refusedFor = ending{Status: "failed_final"}
	// What only a person can settle: a review is open, and says so.
	openDone    = ending{Status: "unknown", Effects: 1, Review: true, Alarm: true}
	openNothing = ending{Status: "unknown", Review: true, Alarm: true}
	rejected    = ending{Status: "succeeded", Effects: 1, ProviderStatus: "rejected", Alarm: true}
	// The provider promised to know the key and didn't: nothing protects from that but
	// a look-up.
	brokenPromise = ending{Status: "succeeded", Effects: 2, ProviderStatus: "accepted"}
)

// endings is what has to become of every fault, by what the provider can. It is written
// down from what is promised: one effect and success wherever that can be known, never a
// second effect, never a failure that nobody proved.
var endings = []struct {
	faults string // ACTION stands for the action type
	ends   map[traitPair]ending
}{
	{"ACTION:unavailable", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: once}},
	{"ACTION:lose-request", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openNothing}},
	{"ACTION:lose-reply", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	{"ACTION:hang", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	{"ACTION:act-late", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	{"ACTION:server-error", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	{"ACTION:cached-error", map[traitPair]ending{bothTraits: openNothing, askOnly: openNothing, keyOnly: openNothing, neither: openNothing}},
	{"ACTION:refuse", map[traitPair]ending{bothTraits: refusedFor, askOnly: refusedFor, keyOnly: refusedFor, neither: refusedFor}},
	{"ACTION:in-flight", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	{"ACTION:key-ignored", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: once}},
	{"ACTION:prune-key", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: once}},
	{"ACTION:key-ignored,ACTION:lose-reply", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: brokenPromise, neither: openDone}},
	{"ACTION:prune-key,ACTION:lose-reply", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: brokenPromise, neither: openDone}},
	{"ACTION:reject-later", map[traitPair]ending{bothTraits: rejected, askOnly: rejected, keyOnly: once, neither: once}},
	{"ACTION:crash-before", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openNothing}},
	{"ACTION:crash-after", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	{"ACTION:lose-reply,ACTION:unavailable", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	{"ACTION:lose-reply,ACTION:refuse", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	// What wasn't sent says nothing about the error that the next attempt meets.
	{"ACTION:unavailable,ACTION:server-error", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openDone}},
	{"ACTION:lose-request,ACTION:unavailable,ACTION:lose-reply", map[traitPair]ending{bothTraits: once, askOnly: once, keyOnly: once, neither: openNothing}},
}

// faultCalls are one call of each tool.
var faultCalls = []struct{ action, tool, args string }{
	{"email.send", "email_send", `{"to":["anna@example.com"],"subject":"Your order","body":"It is on its way."}`},
	{"payment_order.create", "payment_order_create", `{"debit_account":"DE02120300000000202051","payee_account":"GB94BARC10201530093459","payee_name":"Example Ltd","amount":"1250.00","currency":"EUR","business_reference":"INV-7"}`},
	{"refund", "refund", `{"payment_id":"pay_8812","amount":"100.00","currency":"USD"}`},
}

// Times of these rows. The lease has to leave the slowest machine time to send; the
// deadline bounds what hangs.
const (
	rowDeadline = slowness * 1500 * time.Millisecond
	rowLease    = slowness * 3 * time.Second
	rowsAtOnce  = 32 / slowness // they mostly wait
)

// A faultRow is one fault, tool and pair of traits.
type faultRow struct {
	faults, tool, action, args string
	traits                     traitPair
	want                       ending
	crashes                    bool
	dir                        string

	got     ending
	alarmed atomic.Bool
	calls   int
	err     error
}

// TestFaults makes repeated calls against every way in which a provider or the network
// misbehaves, for each tool and each pair of traits, counts effects, and prints the table.
func TestFaults(t *testing.T) {
	if raceDetector {
		t.Skip("its 240 rows are about deadlines and leases that a slowed process misses; .ci/run does this without the race detector")
	}
	t.Parallel()
	var rows []*faultRow
	told := map[string]bool{}
	for _, e := range endings {
		for _, c := range faultCalls {
			for _, traits := range []traitPair{bothTraits, askOnly, keyOnly, neither} {
				r := &faultRow{
					faults: strings.ReplaceAll(e.faults, "ACTION", c.action), tool: c.tool, action: c.action, args: c.args,
					traits: traits, want: e.ends[traits], crashes: strings.Contains(e.faults, "crash"), dir: dataDir(t),
				}
				rows = append(rows, r)
			}
		}
		for _, part := range strings.Split(e.faults, ",") {
			told[strings.TrimPrefix(part, "ACTION:")] = true
		}
	}
	for _, kind := range sandbox.FaultKinds() {
		if !told[string(kind)] {
			t.Errorf("no row has the fault %s", kind)
		}
	}
	runRows(t, rows)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "FAULT\tTOOL\tLOOK-UP\tIDEMPOTENT\tEFFECTS\tSTATUS\tREVIEW\tCALLS\tNOTE")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%v\t%v\t%d\t%s\t%v\t%d\t%s\n", strings.ReplaceAll(r.faults, r.action+":", ""), r.tool,
			r.traits.lookup, r.traits.idempotent, r.got.Effects, r.got.Status, r.got.Review, r.calls, r.note())
		if r.err != nil {
			t.Errorf("%s of %s, %+v: %v", r.faults, r.tool, r.traits, r.err)
		} else if diff := cmp.Diff(r.want, r.got); diff != "" {
			t.Errorf("%s of %s, %+v (-want +got):\n%s", r.faults, r.tool, r.traits, diff)
		}
	}
	table.Flush()
	t.Logf("what becomes of each fault:\n%s", &text)
}

func (r *faultRow) note() string {
	switch {
	case r.want == brokenPromise:
		return "the provider forgot a key it had promised to know: only a look-up saves this"
	case r.got.ProviderStatus == "rejected":
		return "rejected later, and alarmed"
	case strings.Contains(r.faults, "reject-later"):
		return "rejected later, and nobody can know"
	case r.got.Review:
		return "closed by a person: see operations resolve"
	}
	return ""
}

func runRows(t *testing.T, rows []*faultRow) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	work := make(chan *faultRow)
	var workers sync.WaitGroup
	for range rowsAtOnce {
		workers.Go(func() {
			for r := range work {
				if r.err = ctx.Err(); r.err == nil {
					r.err = r.run(ctx)
				}
			}
		})
	}
	for _, r := range rows {
		work <- r
	}
	close(work)
	workers.Wait()
}

// A desk takes a row's calls: a server in this process, or in one that may be killed.
type desk interface {
	call(ctx context.Context, tool string, c toolCall) (outcome, error)
	close() error
}

func (r *faultRow) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	var d desk
	if d, err = newDeskOf(o); r.crashes {
		d, err = &mortalDesk{row: r}, nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	// 1. The same call until it is final, or asks a person.
	last, err := r.repeat(ctx, d, func(o outcome) bool {
		return o.Status == "succeeded" || o.Status == "failed_final" || o.Review
	})
	if err != nil {
		return err
	}
	// 2. Once more by hand: what can be learnt is learnt now. A look-up that takes too
	// long teaches nothing.
	for {
		op, err := o.ledger.Reconcile(ctx, last.OperationID)
		if err != nil {
			return fmt.Errorf("reconcile %+v: %w", last, err)
		}
		if op.ProviderStatus == r.want.ProviderStatus || op.Review.Open() {
			break // or what a person reads is compared below
		}
		if !pause(ctx) {
			return fmt.Errorf("it stays %s with the provider status %q, review %q", op.Status, op.ProviderStatus, op.Review.Reason)
		}
	}
	for range 3 {
		if last, err = r.call(ctx, d); err != nil {
			return err
		}
	}
	r.got.Status, r.got.Review, r.got.ProviderStatus = last.Status, last.Review, last.ProviderStatus
	r.got.Alarm = r.alarmed.Load()
	// A request that acts late has acted when the lease is over; nobody decides before.
	if err := leaseOver(ctx, o.ledger, last.OperationID); err != nil {
		return err
	}
	if r.got.Effects, err = r.count(ctx); err != nil {
		return err
	}
	if !last.Review {
		return nil
	}
	return r.resolve(ctx, o.ledger, d, last)
}

func leaseOver(ctx context.Context, l *ledger.Ledger, operationID string) error {
	for {
		op, _, err := l.History(ctx, operationID)
		if err != nil || op.Status.Final() || !time.Now().Before(op.LeaseUntil) {
			return err
		}
		if !pause(ctx) {
			return ctx.Err()
		}
	}
}

// resolve closes the review, as a person does who has looked.
func (r *faultRow) resolve(ctx context.Context, l *ledger.Ledger, d desk, open outcome) error {
	who, want := ledger.Person{By: "anna", Reason: "looked"}, "failed_final"
	if r.got.Effects > 0 {
		want = "succeeded"
		if _, err := l.Resolve(ctx, open.OperationID, ledger.Happened, "seen_1", open.Attempts, who); err != nil {
			return err
		}
	} else if err := dropWhenAllowed(ctx, l, open, who); err != nil {
		return err
	}
	closed, err := r.call(ctx, d)
	if err != nil {
		return err
	}
	if closed.Status != want || closed.Review {
		return fmt.Errorf("after a person's decision: %+v, want %s and no review", closed, want)
	}
	if effects, err := r.count(ctx); err != nil || effects != r.got.Effects {
		return fmt.Errorf("%d effects after a person's decision, %d before: %w", effects, r.got.Effects, err)
	}
	return nil
}

// dropWhenAllowed decides that nothing happened, as soon as no request can still run.
func dropWhenAllowed(ctx context.Context, l *ledger.Ledger, open outcome, who ledger.Person) error {
	for {
		_, err := l.Resolve(ctx, open.OperationID, ledger.Drop, "", open.Attempts, who)
		var early *ledger.DecisionError
		if !errors.As(err, &early) || !pause(ctx) {
			return err
		}
	}
}

func (r *faultRow) call(ctx context.Context, d desk) (outcome, error) {
	r.calls++
	c := with(`{"workflow_id":"case-1842","step":"act","business_object":"object-1"}`, r.args)
	said, err := d.call(ctx, r.tool, c)
	if err == nil && said.Status == "failed_final" && r.want.Status != "failed_final" && !r.got.Review {
		err = fmt.Errorf("call %d: a false failure: %+v", r.calls, said)
	}
	return said, err
}

func (r *faultRow) repeat(ctx context.Context, d desk, until func(outcome) bool) (outcome, error) {
	for {
		said, err := r.call(ctx, d)
		if err != nil && !errors.Is(err, errDied) {
			return said, err
		}
		if err == nil && until(said) {
			return said, nil
		}
		if !pause(ctx) {
			return said, fmt.Errorf("after %d calls it is still open: %+v, %w", r.calls, said, err)
		}
	}
}

func (r *faultRow) count(ctx context.Context) (int, error) {
	found, err := effectsIn(ctx, r.dir)
	for _, effect := range found {
		if effect.ActionType != r.action {
			return 0, fmt.Errorf("an effect of %s", effect.ActionType)
		}
	}
	return len(found), err
}

func (r *faultRow) sandbox() sandboxFlags {
	return sandboxFlags{
		SandboxFaults: r.faults, SandboxDeadline: rowDeadline, SandboxLease: rowLease, SandboxWindow: 24 * time.Hour,
		SandboxLookup: r.traits.lookup, SandboxIdempotent: r.traits.idempotent,
	}
}

// open opens the row's ledger, and its sandbox with the fault.
func (r *faultRow) open(ctx context.Context) (*office, error) {
	o, err := openOffice(ctx, officeFlags{dataFlags: dataFlags{DataDir: r.dir}, sandboxFlags: r.sandbox()}, slog.New(slog.DiscardHandler), true)
	if err != nil {
		return nil, err
	}
	o.ledger.Alarm = func(ledger.Alarm) { r.alarmed.Store(true) }
	o.ledger.Policy.FirstBackoff = 10 * time.Millisecond
	return o, nil
}

// A localDesk is the server without its transport.
type localDesk struct {
	server *server.MCPServer
	office *office
	client client
}

func newDeskOf(o *office) (desk, error) {
	set, err := tools.New(o.ledger, tools.Options{Mode: intent.Strict, Secret: o.secret, Providers: o.providers, Log: o.log})
	if err != nil {
		return nil, err
	}
	m, err := newMCPServer(set, new(transport.InFlight), o.log)
	return &localDesk{server: m, office: o, client: client{era: statelessEra}}, err
}

func (d *localDesk) call(ctx context.Context, tool string, c toolCall) (outcome, error) {
	_, message, err := d.client.message(tool, c)
	if err != nil {
		return outcome{}, err
	}
	answer, err := json.Marshal(d.server.HandleMessage(ctx, message))
	if err != nil {
		return outcome{}, err
	}
	said, err := parseReply(answer)
	if err != nil {
		return outcome{}, err
	}
	return said.outcome()
}

func (d *localDesk) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.office.ledger.Drain(ctx)
}

var errDied = errors.New("the server is gone")

// A mortalDesk is a server process, started again whenever it died.
type mortalDesk struct {
	row   *faultRow
	child *childServer
}

func (d *mortalDesk) call(ctx context.Context, tool string, c toolCall) (outcome, error) {
	if d.child == nil {
		r := d.row
		child, err := newChild(r.dir, nil, "--sandbox-faults", r.faults, "--sandbox-deadline", rowDeadline.String(), "--sandbox-lease", rowLease.String(),
			fmt.Sprintf("--sandbox-lookup=%v", r.traits.lookup), fmt.Sprintf("--sandbox-idempotent=%v", r.traits.idempotent), "--reconcile-every", "1h")
		if err != nil {
			return outcome{}, err
		}
		d.child = child
	}
	said, err := d.child.call(ctx, tool, c)
	if strings.Contains(d.child.log.String(), "msg=alarm") {
		d.row.alarmed.Store(true)
	}
	if err == nil || ctx.Err() != nil {
		return said, err
	}
	<-d.child.ended
	if state := d.child.cmd.ProcessState; state.Exited() {
		return said, fmt.Errorf("%w: it wasn't killed, %v; its log:\n%s", err, state, d.child.log)
	}
	d.child = nil
	return said, errDied
}

func (d *mortalDesk) close() error {
	if d.child != nil {
		d.child.kill()
	}
	d.child = nil
	return nil
}
