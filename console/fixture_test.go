package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
)

// A desk is a console on a real ledger, with a provider that can lose its answers, and a
// clock that is moved by hand.
type desk struct {
	*testing.T
	ledger  *ledger.Ledger
	console *Console
	server  *httptest.Server
	alarms  Alarms
	log     bytes.Buffer
	owc     map[string]string // credentials by name

	mu      sync.Mutex
	at      time.Time
	last    int  // of ids
	lost    bool // the provider's answers are
	effects []string
}

var monday = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func newDesk(t *testing.T, change func(*Options)) *desk {
	t.Helper()
	d := &desk{T: t, at: monday, owc: map[string]string{}}
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	sealer, err := ledger.NewSealer([]byte("a seal key for tests"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&lockedWriter{mu: &d.mu, w: &d.log}, nil))
	actor := ledger.Actor{Provider: "sandbox", Scope: "scope-1", Promise: ledger.Promise{Deadline: 5 * time.Second, Lease: 10 * time.Second}, Apply: d.apply}
	d.ledger = &ledger.Ledger{
		Store: store, Sealer: sealer, Log: log, Now: d.now, NewID: d.newID, Alarm: d.alarms.Note, Owner: "server-1",
		Actors: map[string]ledger.Actor{"refund": actor, "email.send": actor, "payment_order.create": actor},
	}
	var lines strings.Builder
	for name, role := range map[string]Role{"vera": Viewer, "otto": Operator, "anna": Approver, "ada": Approver} {
		credential, hash := NewCredential()
		d.owc[name] = credential
		fmt.Fprintf(&lines, "%s %s %s\n", role, name, hash)
	}
	approvers, err := parseApprovers("approvers", strings.NewReader(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Ledger: d.ledger, Approvers: approvers, Unseal: Unsealing(d.ledger), Alarms: &d.alarms, Now: d.now, Log: log,
		Actions: []string{"email.send", "payment_order.create", "refund"}}
	if change != nil {
		change(&o)
	}
	if d.console, err = New(o); err != nil {
		t.Fatal(err)
	}
	d.server = httptest.NewServer(d.console)
	t.Cleanup(d.server.Close)
	return d
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d *desk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = d.at.Add(by)
}

// newID makes ids that are in the order of the desk's clock, as UUIDv7 are.
func (d *desk) newID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	ms := fmt.Sprintf("%012x", d.at.UnixMilli())
	return fmt.Sprintf("op_%s-%s-7000-8000-%012x", ms[:8], ms[8:], d.last)
}

// apply acts, and then the answer arrives or doesn't.
func (d *desk) apply(_ context.Context, a ledger.Attempt) ledger.Finding {
	if err := a.MaySend(); err != nil {
		return ledger.Finding{Verdict: ledger.NotSent, Code: "too_late"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.effects = append(d.effects, string(a.Payload.Request))
	if d.lost {
		return ledger.Finding{Verdict: ledger.Unclear, Code: "timeout"}
	}
	return ledger.Finding{Verdict: ledger.Done, Receipt: ledger.Receipt{ProviderOperationID: "re_1", ProviderStatus: "accepted", State: ledger.Settled,
		Evidence: json.RawMessage(`{"answer":"accepted"}`), Result: json.RawMessage(`{"amount":"100.00","currency":"USD"}`)}}
}

func (d *desk) acted() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.effects...)
}

func sum(parts ...string) [32]byte { return sha256.Sum256(fmt.Appendf(nil, "%q", parts)) }

// refund is a call for a refund; the arguments are a JSON object.
func refund(name, arguments string) ledger.Request {
	return ledger.Request{
		Action: "refund", Key: sum("key", name),
		Digest: ledger.Digest{Fingerprint: sum("fingerprint", arguments), Content: sum("content", arguments)},
		Prepare: func(string, string) (ledger.Payload, error) {
			return ledger.Payload{Arguments: json.RawMessage(arguments), Request: []byte(arguments)}, nil
		},
		Intent: ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-1842", Step: name, BusinessObject: "order-1", Revision: 1, RunID: "run-77"},
	}
}

const theArguments = `{"payment_id":"pay_8812","amount":"100.00","currency":"USD","note":"planted-note"}`

// loosely is a call that names itself by its arguments.
func loosely(name, arguments string) ledger.Request {
	r := refund(name, arguments)
	r.Intent = ledger.Intent{Identity: ledger.Workflow, WorkflowID: "case-1842"}
	r.Key, r.BaseKey = ledger.Key{}, sum("base", name)
	r.KeyAt = func(revision int) ledger.Key { return sum("revision", name, fmt.Sprint(revision)) }
	return r
}

