package resend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/mail"

	"github.com/onceward/onceward/providers"
)

// maxTo is how many addresses "to" may hold ("Send Email").
const maxTo = 50

// A request is the body of POST /emails.
type request struct {
	From    string   `json:"from"`
	To      []string `json:"to"`
	Cc      []string `json:"cc,omitempty"`
	Bcc     []string `json:"bcc,omitempty"`
	ReplyTo string   `json:"reply_to,omitempty"`
	Subject string   `json:"subject"`
	Text    string   `json:"text"`
	HTML    string   `json:"html,omitempty"`
}

// Prepare implements [providers.Provider]: the request is JSON, its members in this order.
func (p *Provider) Prepare(o providers.Order) ([]byte, error) {
	email, ok := o.Arguments.(providers.Email)
	if !ok {
		return nil, fmt.Errorf("resend sends mail; it has no action for arguments of type %T", o.Arguments)
	}
	switch {
	case len(email.To) == 0:
		return nil, &providers.ArgumentError{Field: "to", Problem: "has no address"}
	case len(email.To) > maxTo:
		return nil, &providers.ArgumentError{Field: "to", Problem: fmt.Sprintf("has more than the %d addresses that Resend takes", maxTo)}
	}
	for field, list := range map[string][]string{"to": email.To, "cc": email.Cc, "bcc": email.Bcc} {
		for _, address := range list {
			if !isBare(address) {
				return nil, &providers.ArgumentError{Field: field, Problem: "has something else than bare addresses like name@example.com"}
			}
		}
	}
	if email.ReplyTo != "" && !isBare(email.ReplyTo) {
		return nil, &providers.ArgumentError{Field: "reply_to", Problem: "isn't a bare address like name@example.com"}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(request{
		From: p.from, To: email.To, Cc: email.Cc, Bcc: email.Bcc, ReplyTo: email.ReplyTo,
		Subject: email.Subject, Text: email.Body, HTML: email.HTML,
	})
	if err != nil {
		return nil, fmt.Errorf("resend can't render its request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// isBare: Resend would take names and lists too, and one address could be two.
func isBare(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Name == "" && a.Address == s
}

// recipients counts each address once, as a mail server does.
func (r request) recipients() int {
	seen := map[string]bool{}
	for _, list := range [][]string{r.To, r.Cc, r.Bcc} {
		for _, address := range list {
			seen[address] = true
		}
	}
	return len(seen)
}
