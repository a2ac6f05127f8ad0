package tools

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/providers"
)

// right are arguments that each decoder takes, all that there are.
var right = map[string]map[string]any{
	providers.EmailSend: {"to": []any{"a@example.com"}, "cc": []any{"b@example.com"}, "bcc": []any{"c@example.com"}, "subject": "s", "body": "b",
		"html": "h", "reply_to": "r@example.com", "template": "t", "about": "a"},
	providers.PaymentOrderCreate: {"debit_account": "D1", "payee_account": "P1", "payee_name": "n", "amount": "1.00", "currency": "EUR",
		"business_reference": "r", "purpose": "p"},
	providers.RefundCreate: {"payment_id": "p", "amount": "1.00", "currency": "EUR", "reason": "duplicate", "note": "n"},
}

// TestDecodersAreSafeAlone: also without the schema before them, decoders take nothing
// of a wrong type, nothing unknown and nothing that is missing, and name it.
func TestDecodersAreSafeAlone(t *testing.T) {
	t.Parallel()
	s := &Set{opts: Options{Mode: intent.Workflow, Templates: []string{"t"}}}
	decoders := map[string]func(*arguments) (providers.Arguments, values){
		providers.EmailSend: s.decodeEmail, providers.PaymentOrderCreate: decodePaymentOrder, providers.RefundCreate: decodeRefund,
	}
	optional := []string{"cc", "bcc", "html", "reply_to", "purpose", "reason", "note"}
	for action, decode := range decoders {
		try := func(args map[string]any) []string {
			a := newArguments(args)
			decode(a)
			if r := a.refusal(); r != nil {
				return r.Fields
			}
			return nil
		}
		if fields := try(right[action]); fields != nil {
			t.Fatalf("%s: the right arguments were refused: %v", action, fields)
		}
		unknown := maps.Clone(right[action])
		unknown["surprise"] = ""
		if fields := try(unknown); !slices.Contains(fields, "surprise") {
			t.Errorf("%s: an unknown argument was taken: %v", action, fields)
		}
		for name := range right[action] {
			changed := maps.Clone(right[action])
			delete(changed, name)
			if fields := try(changed); slices.Contains(optional, name) != (fields == nil) {
				t.Errorf("%s without %s: fields %v", action, name, fields)
			}
			for _, wrong := range []any{nil, true, 1.5, json.Number("1"), map[string]any{}, []any{1.5}, []any{nil}, []any{[]any{}}, "\xff", "a\x00", strings.Repeat("x", 300<<10)} {
				changed[name] = wrong
				if fields := try(changed); !slices.Contains(fields, name) {
					t.Errorf("%s: %T was taken as %s: %v", action, wrong, name, fields)
				}
			}
		}
	}
}

// TestAboutIsNoProse: it is part of a mail's name.
func TestAboutIsNoProse(t *testing.T) {
	t.Parallel()
	s := &Set{opts: Options{Mode: intent.Workflow}}
	for about, taken := range map[string]bool{"case-1842": true, "a/b:c._": true, "the mail": false, "é": false, strings.Repeat("a", 65): false} {
		args := maps.Clone(right[providers.EmailSend])
		delete(args, "template")
		args["about"] = about
		a := newArguments(args)
		s.decodeEmail(a)
		if (a.refusal() == nil) != taken {
			t.Errorf("%q: taken should be %t", about, taken)
		}
	}
}

// TestRulesQuoteNothing: the validator's errors hold the value; our words don't.
func TestRulesQuoteNothing(t *testing.T) {
	t.Parallel()
	for _, k := range []jsonschema.ErrorKind{
		&kind.Type{Got: "planted", Want: []string{"integer"}}, &kind.Enum{Got: "planted", Want: []any{"a", "b"}}, &kind.Pattern{Got: "planted", Want: "^a$"},
		&kind.Const{Got: "planted", Want: "a"}, &kind.Format{Got: "planted", Want: "email", Err: errors.New("planted")}, &kind.PropertyNames{Property: "planted"},
	} {
		if said := rule(k); said == "" || strings.Contains(said, "planted") {
			t.Errorf("%T: %q", k, said)
		}
	}
}

// TestIntegers: whole, in range, written plainly.
func TestIntegers(t *testing.T) {
	t.Parallel()
	for _, wrong := range []any{nil, "5", 5.0, json.Number("1.0"), json.Number("1e1"), json.Number("0"), json.Number("11"), json.Number("99999999999999999999")} {
		a := newArguments(map[string]any{"limit": wrong})
		if a.integer("limit", 1, 10, 3); a.refusal() == nil {
			t.Errorf("%v was taken", wrong)
		}
	}
	a := newArguments(map[string]any{"limit": json.Number("10")})
	if n := a.integer("limit", 1, 10, 3); n != 10 || a.refusal() != nil {
		t.Errorf("10 became %d", n)
	}
}

// TestSchemasThatDoNotCompile stop the start: a client would be shown rules that nothing
// enforces.
func TestSchemasThatDoNotCompile(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{`, `{"type":"strin"}`, `{"properties":{"a":{"pattern":"("}}}`, `{"$ref":"#/nowhere"}`, `{"minLength":"1"}`} {
		if err := compile([]*tool{{name: "broken", input: json.RawMessage(schema)}}); err == nil {
			t.Errorf("%s compiled", schema)
		}
	}
}
