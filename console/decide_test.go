package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// last is who made an operation's last move, why, and what was noted.
func (d *desk) lastMove(id string) string {
	d.Helper()
	n := d.read(id).Last
	return fmt.Sprintf("%s %s %s", n.Actor, n.Reason, n.Evidence)
}

// What a person approves is what they saw, and it runs once.
func TestApprove(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op, other := d.planned("notice"), d.planned("other")
	v := d.as("anna")
	v.get("/console/")
	v.wants(http.StatusOK, op.ID)
	v.get(of(op, ""))
	if v.form(of(op, "approve")) != nil || strings.Contains(v.page, "pay_8812") {
		t.Fatalf("before the arguments are shown there is a form to approve, or there are arguments:\n%s", v.page)
	}
	v.submit(op, "arguments")
	for _, want := range []string{"pay_8812", "100.00", "planted-note", shorten(op.Fingerprint.String())} {
		v.wants(http.StatusOK, want)
	}
	v.submit(op, "approve", "reason", "as agreed")
	v.wants(http.StatusOK, "You approved it")
	v.wants(http.StatusOK, "Approved, not run yet")
	if got, want := d.lastMove(op.ID), `person:anna approved {"by":"anna","reason":"as agreed"}`; got != want {
		t.Errorf("the history ends with %s, want %s", got, want)
	}
	d.unchanged(other)
	if len(d.acted()) > 0 {
		t.Errorf("the provider was asked: %v", d.acted())
	}
	r := refund("notice", theArguments)
	r.Approval = "above"
	d.want(d.call(r), ledger.Succeeded)
	if diff := cmp.Diff([]string{theArguments}, d.acted()); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	v.get(of(op, ""))
	v.wants(http.StatusOK, "Succeeded")
	if v.form(of(op, "arguments")) != nil {
		t.Error("a final operation offers arguments that are erased")
	}
}

// Without having been shown the arguments, as they are, nobody approves.
func TestApproveUnseen(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op, other := d.planned("notice"), d.planned("other")
	anna, ada := d.as("anna"), d.as("ada")
	anna.get(of(op, ""))
	form := anna.form(of(op, "deny"))
	anna.get(of(other, ""))
	anna.submit(other, "arguments")
	otherShown := anna.form(of(other, "approve")).Get("shown")
	ada.get(of(op, ""))
	ada.submit(op, "arguments")
	adaShown := ada.form(of(op, "approve")).Get("shown")
	for name, shown := range map[string]string{"nothing": "", "made up": random(), "of another operation": otherShown, "by another person": adaShown} {
		form.Set("shown", shown)
		anna.send(of(op, "approve"), form)
		if anna.status != http.StatusBadRequest || !strings.Contains(anna.page, "Look at the arguments first") {
			t.Errorf("shown %s: %d", name, anna.status)
		}
		d.unchanged(op)
	}
}

// The same form, sent twice, decides once; it doesn't matter whether one after the other or
// both at once.
func TestDoubleSubmit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, want string
		bring      func(d *desk) ledger.Operation
		fields     []string
	}{
		{"approve", "You approved it", func(d *desk) ledger.Operation { return d.planned("a") }, nil},
		{"deny", "You denied it", func(d *desk) ledger.Operation { return d.planned("a") }, nil},
		{"resolve", "Your decision is recorded", func(d *desk) ledger.Operation { return d.inReview("a") }, []string{"what", "drop", "reason", "not on the statement"}},
		{"repeat", "One more action with this name is allowed", func(d *desk) ledger.Operation { return d.call(loosely("a", theArguments)) }, nil},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			op := c.bring(d)
			d.pass(time.Minute)
			v := d.as("anna")
			v.get(of(op, ""))
			if c.path == "approve" {
				v.submit(op, "arguments")
			}
			form := v.form(of(op, c.path))
			for i := 0; i+1 < len(c.fields); i += 2 {
				form.Set(c.fields[i], c.fields[i+1])
			}
			before := d.read(op.ID)
			var both sync.WaitGroup
			for range 4 {
				w := &visitor{desk: d, client: v.client}
				both.Go(func() {
					w.send(of(op, c.path), form)
					w.wants(http.StatusOK, c.want)
				})
			}
			both.Wait()
			v.send(of(op, c.path), form)
			v.wants(http.StatusOK, c.want)
			if after := d.read(op.ID); after.Moves != before.Moves+1 {
				t.Errorf("five forms made %d moves, want 1", after.Moves-before.Moves)
			}
		})
	}
}

