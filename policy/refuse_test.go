package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/providers"
)

// TestRefused: what can't be meant is refused, where it stands, with what to write instead.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ action, text, path, want string }{
		{providers.RefundCreate, "limits: {per_run: {count: 0}}", "limits.per_run.count", "at least 1"},
		{providers.RefundCreate, "limits: {per_day: {count: -3}}", "limits.per_day.count", "at least 1"},
		{providers.RefundCreate, "limits: {per_workflow: {}}", "limits.per_workflow", "write count, amount"},
		{providers.RefundCreate, "limits: {per_day: {amount: {}}}", "limits.per_day.amount", "per currency"},
		{providers.RefundCreate, `limits: {per_day: {amount: {USD: "-5.00"}}}`, "limits.per_day.amount.USD", "without sign"},
		{providers.RefundCreate, `limits: {per_day: {amount: {USD: "0"}}}`, "limits.per_day.amount.USD", "more than zero"},
		{providers.RefundCreate, `limits: {per_day: {amount: {USD: "1.005"}}}`, "limits.per_day.amount.USD", "more digits"},
		{providers.RefundCreate, `limits: {per_day: {amount: {JPY: "1.5"}}}`, "limits.per_day.amount.JPY", "more digits"},
		{providers.RefundCreate, `limits: {per_day: {amount: {XXQ: "1"}}}`, "limits.per_day.amount.XXQ", "no such currency"},
		{providers.RefundCreate, `limits: {per_day: {amount: {usd: "1"}}}`, "limits.per_day.amount.usd", "capitals"},
		{providers.RefundCreate, `limits: {per_day: {amount: {USD: "1e3"}}}`, "limits.per_day.amount.USD", "without sign, exponent"},
		{providers.EmailSend, `limits: {per_day: {amount: {USD: "1"}}}`, "limits.per_day.amount", "moves no money"},
		{providers.RefundCreate, "limits: {per_tenant: {count: 6}, per_day: {count: 5}}", "limits.per_tenant.count", "never reached: limits.per_day.count allows 5"},
		{providers.RefundCreate, `limits: {per_tenant: {amount: {USD: "5"}}, per_day: {amount: {USD: "5"}}}`, "limits.per_tenant.amount.USD", "allows 5.00 USD"},

		{providers.EmailSend, `approval: {above: {USD: "1"}}`, "approval.above", "moves no money"},
		{providers.EmailSend, "approval: {recipients_outside: [example.com], above: {USD: '1'}}", "approval.above", "moves no money"},
		{providers.RefundCreate, "approval: {recipients_outside: [example.com]}", "approval.recipients_outside", "only email.send"},
		{providers.RefundCreate, "approval: {}", "approval", "no condition"},
		{providers.RefundCreate, "approval: {above: {}}", "approval.above", "approval: always"},
		{providers.RefundCreate, `approval: {above: {EUR: "1", USD: "1.001"}}`, "approval.above.USD", "more digits"},
		{providers.RefundCreate, `approval: {above: {XYZ: "1"}}`, "approval.above.XYZ", "no such currency"},
		{providers.EmailSend, "approval: {recipients_outside: []}", "approval.recipients_outside", "approval: always"},
		{providers.EmailSend, "approval: {recipients_outside: [example.com, '*.example.org']}", "approval.recipients_outside[1]", "isn't a domain"},
		{providers.EmailSend, "approval: {recipients_outside: ['@example.com']}", "approval.recipients_outside[0]", "isn't a domain"},
		{providers.EmailSend, "approval: {recipients_outside: [bücher.example]}", "approval.recipients_outside[0]", "xn--"},
		{providers.EmailSend, "approval: {recipients_outside: [example.com, EXAMPLE.com]}", "approval.recipients_outside[1]", "twice"},

		{providers.RefundCreate, "elicit: true", "elicit", "moves money"},
		{providers.PaymentOrderCreate, "{elicit: true, approval: always}", "elicit", "moves money"},
		{providers.RefundCreate, "second_intent: deny", "second_intent", "approve, warn or off"},
		{providers.RefundCreate, `{second_intent: "off", second_intent_within: 1h}`, "second_intent_within", "remove one"},
		{providers.RefundCreate, "{deadline: 30s, lease: 30s}", "lease", "write 31s or more"},
		{providers.RefundCreate, "{deadline: 30s, lease: 30999ms}", "lease", "write 31s or more"},
		{providers.RefundCreate, "lease: 20s", "lease", "the deadline (20s)"},
		{providers.RefundCreate, "deadline: 39001ms", "deadline", "the provider's lease is 40s"},
	} {
		p, err := Compile(tc.action, read(t, tc.text), proving, nil)
		bad, ok := errors.AsType[*Error](err)
		if !ok || p != nil {
			t.Errorf("%s of %s: %v, want a refusal", tc.text, tc.action, err)
			continue
		}
		if bad.Path != tc.path || !strings.Contains(bad.Problem, tc.want) {
			t.Errorf("%s: refused with %q, want %s: ...%s...", tc.text, err, tc.path, tc.want)
		}
	}
}

