package smtp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

const (
	someKey = "00112233445566778899aabbccddeeff"
	someID  = "<00112233445566778899aabbccddeeff@example.com>"
)

var someMail = providers.Email{
	To:      []string{"alice@example.org", "bob@example.org"},
	Bcc:     []string{"hidden@example.net"},
	Subject: "Your refund",
	Body:    "Hello,\n.\n..and a line that begins with a dot\n.\nBye\n",
	HTML:    "<p>Hello</p>",
}

func order(email providers.Email) providers.Order {
	return providers.Order{
		OperationID: "op_1", ProviderKey: someKey, Arguments: email,
		At: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC),
	}
}

// provider sends to a server on this machine without TLS.
func provider(t *testing.T, port int) *Provider {
	t.Helper()
	p, err := New(Config{Host: "127.0.0.1", Port: port, TLS: "none", From: "Support <support@example.com>", Helo: "app.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func prepare(t *testing.T, p *Provider, email providers.Email) []byte {
	t.Helper()
	b, err := p.Prepare(order(email))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func apply(ctx context.Context, p *Provider, request []byte) (ledger.Receipt, error) {
	return p.Apply(ctx, providers.EmailSend, ledger.Attempt{
		OperationID: "op_1", Number: 1, ProviderKey: someKey,
		Payload: ledger.Payload{Request: request}, MaySend: func() error { return nil },
	})
}

// seen is what the ledger makes of an attempt.
type seen struct {
	Verdict ledger.Verdict
	Code    string
	Alarm   string
}

func attempt(ctx context.Context, p *Provider, request []byte) seen {
	actor, _ := providers.Actor(Name, "scope", providers.EmailSend, p)
	f := actor.Apply(ctx, ledger.Attempt{
		ProviderKey: someKey, Payload: ledger.Payload{Request: request}, MaySend: func() error { return nil },
	})
	return seen{f.Verdict, f.Code, f.Alarm}
}

// wantNothingPersonal looks for what must not leave the sealed request.
func wantNothingPersonal(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, private := range []string{"alice", "bob", "hidden", "support@", "refund", "Hello", "s3cret", "mailer"} {
			if strings.Contains(text, private) {
				t.Errorf("%q is in %s", private, text)
			}
		}
	}
}

func compact(t *testing.T, raw json.RawMessage) map[string]any {
	t.Helper()
	if raw == nil {
		return nil
	}
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