// Who decides about what is no longer so decides nothing.
func TestStaleDecisions(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	anna, ada := d.as("anna"), d.as("ada")

	// Somebody else was first.
	denied := d.planned("denied")
	for _, v := range []*visitor{anna, ada} {
		v.get(of(denied, ""))
		v.submit(denied, "arguments")
	}
	ada.submit(denied, "deny")
	anna.submit(denied, "approve")
	anna.wants(http.StatusConflict, "Nothing was done")
	if got := d.read(denied.ID); got.Status != ledger.FailedFinal || !strings.HasPrefix(got.Last.Actor, "person:ada") {
		t.Errorf("it is %s by %s, want it denied by ada", got.Status, got.Last.Actor)
	}

	// The same person decided otherwise, in another window.
	twice := d.planned("twice")
	anna.get(of(twice, ""))
	anna.submit(twice, "arguments")
	deny := anna.form(of(twice, "deny"))
	anna.submit(twice, "approve")
	approved := d.read(twice.ID)
	anna.send(of(twice, "deny"), deny)
	anna.wants(http.StatusConflict, "It has moved since you looked")
	d.unchanged(approved)

	// It lapsed, and came back with other arguments.
	other := d.planned("other")
	anna.get(of(other, ""))
	anna.submit(other, "arguments")
	form := anna.form(of(other, "approve"))
	ada.get(of(other, ""))
	ada.submit(other, "deny")
	replanned := d.plannedAs("other", `{"payment_id":"pay_8812","amount":"900.00","currency":"USD"}`)
	if replanned.ID != other.ID {
		t.Fatalf("it came back as another operation")
	}
	anna.send(of(other, "approve"), form)
	anna.wants(http.StatusConflict, "It has moved since you looked")
	d.unchanged(replanned)
	form.Set("moves", fmt.Sprint(replanned.Moves)) // only the number is right
	anna.send(of(other, "approve"), form)
	anna.wants(http.StatusConflict, "It has moved since you looked")
	form.Set("fingerprint", replanned.Fingerprint.String()) // and what was shown isn't
	anna.send(of(other, "approve"), form)
	anna.wants(http.StatusBadRequest, "Look at the arguments first")
	d.unchanged(replanned)

	// Another attempt was made since.
	open := d.inReview("open")
	anna.get(of(open, ""))
	stale := anna.form(of(open, "resolve"))
	stale.Set("what", "drop")
	stale.Set("reason", "not on the statement")
	d.pass(time.Minute)
	ada.get(of(open, ""))
	ada.submit(open, "resolve", "what", "retry", "reason", "not on the statement")
	ada.wants(http.StatusOK, "Your decision is recorded")
	d.lose(true)
	if _, err := d.ledger.Reconcile(t.Context(), open.ID); err != nil {
		t.Fatal(err)
	}
	before := d.read(open.ID)
	if before.Attempts != 2 {
		t.Fatalf("it has %d attempts, want 2", before.Attempts)
	}
	anna.send(of(open, "resolve"), stale)
	anna.wants(http.StatusConflict, "It has moved since you looked")
	d.unchanged(before)
}

// racing lets something happen between the console's look and the ledger's.
type racing struct {
	Ledger
	before func()
}

func (r *racing) Approve(ctx context.Context, name string, who ledger.Person) (ledger.Operation, error) {
	r.before()
	return r.Ledger.Approve(ctx, name, who)
}

// Not even between the look and the decision does anything come.
func TestStaleAtTheLastMoment(t *testing.T) {
	t.Parallel()
	race := &racing{}
	d := newDesk(t, func(o *Options) { race.Ledger = o.Ledger; o.Ledger = race })
	op := d.planned("notice")
	race.before = func() {
		if _, err := d.ledger.Deny(t.Context(), op.ID, ledger.Person{By: "ada"}); err != nil {
			t.Error(err)
		}
		d.plannedAs("notice", `{"amount":"900.00"}`)
	}
	v := d.as("anna")
	v.get(of(op, ""))
	v.submit(op, "arguments")
	v.submit(op, "approve")
	v.wants(http.StatusConflict, "Nothing was done")
	if now := d.read(op.ID); now.Approval.State != ledger.Waiting {
		t.Errorf("the approval is %q, want it to wait: it was given to other arguments", now.Approval.State)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields []string
		status int
		says   string
		want   ledger.Status
		note   string
	}{
		"happened": {[]string{"what", "happened", "provider_operation_id", " re_7 ", "reason", "seen in the list"}, 200, "Your decision is recorded", ledger.Succeeded,
			`person:otto resolved_happened {"by":"otto","provider_operation_id":"re_7","reason":"seen in the list"}`},
		"dropped": {[]string{"what", "drop", "reason", "not there"}, 200, "Your decision is recorded", ledger.FailedFinal,
			`person:otto resolved_dropped {"by":"otto","reason":"not there"}`},
		"again": {[]string{"what", "retry", "reason", "not there", "provider_operation_id", "re_7"}, 200, "Your decision is recorded", ledger.Unknown,
			`person:otto resolved_retry {"by":"otto","reason":"not there"}`},
		"without a reason":      {[]string{"what", "drop", "reason", "  "}, 400, "say how you know", "", ""},
		"without an id":         {[]string{"what", "happened", "reason", "seen"}, 400, "say under which id", "", ""},
		"nothing found out":     {[]string{"reason", "seen"}, 400, "say what you found out", "", ""},
		"something else":        {[]string{"what", "explode", "reason", "seen"}, 409, "a resolution is happened, drop or retry", "", ""},
		"two lines":             {[]string{"what", "drop", "reason", "a\nb"}, 400, "the reason is one line", "", ""},
		"a whole story":         {[]string{"what", "drop", "reason", strings.Repeat("x", 401)}, 400, "the reason is one line", "", ""},
		"in another's name":     {[]string{"what", "drop", "reason", "not there", "by", "anna", "actor", "person:anna"}, 200, "recorded", ledger.FailedFinal, `person:otto resolved_dropped {"by":"otto","reason":"not there"}`},
		"about another attempt": {[]string{"what", "drop", "reason", "x", "moves", "1"}, 409, "It has moved since you looked", "", ""},
		"no moves":              {[]string{"what", "drop", "reason", "x", "moves", "0"}, 400, "The form was incomplete", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			op := d.inReview("lost")
			d.pass(time.Minute)
			v := d.as("otto")
			v.get("/console/")
			v.wants(http.StatusOK, op.ID)
			v.get(of(op, ""))
			for _, known := range []string{op.ProviderKey, "A person has to find out", "timeout", "Amount and recipient are sealed. An approver can have them shown."} {
				v.wants(http.StatusOK, known)
			}
			v.submit(op, "resolve", c.fields...)
			v.wants(c.status, c.says)
			if c.want == "" {
				d.unchanged(op)
				return
			}
			if now := d.read(op.ID); now.Status != c.want || now.Review.Open() {
				t.Errorf("it is %s, its review open: %v; want %s", now.Status, now.Review.Open(), c.want)
			}
			if got := d.lastMove(op.ID); got != c.note {
				t.Errorf("the history ends with\n%s, want\n%s", got, c.note)
			}
		})
	}
}

