package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

var (
	proving = providers.Traits{Deadline: 20 * time.Second, Lease: 40 * time.Second, Key: providers.KeyInHeader, Lookup: providers.LookupByKey}
	blind   = providers.Traits{Deadline: 20 * time.Second, Lease: 40 * time.Second}
)

// read decodes a tool as the configuration does.
func read(t *testing.T, text string) Tool {
	t.Helper()
	var tool Tool
	if err := yaml.UnmarshalWithOptions([]byte(text), &tool, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tool
}

func compiled(t *testing.T, action, text string, traits providers.Traits) *Policy {
	t.Helper()
	p, err := Compile(action, read(t, text), traits, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// TestUnverifiable: what can't be shown afterwards is never done without a person, unless the user
// has said that this is meant.
func TestUnverifiable(t *testing.T) {
	t.Parallel()
	mail := providers.Email{To: []string{"a@example.com"}}
	for text, want := range map[string]string{
		"":                              ReasonUnverifiable,
		"limits: {per_day: {count: 5}}": ReasonUnverifiable,
		"accept_unverifiable: false":    ReasonUnverifiable,
		"approval: always":              ReasonAlways,
		"{approval: always, accept_unverifiable: true}":                              ReasonAlways,
		"accept_unverifiable: true":                                                  "",
		"{approval: never, accept_unverifiable: true}":                               "",
		"{approval: {recipients_outside: [example.com]}, accept_unverifiable: true}": "",
		"approval: never": "refused",
		"approval: {recipients_outside: [example.com]}": "refused",
	} {
		p, err := Compile(providers.EmailSend, read(t, text), blind, nil)
		got := "refused"
		if err == nil {
			got = p.NeedsApproval(mail)
		} else if bad, ok := errors.AsType[*Error](err); !ok || bad.Path != "approval" || !strings.Contains(bad.Problem, "accept_unverifiable: true") {
			t.Errorf("%q: refused with %v, want approval and what to write", text, err)
		}
		if got != want {
			t.Errorf("%q: needs %q, want %q", text, got, want)
		}
	}
	for name, traits := range map[string]providers.Traits{
		"a key":     {Key: providers.KeyInHeader, Deadline: 1, Lease: 2},
		"a look-up": {Lookup: providers.LookupByMailbox, Deadline: 1, Lease: 2},
	} {
		if got := compiled(t, providers.EmailSend, "", traits).NeedsApproval(mail); got != "" {
			t.Errorf("with %s it needs %q", name, got)
		}
	}
}

// TestNeedsApproval: at the amount nobody is asked, a minor unit above it somebody is; another
// currency is no way around it, and neither are bcc and subdomains.
func TestNeedsApproval(t *testing.T) {
	t.Parallel()
	refund := func(minor int64, code string) providers.Arguments {
		return providers.Refund{PaymentID: "pay_1", Amount: providers.Money{Minor: minor, Currency: code}}
	}
	above := `approval: {above: {USD: "100.00", JPY: "5000"}}`
	outside := "approval: {recipients_outside: [Example.com, xn--bcher-kva.example]}"
	for _, tc := range []struct {
		policy string
		args   providers.Arguments
		want   string
	}{
		{above, refund(10000, "USD"), ""},
		{above, refund(10001, "USD"), ReasonAbove},
		{above, refund(5000, "JPY"), ""},
		{above, refund(5001, "JPY"), ReasonAbove},
		{above, refund(1, "EUR"), ReasonAbove},
		{above, providers.PaymentOrder{Amount: providers.Money{Minor: 10001, Currency: "USD"}}, ReasonAbove},
		{above, providers.Email{}, ReasonAbove}, // not what the rule is about
		{"approval: always", refund(1, "USD"), ReasonAlways},
		{"approval: never", refund(1<<60, "USD"), ""},
		{"", refund(1<<60, "USD"), ""},
		{outside, providers.Email{To: []string{"a@example.com", "b@xn--bcher-kva.example"}}, ""},
		{outside, providers.Email{To: []string{"a@example.com"}, Cc: []string{"b@example.org"}}, ReasonRecipients},
		{outside, providers.Email{To: []string{"a@example.com"}, Bcc: []string{"b@example.org"}}, ReasonRecipients},
		{outside, providers.Email{To: []string{"a@mail.example.com"}}, ReasonRecipients},
		{outside, providers.Email{To: []string{"a@notexample.com"}}, ReasonRecipients},
		{outside, providers.Email{To: []string{"a@example.com."}}, ReasonRecipients},
		{outside, providers.Email{To: []string{`"a@example.com"@example.org`}}, ReasonRecipients},
		{outside, providers.Email{To: []string{`"a@b"@example.com`}}, ""},
		{outside, providers.Email{To: []string{"example.com"}}, ReasonRecipients},
		{outside, refund(1, "USD"), ReasonRecipients}, // not what the rule is about
	} {
		action := providers.RefundCreate
		if tc.policy == outside {
			action = providers.EmailSend
		}
		if got := compiled(t, action, tc.policy, proving).NeedsApproval(tc.args); got != tc.want {
			t.Errorf("%s of %+v: %q, want %q", tc.policy, tc.args, got, tc.want)
		}
	}
}

// TestUnruled: what the configuration doesn't name is neither asked about nor limited.
func TestUnruled(t *testing.T) {
	t.Parallel()
	p := Unruled(providers.RefundCreate, blind)
	if diff := cmp.Diff(ledger.Rules{}, p.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if need := p.NeedsApproval(providers.Refund{}); need != "" || p.LookAlikes() || p.Elicit || p.Retention != 0 {
		t.Errorf("needs %q, look-alikes %v, elicit %v, retention %v", need, p.LookAlikes(), p.Elicit, p.Retention)
	}
	promise := ledger.Promise{Deadline: time.Second, Lease: time.Minute, Settle: time.Hour}
	if diff := cmp.Diff(promise, p.Promise(promise)); diff != "" {
		t.Errorf("promise (-want +got):\n%s", diff)
	}
}

// TestRules: all that the ledger decides by, from all that can be written.
func TestRules(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	twenty := ledger.Limit{Scope: ledger.PerRun, Max: 20, Text: "20"}
	for text, want := range map[string]ledger.Rules{
		"": {Limits: []ledger.Limit{twenty}, SecondIntent: ledger.SecondIntentWarn},
		"{approval_expires: 2h, run_on_approval: true, second_intent: approve, second_intent_within: 1h, answer_within: 40s, retry_for: 30m}": {
			Limits: []ledger.Limit{twenty}, SecondIntent: ledger.SecondIntentApprove, AlikeWithin: time.Hour, ApprovalFor: 2 * time.Hour,
			RunOnApproval: true, RetryFor: 30 * time.Minute, AnswerWithin: 40 * time.Second,
		},
		`{second_intent: "off", limits: {per_run: {amount: {USD: "7.5"}}, per_tenant: {count: 9}, per_day: {count: 10, amount: {KWD: "1.234", JPY: "1000"}}}}`: {
			Limits: []ledger.Limit{
				twenty,
				{Scope: ledger.PerRun, Currency: "USD", Max: 750, Text: "7.50 USD"},
				{Scope: ledger.PerTenant, Max: 9, Text: "9"},
				{Scope: ledger.PerDay, Max: 10, Text: "10"},
				{Scope: ledger.PerDay, Currency: "JPY", Max: 1000, Text: "1000 JPY"},
				{Scope: ledger.PerDay, Currency: "KWD", Max: 1234, Text: "1.234 KWD"},
			},
		},
		"{second_intent: warn, limits: {per_run: {count: 3}, per_workflow: {count: 2}}}": {
			Limits:       []ledger.Limit{{Scope: ledger.PerRun, Max: 3, Text: "3"}, {Scope: ledger.PerWorkflow, Max: 2, Text: "2"}},
			SecondIntent: ledger.SecondIntentWarn,
		},
	} {
		p, err := Compile(providers.RefundCreate, read(t, text), proving, berlin)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want.Zone = berlin
		if diff := cmp.Diff(want, p.Rules, cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if p.LookAlikes() != (want.SecondIntent != "") {
			t.Errorf("%s: look-alikes %v", text, p.LookAlikes())
		}
	}
}

// TestPromise: an attempt is over before its worker is given up, whoever says how long it may take.
func TestPromise(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text            string
		deadline, lease time.Duration
	}{
		{"", 20 * time.Second, 40 * time.Second},
		{"deadline: 39s", 39 * time.Second, 40 * time.Second},
		{"lease: 21s", 20 * time.Second, 21 * time.Second},
		{"{deadline: 60s, lease: 2m}", time.Minute, 2 * time.Minute},
	} {
		got := compiled(t, providers.RefundCreate, tc.text, proving).Promise(proving.Promise())
		want := proving.Promise()
		want.Deadline, want.Lease = tc.deadline, tc.lease
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.text, diff)
		}
	}
}
