package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// The order that everything is tried with.
const operationID = "op_01990000-0000-7000-8000-000000000001"

var orderedAt = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func order(arguments providers.Arguments) providers.Order {
	return providers.Order{OperationID: operationID, ProviderKey: key(0), At: orderedAt, Arguments: arguments}
}

// key is the operation's provider key of a generation.
func key(generation int) string { return ledger.ProviderKey(ledger.Key{1}, generation) }

// traits are the provider's, which speaks to nobody for them.
func (h Harness) traits(t *testing.T) providers.Traits {
	t.Helper()
	traits, ok := h.New(t, "http://127.0.0.1:1").Traits(h.Action)
	if !ok {
		t.Fatalf("the provider doesn't serve %s", h.Action)
	}
	return traits
}

func (h Harness) testTraits(t *testing.T) {
	t.Parallel()
	traits := h.traits(t)
	idempotent, asked := traits.Key != providers.NoKey, traits.Lookup != providers.NoLookup
	for problem, found := range map[string]bool{
		"the deadline isn't more than nothing":                    traits.Deadline <= 0,
		"the lease isn't longer than the deadline":                traits.Lease <= traits.Deadline,
		"the settle time or the lag is negative":                  traits.Settle < 0 || traits.LookupLag < 0,
		"there is a key, and no word on its reuse":                idempotent && traits.Reuse == "",
		"there is a window, margin or kept error without a key":   !idempotent && (traits.Window != 0 || traits.Margin != 0 || traits.CachesErrors),
		"the window isn't longer than its margin":                 traits.Window != 0 && traits.Margin >= traits.Window,
		"the margin is shorter than an attempt may take":          traits.Window != 0 && traits.Margin < traits.Lease,
		"absence is proven or late, and there is no look-up":      !asked && (traits.ProvesAbsence || traits.LookupLag != 0),
		"a currency isn't a code of three capitals":               !currencies(traits.Currencies),
		"the ledger's promise is idempotent, and there is no key": traits.Promise().Idempotent != idempotent,
		"the ledger's promise proves absence, the traits don't":   traits.Promise().ProvesAbsence && !traits.ProvesAbsence,
		"an action type that nobody has heard of is served":       served(h.New(t, "http://127.0.0.1:1"), "no.such.action"),
		"the traits change from one question to the next":         !reflect.DeepEqual(traits, h.traits(t)),
		"Window, Margin or Lease isn't whole milliseconds":        (traits.Window+traits.Margin+traits.Lease)%time.Millisecond != 0,
	} {
		if found {
			t.Error(problem)
		}
	}
	fake := h.Fake(t)
	pages := traits.Lookup == providers.LookupByParent
	if traits.Window == 0 && fake.Forget != nil {
		t.Error("the fake can forget keys, and the traits say that they are known for ever")
	}
	for problem, missing := range map[string]bool{
		"Forget, and the key has a window":        traits.Window != 0 && fake.Forget == nil,
		"Hide, and there is a look-up":            asked && fake.Hide == nil,
		"Crowd, and the look-up reads lists":      pages && fake.Crowd == nil,
		"Double, and the look-up reads lists":     pages && fake.Double == nil,
		"Alter, and there is money and a look-up": asked && h.Action != providers.EmailSend && fake.Alter == nil,
		"Handler or Effects":                      fake.Handler == nil || fake.Effects == nil,
	} {
		if missing {
			t.Errorf("the fake lacks %s", problem)
		}
	}
}

func served(p providers.Provider, action string) bool {
	_, ok := p.Traits(action)
	return ok
}

func currencies(codes []string) bool {
	for _, code := range codes {
		if len(code) != 3 || code[0] < 'A' || code[0] > 'Z' {
			return false
		}
	}
	return true
}

// testPrepare wants a pure function that refuses what it can't send.
func (h Harness) testPrepare(t *testing.T) {
	t.Parallel()
	p := h.New(t, "http://127.0.0.1:1")
	before := fmt.Sprintf("%#v", h.Arguments)
	first, err := p.Prepare(order(h.Arguments))
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.New(t, "http://127.0.0.1:1").Prepare(order(h.Arguments))
	if err != nil {
		t.Fatal(err)
	}
	if len(first) == 0 || !bytes.Equal(first, again) {
		t.Errorf("the same order was rendered in two ways (-first +again):\n%s", cmp.Diff(string(first), string(again)))
	}
	if after := fmt.Sprintf("%#v", h.Arguments); after != before {
		t.Error("Prepare changed its arguments")
	}
	other, err := p.Prepare(order(h.Other))
	if err != nil {
		t.Fatalf("Other: %v", err)
	}
	if bytes.Equal(first, other) {
		t.Error("other arguments were rendered the same")
	}
	for name, arguments := range h.impossible() {
		b, err := p.Prepare(order(arguments))
		if err == nil {
			t.Errorf("%s was rendered: %d bytes", name, len(b))
			continue
		}
		h.wantNoLeak(t, "the error for "+name, err.Error())
		if _, ok := errors.AsType[*providers.ArgumentError](err); !ok && arguments.Action() == h.Action {
			t.Errorf("the error for %s isn't an *ArgumentError: %v", name, err)
		}
	}
}

// impossible are arguments that no provider can send.
func (h Harness) impossible() map[string]providers.Arguments {
	impossible := map[string]providers.Arguments{"an unknown action": nothing{}}
	switch a := h.Arguments.(type) {
	case providers.Email:
		a.To, a.Cc, a.Bcc = nil, nil, nil
		impossible["mail to nobody"] = a
	case providers.PaymentOrder:
		for name, money := range badMoney {
			a.Amount = money
			impossible[name] = a
		}
	case providers.Refund:
		for name, money := range badMoney {
			a.Amount = money
			impossible[name] = a
		}
		a.Amount, a.PaymentID = h.Arguments.(providers.Refund).Amount, ""
		impossible["a refund of no payment"] = a
	}
	return impossible
}

var badMoney = map[string]providers.Money{
	"no amount":           {Minor: 0, Currency: "USD"},
	"a negative amount":   {Minor: -1, Currency: "USD"},
	"no currency":         {Minor: 100},
	"an unknown currency": {Minor: 100, Currency: "ZZZ"},
}

// nothing is an action that no provider has.
type nothing struct{}

func (nothing) Action() string { return "no.such.action" }