// A "no" comes too early while the request may still run.
func TestResolveTooEarly(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op := d.inReview("lost")
	v := d.as("otto")
	v.get(of(op, ""))
	v.submit(op, "resolve", "what", "drop", "reason", "not there yet")
	v.wants(http.StatusConflict, "a request may still be running at the provider")
	v.wants(http.StatusConflict, `value="not there yet"`)
	d.unchanged(op)
}

func TestAllowRepeat(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{false, true} {
		d := newDesk(t, nil)
		op := d.want(d.call(loosely("loose", theArguments)), ledger.Succeeded)
		v := d.as("anna")
		v.get(of(op, ""))
		if same {
			v.submit(op, "repeat", "same_content", "yes", "reason", "asked for twice")
		} else {
			v.submit(op, "repeat")
		}
		v.wants(http.StatusOK, "One more action with this name is allowed")
		want := ledger.Repeat{Until: monday.Add(15 * time.Minute), SameContent: same}
		if diff := cmp.Diff(want, d.read(op.ID).Repeat); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Only what its own arguments name can be repeated by a person's leave, and a planned
// operation isn't let go by it.
func TestAllowRepeatRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	v := d.as("anna")
	for _, op := range []ledger.Operation{d.done("strict"), d.planned("waits")} {
		v.get(of(op, ""))
		if v.form(of(op, "repeat")) != nil {
			t.Errorf("%s: a repeat is offered", op.Status)
		}
		v.send(of(op, "repeat"), url.Values{"csrf": {sessionOf(d, "anna").csrf()}, "moves": {fmt.Sprint(op.Moves)}, "fingerprint": {op.Fingerprint.String()}})
		v.wants(http.StatusConflict, "Nothing was done")
		d.unchanged(op)
	}
}

// What was opened while the operation moved may belong to another state of it.
func TestArgumentsThatMove(t *testing.T) {
	t.Parallel()
	var d *desk
	d = newDesk(t, func(o *Options) {
		unseal := o.Unseal
		o.Unseal = func(ctx context.Context, op ledger.Operation) (json.RawMessage, error) {
			if _, err := d.ledger.Deny(ctx, op.ID, ledger.Person{By: "ada"}); err != nil {
				t.Error(err)
			}
			d.plannedAs("notice", `{"amount":"900.00"}`)
			return unseal(ctx, op)
		}
	})
	op := d.planned("notice")
	v := d.as("anna")
	v.get(of(op, ""))
	v.submit(op, "arguments")
	v.wants(http.StatusConflict, "It moved just now")
	if strings.Contains(v.page, "900.00") || v.form(of(op, "approve")) != nil {
		t.Error("other arguments are shown, or can be approved")
	}
}

// Arguments that can't be shown are approved by nobody.
func TestUnreadableArguments(t *testing.T) {
	t.Parallel()
	for name, unseal := range map[string]func(context.Context, ledger.Operation) (json.RawMessage, error){
		"lost key": func(context.Context, ledger.Operation) (json.RawMessage, error) { return nil, ledger.ErrSealed },
		"erased":   func(context.Context, ledger.Operation) (json.RawMessage, error) { return nil, nil },
	} {
		d := newDesk(t, func(o *Options) { o.Unseal = unseal })
		op := d.planned(name)
		v := d.as("anna")
		v.get(of(op, ""))
		v.submit(op, "arguments")
		if v.status != http.StatusConflict || v.form(of(op, "approve")) != nil {
			t.Errorf("%s: got %d, and a form to approve: %v", name, v.status, v.form(of(op, "approve")) != nil)
		}
	}
}