func (d *desk) call(r ledger.Request) ledger.Operation {
	d.Helper()
	a, err := d.ledger.Execute(d.Context(), r)
	if err != nil {
		d.Fatalf("the call got %v", err)
	}
	return a.Operation
}

// done, planned and inReview bring an operation to where it is named after.
func (d *desk) done(name string) ledger.Operation {
	d.Helper()
	return d.want(d.call(refund(name, theArguments)), ledger.Succeeded)
}

func (d *desk) planned(name string) ledger.Operation {
	d.Helper()
	return d.plannedAs(name, theArguments)
}

func (d *desk) plannedAs(name, arguments string) ledger.Operation {
	d.Helper()
	r := refund(name, arguments)
	r.Approval = "above"
	return d.want(d.call(r), ledger.Planned)
}

func (d *desk) inReview(name string) ledger.Operation {
	d.Helper()
	d.lose(true)
	defer d.lose(false)
	op := d.want(d.call(refund(name, theArguments)), ledger.Unknown)
	if op, err := d.ledger.Reconcile(d.Context(), op.ID); err != nil || !op.Review.Open() {
		d.Fatalf("no review is open: %v, %v", op.Status, err)
	}
	return d.read(op.ID)
}

func (d *desk) lose(lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = lost
}

func (d *desk) want(op ledger.Operation, s ledger.Status) ledger.Operation {
	d.Helper()
	if op = d.read(op.ID); op.Status != s {
		d.Fatalf("the operation is %q, want %q", op.Status, s)
	}
	return op
}

func (d *desk) read(id string) ledger.Operation {
	d.Helper()
	op, _, err := d.ledger.History(d.Context(), id)
	if err != nil {
		d.Fatal(err)
	}
	return op
}

// A visitor is a browser.
type visitor struct {
	*desk
	client *http.Client
	page   string // the last page
	status int
	header http.Header
}

func (d *desk) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.Fatal(err)
	}
	return &visitor{desk: d, client: &http.Client{Jar: jar}}
}

func (d *desk) as(name string) *visitor {
	d.Helper()
	v := d.visitor()
	v.post("/console/login", "credential", d.owc[name])
	if v.status != http.StatusOK || !strings.Contains(v.page, "What needs me now") {
		d.Fatalf("%s can't log in: %d", name, v.status)
	}
	return v
}

func (v *visitor) do(r *http.Request) string {
	v.Helper()
	answer, err := v.client.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		v.Fatal(err)
	}
	v.page, v.status, v.header = string(body), answer.StatusCode, answer.Header
	return v.page
}

func (v *visitor) get(path string) string {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.server.URL+path, nil)
	if err != nil {
		v.Fatal(err)
	}
	return v.do(r)
}

func (v *visitor) post(path string, fields ...string) string {
	v.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return v.send(path, form)
}

func (v *visitor) send(path string, form url.Values) string {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), http.MethodPost, v.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", v.server.URL)
	return v.do(r)
}

var (
	formTag   = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)".*?</form>`)
	hiddenTag = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// form is what the last page's form for a path would send, as its hidden fields have it.
func (v *visitor) form(path string) url.Values {
	v.Helper()
	for _, f := range formTag.FindAllStringSubmatch(v.page, -1) {
		if action, _, _ := strings.Cut(f[1], "#"); action != path {
			continue
		}
		form := url.Values{}
		for _, field := range hiddenTag.FindAllStringSubmatch(f[0], -1) {
			form.Set(field[1], field[2])
		}
		return form
	}
	return nil
}

func of(op ledger.Operation, path string) string {
	return strings.TrimSuffix("/console/operations/"+op.ID+"/"+path, "/")
}

// submit sends the last page's form, with what a person would fill in.
func (v *visitor) submit(op ledger.Operation, path string, fields ...string) string {
	v.Helper()
	form := v.form(of(op, path))
	if form == nil {
		v.Fatalf("the page has no form to %s", path)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return v.send(of(op, path), form)
}

func (v *visitor) wants(status int, text string) {
	v.Helper()
	if v.status != status || !strings.Contains(v.page, text) {
		v.Errorf("got %d, want %d and a page with %q:\n%s", v.status, status, text, v.page)
	}
}

// unchanged demands that nothing was decided about an operation.
func (d *desk) unchanged(before ledger.Operation) {
	d.Helper()
	if now := d.read(before.ID); now.Moves != before.Moves || now.Status != before.Status {
		d.Errorf("it moved from %s, %d moves, to %s, %d moves; the last was %q", before.Status, before.Moves, now.Status, now.Moves, now.Last.Reason)
	}
}
