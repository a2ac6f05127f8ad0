package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Why a person has to agree first, as it stands in the ledger.
const (
	ReasonAlways       = "always"
	ReasonUnverifiable = "unverifiable" // the provider can't show afterwards what it did
	ReasonAbove        = "above"        // more than the amount, or in a currency that has none
	ReasonRecipients   = "recipients"   // somebody outside the named domains
)

// A Policy is what holds for one action type. It doesn't change.
type Policy struct {
	Rules     ledger.Rules
	Elicit    bool          // the client's own user may agree
	Retention time.Duration // how long results and histories are kept; 0: for ever

	unruled bool // the configuration doesn't name the action type

	action string
	tool   Tool
	traits providers.Traits

	each   string            // why a person agrees to each one; empty: not to each
	above  []providers.Money // sorted by currency
	inside []string          // the domains inside; empty: recipients don't matter
}

// NeedsApproval says why a person has to agree first to an action with these arguments: one of the
// reasons above, or "" if nobody has to. It is pure.
func (p *Policy) NeedsApproval(args providers.Arguments) string {
	switch {
	case p.each != "":
		return p.each
	case len(p.above) > 0 && p.isAbove(args):
		return ReasonAbove
	case len(p.inside) > 0 && p.isOutside(args):
		return ReasonRecipients
	}
	return ""
}

// isAbove: a currency without an amount of its own is above, or a model could pass the rule
// by choosing another one.
func (p *Policy) isAbove(args providers.Arguments) bool {
	worth, ok := providers.Worth(args)
	if !ok {
		return true
	}
	i := slices.IndexFunc(p.above, func(m providers.Money) bool { return m.Currency == worth.Currency })
	return i < 0 || worth.Minor > p.above[i].Minor
}

// isOutside: subdomains are somebody else, and so is whatever can't be read.
func (p *Policy) isOutside(args providers.Arguments) bool {
	mail, ok := args.(providers.Email)
	if !ok {
		return true
	}
	return slices.ContainsFunc(slices.Concat(mail.To, mail.Cc, mail.Bcc), func(address string) bool {
		at := strings.LastIndexByte(address, '@')
		return at < 0 || !slices.Contains(p.inside, address[at+1:])
	})
}

// LookAlikes reports whether another operation with the same critical arguments matters.
func (p *Policy) LookAlikes() bool { return p.Rules.SecondIntent != ledger.SecondIntentOff }

// Promise is what the provider promises, with the deadline and the lease that are laid down here.
func (p *Policy) Promise(of ledger.Promise) ledger.Promise {
	of.Deadline, of.Lease = p.over(p.tool.Deadline, of.Deadline), p.over(p.tool.Lease, of.Lease)
	return of
}

func (p *Policy) over(written Duration, otherwise time.Duration) time.Duration {
	if written != 0 {
		return time.Duration(written)
	}
	return otherwise
}

func (p *Policy) deadline() time.Duration { return p.over(p.tool.Deadline, p.traits.Deadline) }

func (p *Policy) lease() time.Duration { return p.over(p.tool.Lease, p.traits.Lease) }

func (p *Policy) unverifiable() bool {
	return p.traits.Key == providers.NoKey && p.traits.Lookup == providers.NoLookup
}

func (p *Policy) movesMoney() bool { return p.action != providers.EmailSend }
