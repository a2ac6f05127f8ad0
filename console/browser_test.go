package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"

	"github.com/onceward/onceward/ledger"
)

// A browser is a real Chromium, and what looks at every page that it shows.
type browser struct {
	*desk
	tab      context.Context
	axe      string
	pictures string
	shots    int
}

// newBrowser needs ONCEWARD_TEST_CHROMIUM, a Chromium, and ONCEWARD_TEST_AXE, axe-core's
// axe.min.js. Pictures are kept in ONCEWARD_ARTIFACTS if that is set.
func newBrowser(t *testing.T, d *desk) *browser {
	t.Helper()
	b := &browser{desk: d, pictures: os.Getenv("ONCEWARD_ARTIFACTS")}
	if b.pictures == "" {
		b.pictures = t.TempDir()
	}
	axe, err := os.ReadFile(os.Getenv("ONCEWARD_TEST_AXE"))
	if err != nil {
		t.Fatal(err)
	}
	b.axe = string(axe)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(os.Getenv("ONCEWARD_TEST_CHROMIUM")), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(time.Minute))...)
	t.Cleanup(stop)
	tab, leave := chromedp.NewContext(allocator)
	t.Cleanup(leave)
	// What the policy forbids, or a page lacks, stands in the browser's own log.
	if err := chromedp.Listen(tab, func(event any) {
		if e, ok := event.(*log.EventEntryAdded); ok && e.Entry.Level == "error" && !strings.Contains(e.Entry.Text, "status of 4") {
			t.Errorf("the browser complains: %s %s", e.Entry.Text, e.Entry.URL)
		}
	}); err != nil {
		t.Fatalf("the browser doesn't start: %v", err)
	}
	var timeout context.CancelFunc
	b.tab, timeout = context.WithTimeout(tab, 4*time.Minute)
	t.Cleanup(timeout)
	call(b, log.Enable, cdp.Empty{})
	return b
}

// call has the browser do something that has no action.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.Helper()
	if _, err := chromedp.Call(b.tab, command, params); err != nil {
		b.Fatalf("the browser: %v", err)
	}
}

// ask has the browser tell something.
func ask[T any](b *browser, action chromedp.Action[T]) T {
	b.Helper()
	told, err := chromedp.Run(b.tab, action)
	if err != nil {
		b.Fatalf("the browser: %v", err)
	}
	return told
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.tab, actions...); err != nil {
		b.Fatalf("the browser: %v", err)
	}
}

func (b *browser) open(path string) { b.Helper(); b.run(chromedp.Navigate(b.server.URL + path)) }

// follow does something that leads to another page, and waits for it.
func (b *browser) follow(does chromedp.Action[chromedp.Void]) {
	b.Helper()
	answer, err := chromedp.RunResponse(b.tab, does)
	if err != nil {
		b.Fatalf("the browser: %v", err)
	}
	if answer.Status != http.StatusOK {
		b.Errorf("%s: %d", answer.URL, answer.Status)
	}
}

// press presses the button with a text.
func (b *browser) press(text string) {
	b.Helper()
	b.follow(chromedp.Click(chromedp.Search(`//main//button[starts-with(normalize-space(.), "` + text + `")]`)))
}

// sees demands a text on the page.
func (b *browser) sees(text string) {
	b.Helper()
	body := ask(b, chromedp.Text(chromedp.CSS("body")))
	if !strings.Contains(body, text) {
		b.Errorf("the page doesn't say %q:\n%s", text, body)
	}
}

var looks = []struct {
	name   string
	width  int64
	height int64
	scheme string
}{
	{"desktop-light", 1280, 900, "light"}, {"desktop-dark", 1280, 900, "dark"},
	{"phone-light", 390, 844, "light"}, {"phone-dark", 390, 844, "dark"},
}

// A violation is what axe-core finds fault with.
type violation struct {
	ID    string
	Help  string
	Nodes []struct {
		HTML           string
		FailureSummary string
	}
}

