// Package yookassa makes refunds with the API v3 of YooKassa.
//
// What it rests on, from YooKassa's documentation as of 2026:
//
//   - "HTTP response codes": 500 means that the result of the processing is unknown; it is
//     to be asked for with the same key again. 400, 401, 403 and 404 have an error object
//     with a code.
//   - "Interaction format": every POST carries the header Idempotence-Key (this is its
//     spelling); another request under the same key is an error, invalid_request with the
//     parameter Idempotence-Key. That keys have up to 64 characters and are known for 24
//     hours is remembered, not confirmed: the window can be set in the configuration.
//   - "List of refunds": by payment, in pages with a cursor. How soon a refund is in the
//     list isn't stated, so a list without it proves nothing.
package yookassa

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "yookassa"

const defaultEndpoint = "https://api.yookassa.ru"

// defaults: how long a request may run on there isn't documented; neither is anything
// about a rate limiter.
var defaults = providers.Timing{
	Deadline: 20 * time.Second,
	Lease:    40 * time.Second,
	Settle:   2 * time.Minute,
	Window:   24 * time.Hour,
	Margin:   2 * time.Hour,
}

// A Config is the provider's part of the configuration file.
type Config struct {
	providers.Timing `yaml:",inline"`
	ShopID           string `yaml:"shop_id"`
	SecretKeyEnv     string `yaml:"secret_key_env"`
	SecretKeyFile    string `yaml:"secret_key_file"`
	Endpoint         string `yaml:"endpoint"`
}

// A Provider is YooKassa with one shop's key. It is safe for concurrent use.
type Provider struct {
	client *providers.HTTPClient
	timing providers.Timing
	shop   string
	key    providers.Credential
}

var _ providers.Provider = (*Provider)(nil)

var shopID = regexp.MustCompile(`^[0-9]{1,32}$`)

// New checks the configuration and reads the secret key. It speaks to nobody.
func New(c Config) (*Provider, error) {
	timing, err := c.Timing.Or(defaults)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if !shopID.MatchString(c.ShopID) {
		return nil, errors.New(Name + ": shop_id is the shop's number, such as 123456")
	}
	key, err := providers.ReadCredential("secret_key", c.SecretKeyEnv, c.SecretKeyFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if c.Endpoint == "" {
		c.Endpoint = defaultEndpoint
	}
	client, err := providers.NewHTTPClient(c.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("%s: endpoint: %w", Name, err)
	}
	return &Provider{client, timing, c.ShopID, key}, nil
}

// Identity is what an operation is bound to: keys and refunds belong to a shop, and test
// shops have numbers and keys of their own. The caller hashes it.
func (p *Provider) Identity() []string {
	return []string{p.client.Endpoint(), p.shop, p.key.Reveal()}
}

// Traits implements [providers.Provider].
func (p *Provider) Traits(action string) (t providers.Traits, ok bool) {
	if action != providers.RefundCreate {
		return providers.Traits{}, false
	}
	return providers.Traits{
		Deadline: p.timing.Deadline, Lease: p.timing.Lease, Settle: p.timing.Settle,
		Key: providers.KeyInHeader, Window: p.timing.Window, Margin: p.timing.Margin,
		Reuse:  providers.ReuseRefused,
		Lookup: providers.LookupByParent,
	}, true
}

func (p *Provider) header() http.Header {
	login := base64.StdEncoding.EncodeToString([]byte(p.shop + ":" + p.key.Reveal()))
	return http.Header{"Authorization": {"Basic " + login}, "Accept": {"application/json"}}
}
