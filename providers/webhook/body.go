package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onceward/onceward/providers"
)

// A body is what is sent: where each argument goes, and what is always there.
type body struct {
	members   []member
	constants []member
}

type member struct {
	at   path
	name string // the argument's, or the constant's text
}

func newBody(action string, c Action, keyMember string) (body, error) {
	template := c.Body
	if len(template) == 0 {
		template = standard[action]
	}
	var b body
	var all []path
	add := func(setting, where string) (path, error) {
		at, err := parsePath(where)
		if err == nil && len(at) == 0 {
			err = fmt.Errorf("%q is no member of an object", where)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", setting, err)
		}
		if slices.ContainsFunc(all, at.within) {
			return nil, fmt.Errorf("%s: %q is taken by another member", setting, where)
		}
		all = append(all, at)
		return at, nil
	}
	if keyMember != "" {
		all = append(all, path{keyMember})
	}
	for _, where := range slices.Sorted(maps.Keys(template)) {
		at, err := add("body", where)
		if err != nil {
			return body{}, err
		}
		if !slices.Contains(known[action], template[where]) {
			return body{}, fmt.Errorf("body: %q has no argument %q: there are %s", where, template[where], strings.Join(known[action], ", "))
		}
		b.members = append(b.members, member{at, template[where]})
	}
	for _, where := range slices.Sorted(maps.Keys(c.Constants)) {
		at, err := add("constants", where)
		if err != nil {
			return body{}, err
		}
		b.constants = append(b.constants, member{at, c.Constants[where]})
	}
	return b, nil
}

// place is where an argument goes.
func (b body) place(argument string) (path, bool) {
	for _, m := range b.members {
		if m.name == argument {
			return m.at, true
		}
	}
	return nil, false
}

func (b body) sends(argument string) bool {
	_, ok := b.place(argument)
	return ok
}

// Prepare implements [providers.Provider]: the body but for the key, with its members in
// the order of their names.
func (p *Provider) Prepare(o providers.Order) ([]byte, error) {
	a := p.actions[o.Arguments.Action()]
	if a == nil {
		return nil, fmt.Errorf("the webhook's configuration has no action %s", o.Arguments.Action())
	}
	if err := a.check(o.Arguments); err != nil {
		return nil, err
	}
	all, rendered := values(o.Arguments), map[string]any{}
	for _, m := range a.body.members {
		if v, ok := all[m.name]; ok {
			m.at.set(rendered, v)
		}
	}
	for _, c := range a.body.constants {
		c.at.set(rendered, c.name)
	}
	return render(rendered)
}

// check refuses what can't be sent as it is meant.
func (a *action) check(arguments providers.Arguments) error {
	switch o := arguments.(type) {
	case providers.PaymentOrder:
		return a.checkAmount(o.Amount)
	case providers.Refund:
		if o.PaymentID == "" {
			return &providers.ArgumentError{Field: argPaymentID, Problem: "is missing"}
		}
		return a.checkAmount(o.Amount)
	case providers.Email:
		if len(o.To)+len(o.Cc)+len(o.Bcc) == 0 {
			return &providers.ArgumentError{Field: argTo, Problem: "has no address"}
		}
		for name, addresses := range map[string][]string{argTo: o.To, argCc: o.Cc, argBcc: o.Bcc} {
			if len(addresses) > 0 && !a.body.sends(name) {
				return &providers.ArgumentError{Field: name, Problem: "isn't sent to this gateway: its recipients would get nothing"}
			}
		}
	}
	return nil
}

func (a *action) checkAmount(m providers.Money) error {
	switch {
	case len(a.currencies) > 0 && !slices.Contains(a.currencies, m.Currency):
		return &providers.ArgumentError{Field: argCurrency, Problem: "must be one of those that the gateway takes: " + strings.Join(a.currencies, ", ")}
	case !isCurrency(m.Currency):
		return &providers.ArgumentError{Field: argCurrency, Problem: "must be a current ISO 4217 code, such as USD or EUR"}
	case m.Minor <= 0:
		return &providers.ArgumentError{Field: argAmount, Problem: "must be more than zero"}
	}
	return nil
}

// withKey puts the key first into a rendered body, where the gateway wants it there.
func (k Key) withKey(rendered []byte, key string) []byte {
	if k.Member == "" {
		return rendered
	}
	first, err := render(map[string]any{k.Member: k.written(key)})
	if err != nil {
		panic(err) // two strings can always be rendered
	}
	if bytes.Equal(rendered, []byte("{}")) {
		return first
	}
	return slices.Concat(first[:len(first)-1], []byte(","), rendered[1:])
}

// render leaves <, > and & as they are, and sorts the members.
func render(v map[string]any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("render the request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
