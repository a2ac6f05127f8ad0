package webhook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bojanz/currency"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// An action is a checked Action.
type action struct {
	name       string
	method     string
	path       string
	key        Key
	body       body
	currencies []string
	answer     answer
	states     map[string]ledger.State // nil: objects have no status
	rules      []ErrorRule
	lookup     *lookup // nil: none
	timing     providers.Timing
}

func newAction(name string, c Action, base providers.Timing, headers []header) (*action, error) {
	if known[name] == nil {
		return nil, fmt.Errorf("is no action type: write payment_order.create, refund or email.send")
	}
	a := &action{name: name, method: orElse(c.Create.Method, "POST"), path: c.Create.Path, key: c.Key, currencies: slices.Clone(c.Currencies)}
	steps := []func() error{
		func() error { return checkPath("create.path", c.Create.Path) },
		func() error { return a.checkCreate() },
		func() error { return a.checkKey(headers) },
		func() (err error) { a.body, err = newBody(name, c, a.key.Member); return err },
		func() error { return a.checkMoney() },
		func() (err error) { a.answer, err = newAnswer(c.Answer, a.body); return err },
		func() (err error) { a.states, err = c.Statuses.states(c.Answer.Status != ""); return err },
		func() (err error) { a.rules, err = checkRules(c.Errors, a.answer); return err },
		func() (err error) { a.lookup, err = newLookup(c.Lookup, a); return err },
		func() (err error) { a.timing, err = a.newTiming(c.Timing, base); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func orElse(s, standard string) string {
	if s == "" {
		return standard
	}
	return s
}

// placeholder stands for the key in paths, queries and look-ups' bodies.
const placeholder = "{key}"

func checkPath(setting, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%s is missing: write where it is below the endpoint, such as /v1/payment-orders", setting)
	case s[0] != '/':
		return fmt.Errorf("%s is %q: it begins with /", setting, s)
	case strings.ContainsAny(s, "?# \\"):
		return fmt.Errorf("%s is %q: a path has no query, fragment or space (a look-up's query has a setting of its own)", setting, s)
	case strings.ContainsAny(strings.ReplaceAll(s, placeholder, ""), "{}"):
		return fmt.Errorf("%s is %q: %s is all that can be put in", setting, s, placeholder)
	case strings.Contains(s+"/", "/../") || strings.Contains(s+"/", "/./"):
		return fmt.Errorf("%s is %q: write it without the segments . or .. in it", setting, s)
	}
	return nil
}

func (a *action) checkCreate() error {
	inPath := strings.Contains(a.path, placeholder)
	switch {
	case a.method != "POST" && a.method != "PUT":
		return fmt.Errorf("create.method is %q: write POST, or PUT", a.method)
	case a.method == "PUT" && !inPath:
		return fmt.Errorf("create.method is PUT, and create.path has no %s: what is put has its own place", placeholder)
	}
	return nil
}

// checkKey wants exactly one word about how the key is sent.
func (a *action) checkKey(headers []header) error {
	k := &a.key
	ways := 0
	for _, way := range []bool{k.None, k.Header != "", k.Member != "", strings.Contains(a.path, placeholder)} {
		if way {
			ways++
		}
	}
	switch {
	case ways == 0:
		return fmt.Errorf("key is missing: write key: {header: Idempotency-Key} or how else the gateway takes it; if it takes none, write key: {none: true}, and know that a lost answer then waits for a person")
	case ways > 1:
		return fmt.Errorf("key is sent in more than one way: keep one of none, header, member and %s in create.path", placeholder)
	case k.None && (k.ForEver || k.OnlyReference || k.Reuse != "" || k.RetriesErrors || k.Format != ""):
		return fmt.Errorf("key is none, and something is said about it: keep none: true alone")
	case k.OnlyReference && (k.ForEver || k.Reuse != "" || k.RetriesErrors):
		return fmt.Errorf("key.only_reference means that a repeat acts again: for_ever, reuse and retries_errors don't go with it")
	case k.Format != "" && k.Format != "hex" && k.Format != "uuid":
		return fmt.Errorf("key.format is %q: write hex or uuid", k.Format)
	case k.Reuse != "" && !slices.Contains([]providers.Reuse{providers.ReuseRefused, providers.ReuseReplayed, providers.ReuseActs}, providers.Reuse(k.Reuse)):
		return fmt.Errorf("key.reuse is %q: write refused, replayed or acts", k.Reuse)
	case k.Header == "":
		return nil
	}
	name, err := headerName(k.Header)
	if err != nil {
		return fmt.Errorf("key.header: %w", err)
	}
	if slices.ContainsFunc(headers, func(h header) bool { return h.name == name }) {
		return fmt.Errorf("key.header is %s, which headers sets already", name)
	}
	k.Header = name
	return nil
}

// idempotent reports whether a repeat under the key does nothing a second time.
func (k Key) idempotent() bool { return !k.None && !k.OnlyReference }

// written is the key as the gateway wants it. Ours are 32 hexadecimal digits.
func (k Key) written(key string) string {
	if k.Format != "uuid" || len(key) != 32 {
		return key
	}
	return key[:8] + "-" + key[8:12] + "-" + key[12:16] + "-" + key[16:20] + "-" + key[20:]
}

// checkMoney wants no amount to be sent whose currency the gateway would have to guess.
func (a *action) checkMoney() error {
	for _, code := range a.currencies {
		if !isCurrency(code) {
			return fmt.Errorf("currencies has %q: write ISO 4217 codes such as EUR", code)
		}
	}
	switch {
	case a.name == providers.EmailSend && len(a.currencies) > 0:
		return fmt.Errorf("currencies: mail has none")
	case a.name == providers.EmailSend:
		return nil
	case !a.body.sends(argAmount) && !a.body.sends(argAmountMinor):
		return fmt.Errorf("body sends no amount: name amount (a decimal string) or amount_minor (an integer)")
	case !a.body.sends(argCurrency) && len(a.currencies) != 1:
		return fmt.Errorf("body sends no currency: name it, or write the only one that the gateway has under currencies")
	}
	return nil
}

func isCurrency(code string) bool {
	_, ok := currency.GetDigits(code)
	return ok
}
