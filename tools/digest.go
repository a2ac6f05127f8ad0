package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// values are normalised arguments by name, as they are hashed: strings, lists of
// strings, and the amount in minor units. What wasn't given is empty.
type values map[string]any

// given leaves out what wasn't given: an empty list of copies and none are the same.
func (v values) given() values {
	kept := make(values, len(v))
	for name, value := range v {
		if !isEmpty(value) {
			kept[name] = value
		}
	}
	return kept
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case []string:
		return len(value) == 0
	}
	return false
}

// A printed is the canonical JSON of values, by name, in the order of names.
type printed []printedMember

type printedMember struct {
	name string
	json []byte
}

// print prints what was given, and the action type beside it.
func (v values) print(action string) (printed, error) {
	p := make(printed, 0, len(v)+1)
	p = append(p, printedMember{name: actionType})
	for name, value := range v {
		if !isEmpty(value) {
			p = append(p, printedMember{name: name})
		}
	}
	slices.SortFunc(p, func(a, b printedMember) int { return strings.Compare(a.name, b.name) })
	text := make([]byte, 0, 512)
	for i := range p {
		var value any = action
		if p[i].name != actionType {
			value = v[p[i].name]
		}
		start, err := len(text), error(nil)
		if text, err = intent.AppendCanonicalJSON(text, value); err != nil {
			return nil, fmt.Errorf("hash %s: %w", p[i].name, err)
		}
		p[i].json = text[start:len(text):len(text)]
	}
	return p, nil
}

// object is the canonical JSON of an object with the chosen members. Names need no
// escapes, and they are sorted already.
func (p printed) object(chosen func(name string) bool) []byte {
	size := len("{}")
	for _, member := range p {
		size += len(member.name) + len(member.json) + len(`"":,`)
	}
	b := append(make([]byte, 0, size), '{')
	for _, member := range p {
		if !chosen(member.name) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, '"'), member.name...), '"', ':'), member.json...)
	}
	return append(b, '}')
}

const actionType = "action_type"

// digest hashes the arguments for the ledger's three questions: is it still the same
// action, were the words changed, and was the like just done under another name.
func (s *Set) digest(action string, e effect, whole bool, v values) (ledger.Digest, error) {
	all, err := v.print(action)
	if err != nil {
		return ledger.Digest{}, err
	}
	secret := s.opts.Secret
	critical := func(name string) bool { return name == actionType || slices.Contains(e.critical, name) }
	d := ledger.Digest{
		Fingerprint: secret.Hash("fingerprint", all.object(critical)),
		Content:     secret.Hash("content", all.object(func(string) bool { return true })),
		Fields:      make(ledger.FieldHashes, len(all)),
		Critical:    e.critical,
	}
	for _, member := range all {
		if member.name != actionType {
			d.Fields[member.name] = secret.Field(member.name, member.json)
		}
	}
	if !whole {
		hash := secret.Hash("alike", all.object(func(name string) bool { return critical(name) && !slices.Contains(e.identifying, name) }))
		d.Alike = ledger.FieldHash(hash[:len(d.Alike)])
	} else if s.opts.LookAlikes[action] {
		hash := secret.Hash("look-alike", all.object(critical))
		d.Alike = ledger.FieldHash(hash[:len(d.Alike)])
	}
	return d, nil
}

// name puts the operation's name into the request: its key, or, where the model's
// arguments are part of the name, the key of each revision.
func (s *Set) name(r *ledger.Request, resolved intent.Resolved, e effect, v values) {
	subject := make([]string, len(e.identifying))
	for i, name := range e.identifying {
		subject[i], _ = v[name].(string)
	}
	action := resolved.Action(r.Action, r.Tenant, subject)
	if resolved.Whole {
		r.Key = action.Key(s.opts.Secret)
		return
	}
	r.BaseKey = action.BaseKey(s.opts.Secret)
	r.KeyAt = func(revision int) ledger.Key { return action.KeyAt(s.opts.Secret, revision) }
}

// described is the intent as the ledger stores it, to be found again.
func described(r intent.Resolved) ledger.Intent {
	in := ledger.Intent{
		Identity: ledger.Strict, WorkflowID: r.Intent.WorkflowID, Step: r.Intent.Step, BusinessObject: r.Intent.BusinessObject,
		Revision: r.Intent.Revision, BusinessOperationID: r.Intent.BusinessOperationID, RunID: r.Intent.RunID,
	}
	if !r.Whole {
		in.Identity = ledger.Workflow
	}
	return in
}

// prepare renders what will be sent, and the arguments as a person who has to approve
// or resolve the operation reads them: the amount as the tool takes it.
func prepare(p providers.Provider, o providers.Order, v values) (ledger.Payload, error) {
	request, err := p.Prepare(o)
	if bad, ok := errors.AsType[*providers.ArgumentError](err); ok {
		return ledger.Payload{}, invalid([]problem{{field: bad.Field, text: bad.Field + " can't be sent: " + bad.Problem}})
	}
	if err != nil {
		return ledger.Payload{}, fmt.Errorf("prepare the request: %w", err)
	}
	readable := v.given()
	if minor, ok := readable["amount"].(int64); ok {
		currency, _ := readable["currency"].(string)
		readable["amount"] = providers.Money{Minor: minor, Currency: currency}.Decimal()
	}
	arguments, err := intent.CanonicalJSON(map[string]any(readable))
	if err != nil {
		return ledger.Payload{}, fmt.Errorf("print the arguments: %w", err)
	}
	return ledger.Payload{Arguments: json.RawMessage(arguments), Request: request}, nil
}