// TestUnreadable: what would be read as something else than is written isn't read at all.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	money := `write it in quotes, "100.00"`
	duration := "a number and its unit"
	for text, want := range map[string]struct {
		line    int
		message string
	}{
		"approval:\n  above:\n    USD: 100.00":                {3, money},
		"limits:\n  per_day:\n    amount: {USD: 100.00}":      {3, money},
		"limits:\n  per_day:\n    amount:\n      USD: [1]":    {4, "is a string such as"},
		"limits:\n  per_day:\n    count: 1.5":                 {3, "whole number"},
		"limits:\n  per_day:\n    count: '5'":                 {3, "whole number"},
		"limits:\n  per_day:\n    count: 1e2":                 {3, "whole number"},
		"limits:\n  per_day:\n    count: 010":                 {3, "whole number"},
		"limits:\n  per_day:\n    count: 1_000":               {3, "whole number"},
		"limits:\n  per_day:\n    count: 9223372036854775808": {3, "whole number"},
		"limits:\n  per_hour: {count: 1}":                     {2, `unknown field "per_hour"`},
		"approval:\n  always: true":                           {2, `unknown field "always"`},
		"approval:\n  above: {USD: '1'}\n  abve: {USD: '1'}":  {3, `unknown field "abve"`},
		"approval:\n  above:\n    USD: '1'\n    USD: '2'":     {4, `key "USD" already defined`},
		"elicit: true\napproval: {mode: never}":               {2, `unknown field "mode"`},
		"elicit: true\napproval: {conditional: true}":         {2, `unknown field "conditional"`},
		"approval: off":                     {1, "never, always, or conditions"},
		"approval: true":                    {1, "never, always, or conditions"},
		"approval: [never, always]":         {1, "never, always, or conditions"},
		"elicit: true\nlease: 40":           {2, duration},
		"elicit: true\nlease: 1d":           {2, duration},
		"elicit: true\nretention: 0s":       {2, "longer than nothing"},
		"elicit: true\nretry_for: -1h":      {2, "longer than nothing"},
		"elicit: true\napproval_expire: 1h": {2, `unknown field "approval_expire"`},
	} {
		var tool Tool
		err := yaml.UnmarshalWithOptions([]byte(text), &tool, yaml.Strict())
		bad, ok := errors.AsType[yaml.Error](err)
		if !ok {
			t.Errorf("%q: %v, want an error with a line", text, err)
			continue
		}
		if line := bad.GetToken().Position.Line; line != want.line || !strings.Contains(bad.GetMessage(), want.message) {
			t.Errorf("%q: line %d, %q; want line %d, ...%s...", text, line, bad.GetMessage(), want.line, want.message)
		}
	}
}

// TestWarnings: what is allowed and worth a second thought.
func TestWarnings(t *testing.T) {
	t.Parallel()
	rubles := proving
	rubles.Currencies = []string{"RUB"}
	for _, tc := range []struct {
		action, text string
		traits       providers.Traits
		want         []string
	}{
		{providers.EmailSend, "", proving, nil},
		{providers.RefundCreate, "", proving, []string{"approval", "limits"}},
		{providers.RefundCreate, "approval: always", proving, []string{"limits"}},
		{providers.RefundCreate, `limits: {per_day: {amount: {USD: "1"}}}`, proving, []string{"approval"}},
		{providers.RefundCreate, `{approval: always, limits: {per_day: {amount: {USD: "1"}}}}`, proving, nil},
		{providers.RefundCreate, `{approval: {above: {USD: "1"}}, limits: {per_day: {amount: {USD: "2"}}}}`, proving, nil},
		{providers.RefundCreate, `{approval: {above: {USD: "1", EUR: "1"}}, limits: {per_day: {amount: {USD: "2"}}}}`, proving, nil},
		{providers.RefundCreate, `{approval: always, limits: {per_day: {amount: {RUB: "1"}}}}`, rubles, nil},
		{providers.RefundCreate, `{approval: {above: {RUB: "5"}}, limits: {per_run: {amount: {RUB: "5"}}}}`, rubles, []string{"approval.above.RUB"}},
		{providers.RefundCreate, `{approval: {above: {RUB: "5"}}, limits: {per_run: {amount: {RUB: "5.01"}}}}`, rubles, nil},
		{providers.EmailSend, "accept_unverifiable: true", proving, []string{"accept_unverifiable"}},
		{providers.EmailSend, "accept_unverifiable: true", blind, []string{"accept_unverifiable"}},
		{providers.EmailSend, "", blind, nil},
	} {
		var got []string
		for _, w := range compiled(t, tc.action, tc.text, tc.traits).Warnings() {
			got = append(got, w.Path)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.text, diff)
		}
	}
}