// look takes pictures of the page as people see it, and has it checked: axe-core comes in
// by the devtools, past the page's policy, which stays on.
func (b *browser) look(name string) {
	b.Helper()
	b.shots++
	for _, l := range looks {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 600})
		wide := ask(b, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > window.innerWidth`))
		picture := ask(b, chromedp.FullScreenshot(100))
		b.run(chromedp.Evaluate[chromedp.Void](`typeof axe === "object" || (()=>{` + b.axe + `})()`))
		found := ask(b, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`, chromedp.EvalAwaitPromise))
		if wide {
			b.Errorf("%s, %s: the page is wider than the window", name, l.name)
		}
		var violations []violation
		if err := json.Unmarshal([]byte(found), &violations); err != nil {
			b.Fatal(err)
		}
		for _, v := range violations {
			for _, n := range v.Nodes {
				b.Errorf("%s, %s: %s: %s\n%s\n%s", name, l.name, v.ID, v.Help, n.HTML, n.FailureSummary)
			}
		}
		path := filepath.Join(b.pictures, fmt.Sprintf("console-%02d-%s-%s.png", b.shots, name, l.name))
		if err := os.WriteFile(path, picture, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// TestBrowser is a person's day at the console.
func TestBrowser(t *testing.T) {
	if os.Getenv("ONCEWARD_TEST_CHROMIUM") == "" || os.Getenv("ONCEWARD_TEST_AXE") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("ONCEWARD_TEST_CHROMIUM and ONCEWARD_TEST_AXE must be set where CI is true")
		}
		t.Skip("ONCEWARD_TEST_CHROMIUM and ONCEWARD_TEST_AXE name no browser and no axe.min.js")
	}
	d := newDesk(t, func(o *Options) { o.Limits = someLimits })
	b := newBrowser(t, d)
	toApprove, toDeny, toResolve, toRepeat := d.someDay()

	b.open("/console/operations/" + toApprove.ID)
	b.sees("Log in")
	b.look("login")
	b.run(chromedp.SendKeys(chromedp.CSS("#credential"), "owc_wrong"), chromedp.Submit(chromedp.CSS("#credential")), chromedp.WaitVisible(chromedp.CSS(`[role=alert]`)))
	b.sees("not known here")
	b.look("login-refused")
	b.run(chromedp.SendKeys(chromedp.CSS("#credential"), d.owc["anna"]))
	b.follow(chromedp.Submit(chromedp.CSS("#credential")))
	b.sees("It waits for an approval") // where the link led
	b.open("/console/")
	b.look("now")

	b.open("/console/operations")
	b.look("operations")
	b.run(chromedp.SetValue(chromedp.CSS("#status"), "planned"), chromedp.SetValue(chromedp.CSS("#workflow"), "case-1842"))
	b.press("Search")
	b.sees("Operations that match")
	b.look("filtered")

	b.follow(chromedp.Click(chromedp.CSS(`a[href$="` + toApprove.ID + `"]`)))
	b.look("approval")
	b.press("Show what will be sent")
	b.sees("pay_8812")
	b.look("arguments")
	b.run(chromedp.SendKeys(chromedp.CSS("#approve-reason"), "as agreed with the customer"))
	b.press("Approve fingerprint")
	b.sees("You approved it")
	b.look("approved")

	b.open("/console/operations/" + toDeny.ID)
	b.run(chromedp.SendKeys(chromedp.CSS("#deny-reason"), "not our customer"))
	b.press("Deny")
	b.sees("You denied it")

	b.open("/console/operations/" + toResolve.ID)
	b.sees("A person has to find out")
	b.look("review")
	b.run(chromedp.Click(chromedp.CSS("#happened")), chromedp.SendKeys(chromedp.CSS("#resolve-reason"), "seen in the provider's list"), chromedp.Submit(chromedp.CSS("#resolve-reason")),
		chromedp.WaitVisible(chromedp.CSS(`.alert.is-problem`)))
	b.sees("say under which id")
	b.look("review-refused")
	b.run(chromedp.SendKeys(chromedp.CSS("#provider-id"), "re_7"))
	b.press("Record the decision")
	b.sees("Your decision is recorded")
	b.look("resolved")

	b.open("/console/operations/" + toRepeat.ID)
	b.run(chromedp.Click(chromedp.CSS("#same-content")))
	b.press("Allow one more")
	b.sees("One more action with this name is allowed")
	b.look("repeat")

	b.open("/console/limits")
	b.look("limits")
	b.open("/console/outcomes")
	b.look("outcomes")
	b.open("/console/operations/op_nobody")
	b.look("missing")
	b.follow(chromedp.Click(chromedp.Search(`//button[text()="Log out"]`)))
	b.sees("Log in")
	b.open("/console/enter?ticket=" + d.console.Ticket(Person{"anna", Approver}))
	b.look("enter")
	b.press("Open the console")
	b.sees("What needs me now")

	for op, want := range map[string]string{toApprove.ID: "planned person:anna approved", toDeny.ID: "failed_final person:anna denied",
		toResolve.ID: "succeeded person:anna resolved_happened", toRepeat.ID: "succeeded person:anna repeat_allowed"} {
		now := d.read(op)
		if got := fmt.Sprintf("%s %s %s", now.Status, now.Last.Actor, now.Last.Reason); got != want {
			t.Errorf("it ends as %q, want %q", got, want)
		}
	}
	if now := d.read(toResolve.ID); now.ProviderOperationID != "re_7" {
		t.Errorf("the provider's id is %q", now.ProviderOperationID)
	}
}

