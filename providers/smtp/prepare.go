package smtp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	netmail "net/mail"
	"regexp"
	"strings"

	"github.com/wneessen/go-mail"

	"github.com/onceward/onceward/providers"
)

// keyForm is what a Message-ID may begin with (RFC 5322, dot-atom).
var keyForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Prepare implements [providers.Provider]. The message's id, date and boundary come from
// the order, so that the same order is always the same bytes: with one Message-ID, even a
// mail that was sent twice is shown once by most mail programs. Hidden recipients are in the
// envelope only.
func (p *Provider) Prepare(o providers.Order) ([]byte, error) {
	email, ok := o.Arguments.(providers.Email)
	switch {
	case !ok:
		return nil, fmt.Errorf("smtp sends mail; it has no action for arguments of type %T", o.Arguments)
	case !keyForm.MatchString(o.ProviderKey):
		return nil, fmt.Errorf("smtp: the provider key can't begin a Message-ID")
	case o.At.IsZero():
		return nil, fmt.Errorf("smtp: the order has no time")
	case strings.ContainsAny(email.Subject, "\r\n\x00"):
		return nil, &providers.ArgumentError{Field: "subject", Problem: "must be one line"}
	}
	heads, err := headsOf(email)
	if err != nil {
		return nil, err
	}
	to := envelope(heads.to, heads.cc, heads.bcc)
	if len(to) == 0 {
		return nil, &providers.ArgumentError{Field: "to", Problem: "has no address"}
	}
	id := p.messageID(o.ProviderKey)
	m := mail.NewMsg(mail.WithNoDefaultUserAgent(), mail.WithBoundary(boundary(o.ProviderKey, email)))
	m.SetMessageIDWithValue(strings.Trim(id, "<>"))
	m.SetDateWithValue(o.At.UTC())
	m.SetGenHeader(mail.HeaderSubject, headerText(email.Subject))
	m.FromMailAddress(&p.from)
	m.ToMailAddress(heads.to...)
	m.CcMailAddress(heads.cc...)
	m.ReplyToMailAddress(heads.replyTo...)
	m.SetBodyString(mail.TypeTextPlain, email.Body)
	if email.HTML != "" {
		m.AddAlternativeString(mail.TypeTextHTML, email.HTML)
	}
	var b bytes.Buffer
	if _, err := m.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("smtp can't render the message: %w", err)
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\r\n")) {
		b.WriteString("\r\n")
	}
	return request{
		envelopeJSON: envelopeJSON{
			MessageID: id, From: p.from.Address, To: to,
			UTF8: !isASCII(p.from.Address + strings.Join(to, "") + email.ReplyTo),
		},
		message: b.Bytes(),
	}.encode()
}

// messageID is the one that every attempt under a key has, with its angle brackets.
func (p *Provider) messageID(key string) string {
	return "<" + key + "@" + domainOf(p.from.Address) + ">"
}

type heads struct{ to, cc, bcc, replyTo []*netmail.Address }

func headsOf(email providers.Email) (h heads, err error) {
	if h.to, err = addresses("to", email.To); err != nil {
		return h, err
	}
	if h.cc, err = addresses("cc", email.Cc); err != nil {
		return h, err
	}
	if h.bcc, err = addresses("bcc", email.Bcc); err != nil {
		return h, err
	}
	if email.ReplyTo != "" {
		h.replyTo, err = addresses("reply_to", []string{email.ReplyTo})
	}
	return h, err
}

// boundary is the same for the same message, and can't stand in its text: that would have
// to hold a hash of itself.
func boundary(key string, email providers.Email) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s%s", key, len(email.Body), email.Body, email.HTML))
	return "onceward_" + hex.EncodeToString(sum[:16])
}
