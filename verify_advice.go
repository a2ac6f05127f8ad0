package main

import (
	"time"

	"github.com/onceward/onceward/drill"
	"github.com/onceward/onceward/policy"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
	"github.com/onceward/onceward/providers/smtp"
	"github.com/onceward/onceward/providers/webhook"
)

// adviceFor says how a provider's settings can be changed for the better. What no setting changes
// is left empty.
func adviceFor(name, action string, t providers.Traits, accepted bool) drill.Advice {
	otherwise := "; or accept a person's review (accept_unverifiable: true)."
	if accepted {
		otherwise = "."
	}
	margin := func(section string) string {
		return "Write margin: " + policy.Text(max(time.Minute, 2*t.Lease)) + " (or more, and less than window) under " + section + "."
	}
	switch name {
	case sandbox.Name:
		return drill.Advice{
			Ask: "Give --sandbox-lookup=true, as most real providers can be asked.",
			Key: "Give --sandbox-idempotent=true, and take its faults out of --sandbox-faults.",
		}
	case smtp.Name:
		return drill.Advice{Ask: "Give it imap: under providers.smtp, a mailbox that shows what was sent" + otherwise}
	case webhook.Name:
		at := "providers.webhook.actions." + action
		return drill.Advice{
			Ask:    "Give it lookup: under " + at + ", where the gateway can be asked for a key" + otherwise,
			Prove:  "Write proves_absence: true under " + at + ".lookup, if the gateway guarantees it.",
			Key:    "Write only_reference: true beside its header or member under " + at + ".key, if the gateway acts again for a key that it knows.",
			Errors: "Write retries_errors: true under " + at + ".key, if the gateway tries a key again after a 5xx.",
			Margin: margin(at),
		}
	}
	return drill.Advice{Margin: margin("providers." + name)}
}
