// Package moderntreasury creates payment orders at Modern Treasury, which passes them to
// the banks of its customers.
//
// What is relied on, from Modern Treasury's documentation (docs.moderntreasury.com, read
// in November 2026):
//
//   - "Idempotent Requests": the header Idempotency-Key; only the results of successful
//     requests are kept, for 24 hours, and echoed for the same key and credentials, on
//     whatever route; a key is known per API key; 409 while the first request is still
//     being stored.
//   - "Payment Order": external_id is a unique identifier of our own, at most 180
//     characters; the list takes it as a filter; live_mode tells the environment.
//   - "Errors" and "Status Codes": errors.code, and 422 for data that is refused.
//   - "Authentication": HTTP basic authentication with the organization's id and an API
//     key, which decides between live and test.
//
// Not documented, and so not relied on: that the uniqueness of external_id is enforced at
// once, how soon a list shows a new object, and whether the rate limiter (429) runs
// before anything happens. An order that isn't found after a lost answer is repeated
// under its key for 23 hours; after that a person is asked.
//
// # Accounts
//
// debit_account is the id of an internal account, payee_account that of an external or
// internal one: UUIDs, with or without hyphens. The setting accounts gives them names of
// one's own. payee_name isn't sent: the account at Modern Treasury has its owner.
// business_reference is sent as metadata, purpose as the remittance information.
package moderntreasury

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/bojanz/currency"
	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "moderntreasury"

// defaultEndpoint serves both environments ("Authentication").
const defaultEndpoint = "https://app.moderntreasury.com"

// A Config is the provider's part of the configuration.
type Config struct {
	Endpoint       string `yaml:"endpoint"` // https://app.moderntreasury.com if empty
	OrganizationID string `yaml:"organization_id"`
	APIKeyEnv      string `yaml:"api_key_env"`
	APIKeyFile     string `yaml:"api_key_file"`

	// Mode is the environment that the API key belongs to, "live" (default) or "test". An
	// answer from the other one goes to a person.
	Mode string `yaml:"mode"`
	// Type is the payment order's type, such as "ach" (default), "wire", "rtp", "book" or
	// "sepa"; Subtype and Priority are sent if they are set.
	Type     string `yaml:"type"`
	Subtype  string `yaml:"subtype"`
	Priority string `yaml:"priority"`
	// Currencies are those that may be sent; USD if empty. Amounts are sent in minor
	// units as ISO 4217 has them.
	Currencies []string `yaml:"currencies"`
	// Accounts gives accounts names of one's own: name to UUID. Letter case, spaces and
	// hyphens of a name don't count.
	Accounts map[string]string `yaml:"accounts"`

	providers.Timing `yaml:",inline"`
}

// A Provider is a [providers.Provider] for payment_order.create.
type Provider struct {
	client         *providers.HTTPClient
	organizationID string
	apiKey         providers.Credential
	live           bool
	order          request // what every request has
	currencies     []string
	accounts       map[string]string
	timing         providers.Timing
}

var _ providers.Provider = (*Provider)(nil)

var orderType = regexp.MustCompile(`^[a-z][a-z_]{1,39}$`)

// New checks the configuration. Its errors name the setting and never show a secret.
func New(c Config) (*Provider, error) {
	client, err := providers.NewHTTPClient(orElse(c.Endpoint, defaultEndpoint))
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	apiKey, err := providers.ReadCredential("api_key", c.APIKeyEnv, c.APIKeyFile)
	if err != nil {
		return nil, err
	}
	c.Mode, c.Type = orElse(c.Mode, "live"), orElse(c.Type, "ach")
	switch {
	case c.OrganizationID == "":
		return nil, fmt.Errorf("organization_id is missing: it stands beside the API key in Modern Treasury's developer settings")
	case c.Mode != "live" && c.Mode != "test":
		return nil, fmt.Errorf("mode is %q: write live or test", c.Mode)
	case !orderType.MatchString(c.Type):
		return nil, fmt.Errorf("type is %q: write a payment order type such as ach, wire, rtp, book or sepa", c.Type)
	case c.Priority != "" && c.Priority != "normal" && c.Priority != "high":
		return nil, fmt.Errorf("priority is %q: write normal or high", c.Priority)
	}
	if len(c.Currencies) == 0 {
		c.Currencies = []string{"USD"}
	}
	for _, code := range c.Currencies {
		if _, ok := currency.GetDigits(code); !ok {
			return nil, fmt.Errorf("currencies has %q: write ISO 4217 codes such as USD", code)
		}
	}
	accounts, err := readAccounts(c.Accounts)
	if err != nil {
		return nil, err
	}
	timing, err := c.Or(defaultTiming)
	if err != nil {
		return nil, err
	}
	return &Provider{
		client: client, organizationID: c.OrganizationID, apiKey: apiKey, live: c.Mode == "live",
		order:      request{Type: c.Type, Subtype: c.Subtype, Priority: c.Priority, Direction: "credit"},
		currencies: slices.Clone(c.Currencies), accounts: accounts, timing: timing,
	}, nil
}

func orElse(s, standard string) string {
	if s == "" {
		return standard
	}
	return s
}

// Identity is what makes this account another one, for the caller to hash. A key is known
// per API key, so that another key of the same organization is another account.
func (p *Provider) Identity() []string {
	mode := "test"
	if p.live {
		mode = "live"
	}
	return []string{Name, p.client.Endpoint(), mode, p.organizationID, p.apiKey.Reveal()}
}