// someDay makes what a day brings.
func (d *desk) someDay() (toApprove, toDeny, toResolve, toRepeat ledger.Operation) {
	d.Helper()
	for i := range 60 {
		r := refund(fmt.Sprintf("notify_customer_%d", i+1), `{"to":["customer@example.com"],"subject":"Your refund"}`)
		r.Action, r.Intent.WorkflowID, r.Intent.BusinessObject = "email.send", fmt.Sprintf("case-%d", 1700+i/4), fmt.Sprintf("application-%d", 700+i)
		d.call(r)
		d.pass(time.Duration(5+i%17*3) * time.Minute)
		if i%20 == 7 {
			denied := d.planned(fmt.Sprintf("refund_%d", i))
			if _, err := d.ledger.Deny(d.Context(), denied.ID, ledger.Person{By: "ada"}); err != nil {
				d.Fatal(err)
			}
		}
	}
	toRepeat = d.call(loosely("loose", theArguments))
	toResolve = d.inReview("refund_customer")
	d.pass(26 * time.Minute)
	toApprove = d.plannedAs("refund_deposit", `{"payment_id":"pay_8812","amount":"1250.00","currency":"USD","reason":"requested_by_customer","note":"The deposit, less the fee.\nAgreed by telephone."}`)
	toDeny = d.plannedAs("refund_second", `{"payment_id":"pay_8813","amount":"900.00","currency":"USD"}`)
	d.pass(9 * time.Minute)
	d.alarms.Note(ledger.Alarm{Kind: "operation_conflict", OperationID: toApprove.ID, Action: "refund", At: d.now().Add(-4 * time.Minute)})
	return toApprove, toDeny, toResolve, toRepeat
}

func someLimits(context.Context) ([]Limit, error) {
	return []Limit{
		{Name: "per day", Action: "refund", Used: 425_000, Bound: 500_000, Currency: "USD", Digits: 2, FreesAt: monday.Add(24 * time.Hour)},
		{Name: "per run run-77", Action: "email.send", Used: 20, Bound: 20},
		{Name: "per workflow case-1842", Action: "refund", Used: 1, Bound: 5},
	}, nil
}
