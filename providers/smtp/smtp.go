// Package smtp sends mail through any mail server (RFC 5321), and can look into a mailbox
// that keeps copies of what was sent (IMAP, RFC 9051).
//
// SMTP knows neither keys nor a way to ask. RFC 1047 names the gap: between the server's
// decision after the final dot and its reply, a message is alive on both sides, and "stored,
// reply lost" looks exactly like "never stored". So the package keeps the gap as narrow as
// it can be, and says so when it falls into it: the message is rendered to bytes before
// anything is dialled, every attempt sends the same bytes, and the final dot is written
// alone, so that only what happens after it is in doubt.
package smtp

import (
	"crypto/tls"
	"fmt"
	"net/mail"
	"time"

	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "smtp"

// What things take where the configuration doesn't say.
const (
	// defaultDeadline bounds the whole attempt. RFC 5321, 4.5.3.2, would have a client
	// wait longer: 5 minutes for the greeting, MAIL and RCPT, 2 for DATA's 354, 3 for each
	// block and 10 for the reply to the final dot. Whoever sends through a server that
	// scans before it replies raises it: a short one makes unknown outcomes.
	defaultDeadline = 2 * time.Minute
	defaultLease    = 3 * time.Minute
	// defaultSettle is how long a server may go on with a message after we gave up: those
	// 10 minutes for the final dot.
	defaultSettle = 10 * time.Minute
	// mailboxLag is how long a copy is usually under way to the mailbox. A copy that a
	// server has to queue comes later (Postfix tries again after 5 minutes at the
	// earliest, and for up to 5 days), which is why a mailbox never proves absence.
	mailboxLag = 10 * time.Minute
)

// A Provider is a [providers.Provider] for email.send. It is safe for concurrent use.
type Provider struct {
	host    string
	port    int
	mode    tlsMode
	helo    string
	from    mail.Address
	login   login
	timing  providers.Timing
	mailbox *mailbox // nil where nobody can be asked
	dial    dialer
	trust   *tls.Config // for tests; nil trusts what the system does
}

var _ providers.Provider = (*Provider)(nil)

// Identity implements the scope of an operation: whose server, as whom, and which mailbox.
// It holds secrets; whoever stores it hashes it with a key.
func (p *Provider) Identity() []string {
	id := []string{Name, address(p.host, p.port), p.from.Address, p.login.username.Reveal(), p.login.password.Reveal()}
	if m := p.mailbox; m != nil {
		id = append(id, address(m.host, m.port), m.name, m.login.username.Reveal(), m.login.password.Reveal())
	}
	return id
}

// Traits implements [providers.Provider].
func (p *Provider) Traits(action string) (t providers.Traits, ok bool) {
	if action != providers.EmailSend {
		return providers.Traits{}, false
	}
	t = providers.Traits{
		Deadline: p.timing.Deadline,
		Lease:    p.timing.Lease,
		Settle:   p.timing.Settle,
		Key:      providers.NoKey,
		Reuse:    providers.ReuseActs,
	}
	if p.mailbox != nil {
		t.Lookup, t.LookupLag = providers.LookupByMailbox, mailboxLag
	}
	return t, true
}

// String shows where mail goes, and no secret.
func (p *Provider) String() string { return fmt.Sprintf("%s to %s", Name, address(p.host, p.port)) }

// GoString shows no secret either.
func (p *Provider) GoString() string { return p.String() }
