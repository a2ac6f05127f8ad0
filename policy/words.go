package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Sentences say in plain words what the policy means, in the order in which a call meets it.
func (p *Policy) Sentences() []string {
	if p.unruled {
		return []string{"Nobody has to agree first, nothing limits how many happen, and look-alikes aren't looked for."}
	}
	said := []string{p.whoAgrees()}
	if p.mayWait() {
		said = append(said, p.howLongItWaits())
	}
	said = append(said, p.whatOfALookAlike(), p.howMuch(), p.howLong(), p.afterLoss())
	if p.Retention > 0 {
		said = append(said, fmt.Sprintf("Results and histories are kept for %s after the last change; that it happened is kept for ever.", Text(p.Retention)))
	}
	return said
}

func (p *Policy) whoAgrees() string {
	switch {
	case p.each == ReasonUnverifiable:
		return "A person agrees to each one first, because the provider can't show afterwards what it did."
	case p.each != "":
		return "A person agrees to each one first."
	case len(p.above) > 0:
		return "A person agrees first to more than " + orList(amounts(p.above)) + ", and to any amount in another currency."
	case len(p.inside) > 0:
		return "A person agrees first to a mail with any recipient (to, cc or bcc) outside " + andList(p.inside) + "; a subdomain is outside."
	}
	return "Nobody has to agree first."
}

// mayWait reports whether the policy itself makes some wait for a person.
func (p *Policy) mayWait() bool {
	return p.each != "" || len(p.above) > 0 || len(p.inside) > 0 || p.Rules.SecondIntent == ledger.SecondIntentApprove
}

func (p *Policy) howLongItWaits() string {
	lapse := Text(either(p.Rules.ApprovalFor, day))
	then := "at the next call, within another " + lapse
	if p.Rules.RunOnApproval {
		then = "at once"
	}
	text := fmt.Sprintf("What nobody approves within %s lapses; what is approved runs %s.", lapse, then)
	if p.Elicit {
		text += " The client's own user may approve too, where the client can ask."
	}
	return text
}

func (p *Policy) whatOfALookAlike() string {
	same := fmt.Sprintf("One with the same critical arguments as another of the last %s, under another key,", Text(either(p.Rules.AlikeWithin, day)))
	switch p.Rules.SecondIntent {
	case ledger.SecondIntentApprove:
		return same + " raises an alarm and waits for a person."
	case ledger.SecondIntentWarn:
		return same + " raises an alarm, and happens."
	case ledger.SecondIntentOff:
	}
	return "Look-alikes under another key aren't looked for."
}

func (p *Policy) howMuch() string {
	if len(p.Rules.Limits) == 0 {
		return "Nothing limits how many happen."
	}
	var parts []string
	for _, scope := range []ledger.LimitScope{ledger.PerRun, ledger.PerWorkflow, ledger.PerTenant, ledger.PerDay} {
		var bounds []string
		for _, l := range p.Rules.Limits {
			if l.Scope == scope {
				bounds = append(bounds, l.Text)
			}
		}
		if len(bounds) > 0 {
			parts = append(parts, andList(bounds)+" "+spans[scope])
		}
	}
	text := "No more than " + strings.Join(parts, "; ") + "."
	if limited := p.limitedCurrencies(); len(limited) > 0 {
		text += " Amounts in other currencies than " + andList(limited) + " are refused."
	}
	return text
}

var spans = map[ledger.LimitScope]string{
	ledger.PerRun:      "per run (per workflow, where a call names no run)",
	ledger.PerWorkflow: "per workflow",
	ledger.PerTenant:   "per tenant and day",
	ledger.PerDay:      "per day, of all tenants together",
}

func (p *Policy) howLong() string {
	text := fmt.Sprintf("One attempt may take %s; after %s without an answer it counts as lost.", Text(p.deadline()), Text(p.lease()))
	if p.Rules.AnswerWithin > 0 {
		text += fmt.Sprintf(" A call waits up to %s for its result.", Text(p.Rules.AnswerWithin))
	}
	return text + fmt.Sprintf(" New attempts are made for %s after the first call.", Text(either(p.Rules.RetryFor, day)))
}

// afterLoss is what the provider's traits make of an answer that never came.
func (p *Policy) afterLoss() string {
	t := p.traits
	var steps []string
	switch t.Lookup {
	case providers.NoLookup:
	case providers.LookupByMailbox:
		steps = append(steps, "the mailbox is searched for it")
	case providers.LookupByKey, providers.LookupByReference, providers.LookupByParent:
		steps = append(steps, "the provider is asked for it")
	}
	if t.Key != providers.NoKey {
		within := "at any time"
		if t.Window > 0 {
			within = "within " + Text(t.Window-t.Margin) + " of the first"
		}
		steps = append(steps, "the same request is sent again under its key, "+within)
	}
	if t.Lookup != providers.NoLookup && t.ProvesAbsence {
		steps = append(steps, "once it is proven absent, there is a new attempt")
	}
	return "After a lost answer: " + strings.Join(append(steps, "a person settles it"), "; else ") + "."
}

const day = 24 * time.Hour

func either(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// Text is a duration as people write it: "24h", not "24h0m0s".
func Text(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func amounts(all []providers.Money) []string {
	var texts []string
	for _, m := range all {
		texts = append(texts, m.Decimal()+" "+m.Currency)
	}
	return texts
}

func andList(words []string) string { return list(words, " and ") }

func orList(words []string) string { return list(words, " or ") }

func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(slices.Clone(words[:len(words)-1]), ", ") + last + words[len(words)-1]
}
