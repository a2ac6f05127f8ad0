// Package increase creates payment orders at Increase, a bank API in the United States.
//
// What is relied on, from Increase's documentation (increase.com/documentation, read in
// November 2026):
//
//   - "Idempotency keys": the header Idempotency-Key, at most 200 characters; at most one
//     object is ever created per key; the same request again returns that object, with
//     Idempotent-Replayed: true; another request with the key is refused with 409
//     idempotency_key_already_used_error; every list takes the filter idempotency_key
//     and returns nothing or exactly one object.
//   - "Errors": every error is an RFC 9457 object whose type is stable. 409
//     invalid_operation_error, such as an insufficient balance, is a refusal.
//   - "Sending an ACH Transfer" and "Sending an Account Transfer": the statuses.
//
// Not documented, and so not relied on: whether the rate limiter (429) runs before
// anything happens, and how soon a list shows a new object. Since a key is never
// forgotten, a repeat under it is always safe, and absence needs no proof.
//
// # Accounts
//
// debit_account is the id of an Increase account (account_...). payee_account is, for
// ACH, the id of an external account (external_account_...) or ROUTING:ACCOUNT, as in
// 101050001:987654321; for an account transfer it is an account's id. Ids are written in
// either case. The setting accounts gives them names of one's own, for either argument.
//
// business_reference is sent as the statement descriptor (ACH) or the description, and
// purpose as an ACH addendum; an account transfer has no place for a purpose.
package increase

import (
	"fmt"

	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "increase"

// defaultEndpoint is the production API ("API overview"); the other one is
// https://sandbox.increase.com.
const defaultEndpoint = "https://api.increase.com"

// A Config is the provider's part of the configuration.
type Config struct {
	Endpoint   string `yaml:"endpoint"` // https://api.increase.com if empty
	APIKeyEnv  string `yaml:"api_key_env"`
	APIKeyFile string `yaml:"api_key_file"`

	// Transfer is what a payment order becomes: "ach", which is the default, or
	// "account", a transfer between one's own accounts.
	Transfer string `yaml:"transfer"`
	// Funding is the kind of account behind ROUTING:ACCOUNT: "checking" (default) or
	// "savings".
	Funding string `yaml:"funding"`
	// RequireApproval has every transfer wait for a person at Increase.
	RequireApproval bool `yaml:"require_approval"`
	// Accounts gives accounts names of one's own: name to what debit_account or
	// payee_account would be. Letter case, spaces and hyphens of a name don't count.
	Accounts map[string]string `yaml:"accounts"`

	providers.Timing `yaml:",inline"`
}

// A Provider is a [providers.Provider] for payment_order.create.
type Provider struct {
	client          *providers.HTTPClient
	apiKey          providers.Credential
	kind            kind
	funding         string
	requireApproval bool
	accounts        map[string]string
	timing          providers.Timing
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
	kind, ok := kinds[orElse(c.Transfer, "ach")]
	if !ok {
		return nil, fmt.Errorf("transfer is %q: write ach or account", c.Transfer)
	}
	funding := orElse(c.Funding, "checking")
	if funding != "checking" && funding != "savings" {
		return nil, fmt.Errorf("funding is %q: write checking or savings", c.Funding)
	}
	accounts, err := readAccounts(c.Accounts)
	if err != nil {
		return nil, err
	}
	timing, err := c.Or(defaultTiming)
	if err != nil {
		return nil, err
	}
	return &Provider{client, apiKey, kind, funding, c.RequireApproval, accounts, timing}, nil
}

func orElse(s, standard string) string {
	if s == "" {
		return standard
	}
	return s
}

// Identity is what makes this Increase account another one, for the caller to hash: the
// mode is part of the endpoint, and each kind of transfer has lists of its own.
func (p *Provider) Identity() []string {
	return []string{Name, p.client.Endpoint(), p.kind.path, p.apiKey.Reveal()}
}
