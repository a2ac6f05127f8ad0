// Package resend sends mail through Resend's HTTP API.
//
// What is relied on, from Resend's documentation (resend.com/docs, read in November 2026):
//
//   - "Send Email": POST /emails with from, to (at most 50), cc, bcc, reply_to, subject, text
//     and html answers with the mail's id.
//   - "Idempotency Keys": the header Idempotency-Key, 1 to 256 characters, known for 24 hours;
//     the same request again gets the same answer and sends nothing; another payload is refused
//     with 409 invalid_idempotent_request; while the first request runs, the answer is 409
//     concurrent_idempotent_requests.
//   - "Errors": an error is an object whose name is its type.
//   - "Retrieve Sent Email" and "Email Events": GET /emails/{id} and its last_event.
//
// A mail can be asked for by Resend's own id only, which is what a lost answer didn't bring.
// So after one, the same request is sent again under its key while Resend knows the key, and
// then a person decides.
//
// Not documented, and so not relied on: that the rate limiter (429) runs before anything
// happens, that an error is never kept under a key, and what the scope of a key is: another
// API key is taken for another account. A deleted API key may be answered with 400
// validation_error, like a bad argument; the two can't be told apart without reading prose.
package resend

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"

	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "resend"

// defaultEndpoint is the API's base URL ("Introduction").
const defaultEndpoint = "https://api.resend.com"

// A Config is the provider's part of the configuration.
type Config struct {
	Endpoint   string `yaml:"endpoint"` // https://api.resend.com if empty
	APIKeyEnv  string `yaml:"api_key_env"`
	APIKeyFile string `yaml:"api_key_file"`
	From       string `yaml:"from"` // Support <support@example.com>, of a verified domain

	providers.Timing `yaml:",inline"`
}

// defaultTiming: Resend's own Go client waits a minute for an answer. The window is
// documented; an hour off it is more than any clock is wrong by.
var defaultTiming = providers.Timing{
	Deadline: time.Minute, Lease: 90 * time.Second, Settle: time.Minute,
	Window: 24 * time.Hour, Margin: time.Hour,
}

// A Provider is a [providers.Provider] for email.send. It is safe for concurrent use.
type Provider struct {
	client *providers.HTTPClient
	apiKey providers.Credential
	from   string
	timing providers.Timing
}

var _ providers.Provider = (*Provider)(nil)

// New checks the configuration. Its errors name the setting and never show a secret.
func New(c Config) (*Provider, error) {
	if c.Endpoint == "" {
		c.Endpoint = defaultEndpoint
	}
	client, err := providers.NewHTTPClient(c.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	apiKey, err := providers.ReadCredential("api_key", c.APIKeyEnv, c.APIKeyFile)
	if err != nil {
		return nil, err
	}
	if _, err := mail.ParseAddress(c.From); err != nil || strings.ContainsAny(c.From, "\r\n\x00") {
		return nil, errors.New("from is missing or no address: write one like Support <support@example.com>")
	}
	timing, err := c.Or(defaultTiming)
	if err != nil {
		return nil, err
	}
	return &Provider{client, apiKey, c.From, timing}, nil
}

// Identity is what makes this account another one, for the caller to hash with a key.
func (p *Provider) Identity() []string {
	return []string{Name, p.client.Endpoint(), p.apiKey.Reveal()}
}

// Traits implements [providers.Provider].
func (p *Provider) Traits(action string) (t providers.Traits, ok bool) {
	if action != providers.EmailSend {
		return providers.Traits{}, false
	}
	return providers.Traits{
		Deadline: p.timing.Deadline,
		Lease:    p.timing.Lease,
		Settle:   p.timing.Settle,
		Key:      providers.KeyInHeader,
		Window:   p.timing.Window,
		Margin:   p.timing.Margin,
		Reuse:    providers.ReuseRefused,
	}, true
}
