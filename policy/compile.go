package policy

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Defaults of a tool that the configuration names.
const (
	defaultPerRun = 20
	margin        = time.Second // by which a lease outlasts its deadline, as everywhere
)

// An Error says what can't be meant, and where.
type Error struct {
	Path    string // below the tool, such as "limits.per_run.count"
	Problem string // and what to write instead
}

func (e *Error) Error() string { return e.Path + ": " + e.Problem }

func refuse(path, problem string, args ...any) error {
	return &Error{path, fmt.Sprintf(problem, args...)}
}

// Compile makes the policy of an action type that the configuration names. traits are its
// provider's. zone is where days begin; nil: UTC. The error is an *[Error].
//
// Defaults: 20 actions per run (per workflow, where a call names no run); a look-alike of the last
// 24 hours raises an alarm; nobody has to agree first, unless the provider has neither key nor
// look-up and the user hasn't accepted that: then a person does, always.
func Compile(action string, t Tool, traits providers.Traits, zone *time.Location) (*Policy, error) {
	p := &Policy{action: action, tool: t, traits: traits, Elicit: t.Elicit, Retention: time.Duration(t.Retention)}
	p.Rules = ledger.Rules{
		Zone: zone, RunOnApproval: t.RunOnApproval, ApprovalFor: time.Duration(t.ApprovalExpires),
		RetryFor: time.Duration(t.RetryFor), AnswerWithin: time.Duration(t.AnswerWithin),
	}
	for _, step := range []func() error{p.approvals, p.alike, p.limits, p.timing} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Unruled is the policy of an action type that the configuration doesn't name: nobody has to
// agree, nothing is limited, no look-alikes are looked for.
func Unruled(action string, traits providers.Traits) *Policy {
	return &Policy{unruled: true, action: action, traits: traits}
}

func (p *Policy) approvals() error {
	a := p.tool.Approval
	if err := p.conditions(a); err != nil {
		return err
	}
	unproven := p.unverifiable() && !p.tool.AcceptUnverifiable
	switch {
	case a.Mode == always:
		p.each = ReasonAlways
	case unproven && a.Mode == never:
		return refuse("approval", "the provider knows neither keys nor look-ups, so after a lost answer only a person can find out what it did; "+
			"write accept_unverifiable: true beside it if that is what you want, or approval: always")
	case unproven && a.conditional:
		return refuse("approval", "the provider knows neither keys nor look-ups, and these conditions let some pass without a person; "+
			"write accept_unverifiable: true beside it if that is what you want, or approval: always")
	case unproven:
		p.each = ReasonUnverifiable
	}
	if p.tool.Elicit && p.movesMoney() {
		return refuse("elicit", "%s moves money, and the client's user can't agree to that: an approver does, by the console or operations approve; remove it", p.action)
	}
	return nil
}

// conditions reads when a person has to agree to some, but not to all.
func (p *Policy) conditions(a Approval) error {
	if !a.conditional {
		return nil
	}
	switch {
	case a.Above == nil && a.RecipientsOutside == nil:
		return refuse("approval", "it has no condition: write above, recipients_outside, always or never")
	case a.Above != nil && !p.movesMoney():
		return refuse("approval.above", "%s moves no money; write recipients_outside, always or never", p.action)
	case a.RecipientsOutside != nil && p.action != providers.EmailSend:
		return refuse("approval.recipients_outside", "only %s has recipients; write above, always or never", providers.EmailSend)
	case a.Above != nil && len(a.Above) == 0:
		return refuse("approval.above", "it names no amount; for a person's word on each one, write approval: always")
	case a.RecipientsOutside != nil && len(a.RecipientsOutside) == 0:
		return refuse("approval.recipients_outside", "it names no domain; for a person's word on each mail, write approval: always")
	}
	for _, code := range slices.Sorted(maps.Keys(a.Above)) {
		m, err := money("approval.above", code, a.Above[code])
		if err != nil {
			return err
		}
		p.above = append(p.above, m)
	}
	return p.domains(a.RecipientsOutside)
}

var domainName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func (p *Policy) domains(written []string) error {
	for i, name := range written {
		path := fmt.Sprintf("approval.recipients_outside[%d]", i)
		domain := strings.ToLower(name)
		if !domainName.MatchString(domain) {
			return refuse(path, "it isn't a domain; write one like example.com: no @, no *, and xn-- for other letters than a to z")
		}
		if slices.Contains(p.inside, domain) {
			return refuse(path, "%s stands there twice; remove one", domain)
		}
		p.inside = append(p.inside, domain)
	}
	return nil
}

func (p *Policy) alike() error {
	switch p.tool.SecondIntent {
	case "", string(ledger.SecondIntentWarn):
		p.Rules.SecondIntent = ledger.SecondIntentWarn
	case string(ledger.SecondIntentApprove):
		p.Rules.SecondIntent = ledger.SecondIntentApprove
	case "off":
		if p.tool.SecondIntentWithin != 0 {
			return refuse("second_intent_within", "second_intent is off, so there is nothing to look back for; remove one of the two")
		}
	default:
		return refuse("second_intent", "it is approve, warn or off")
	}
	p.Rules.AlikeWithin = time.Duration(p.tool.SecondIntentWithin)
	return nil
}

// timing checks that every attempt is over before its worker is given up, also where the
// provider's own times fill in.
func (p *Policy) timing() error {
	deadline, lease := p.deadline(), p.lease()
	if p.traits.Key != providers.NoKey && p.traits.Window > 0 && lease > p.traits.Margin && p.tool.Lease != 0 {
		return refuse("lease", "the provider's margin is %s, and it is at least as long as the lease: a repeat that begins inside the key's window must have ended before the key is forgotten; write a shorter lease, or a longer margin there", p.traits.Margin)
	}
	if (p.tool.Deadline == 0 && p.tool.Lease == 0) || lease >= deadline+margin {
		return nil
	}
	if p.tool.Lease == 0 {
		return refuse("deadline", "the provider's lease is %s, and a lease is at least %s longer than the deadline; write a shorter deadline, or lease: %s beside it",
			lease, margin, deadline+margin)
	}
	return refuse("lease", "it is at least %s longer than the deadline (%s); write %s or more", margin, deadline, deadline+margin)
}

// money reads an amount that stands under its currency.
func money(path, code string, amount Decimal) (providers.Money, error) {
	path += "." + code
	if code != strings.ToUpper(code) {
		return providers.Money{}, refuse(path, "a currency is written in capitals")
	}
	m, err := providers.ParseMoney(string(amount), code)
	bad, ok := errors.AsType[*providers.ArgumentError](err)
	switch {
	case ok && bad.Field == "currency":
		return m, refuse(path, "there is no such currency; write an ISO 4217 code, such as USD or EUR")
	case ok:
		return m, refuse(path, "the amount %s", bad.Problem)
	case err != nil:
		return m, refuse(path, "%v", err)
	}
	return m, nil
}
