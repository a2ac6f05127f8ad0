// Package stripe makes refunds with Stripe's API v1.
//
// What it rests on, from Stripe's documentation as of 2026:
//
//   - "Idempotent requests": the status and body of the first request with a key are
//     saved once its execution begins, errors 500 included, and given to every repeat;
//     other parameters under the same key are an error; a key may be forgotten once it is
//     24 hours old, and a repeat then acts again. What fails validation, or meets a
//     concurrent request with the same key, is not saved.
//   - "API v2 overview": top-level lists of v1 are immediately consistent.
//   - "The Refund object": a refund is pending, requires_action, succeeded, failed or
//     canceled.
//   - "Currencies": see amount.go.
//
// Stripe takes a refund's amount in the currency of the payment, and no currency beside
// it. A call that names another currency than the payment's is noticed by the answer
// only; it raises an alarm and goes to a person.
package stripe

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "stripe"

const defaultEndpoint = "https://api.stripe.com"

// defaultVersion pins the shape of requests and answers ("Versioning").
const defaultVersion = "2025-04-30.basil"

// defaults: Stripe doesn't say how long a request may run on after the connection broke;
// Settle is longer than any client's time limit in its own libraries (80 s).
var defaults = providers.Timing{
	Deadline: 20 * time.Second,
	Lease:    40 * time.Second,
	Settle:   2 * time.Minute,
	Window:   24 * time.Hour,
	Margin:   time.Hour,
}

// A Config is the provider's part of the configuration file.
type Config struct {
	providers.Timing `yaml:",inline"`
	APIKeyEnv        string `yaml:"api_key_env"`
	APIKeyFile       string `yaml:"api_key_file"`
	APIVersion       string `yaml:"api_version"` // of the Stripe-Version header
	Endpoint         string `yaml:"endpoint"`
}

// A Provider is Stripe with one account's key. It is safe for concurrent use.
type Provider struct {
	client  *providers.HTTPClient
	timing  providers.Timing
	key     providers.Credential
	version string
}

var _ providers.Provider = (*Provider)(nil)

// New checks the configuration and reads the API key. It speaks to nobody.
func New(c Config) (*Provider, error) {
	timing, err := c.Timing.Or(defaults)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	key, err := providers.ReadCredential("api_key", c.APIKeyEnv, c.APIKeyFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if mode(key) == "" {
		return nil, errors.New(Name + ": api_key is a secret or restricted key, which begins with sk_live_, sk_test_, rk_live_ or rk_test_; this one doesn't")
	}
	if c.Endpoint == "" {
		c.Endpoint = defaultEndpoint
	}
	if c.APIVersion == "" {
		c.APIVersion = defaultVersion
	}
	client, err := providers.NewHTTPClient(c.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("%s: endpoint: %w", Name, err)
	}
	return &Provider{client, timing, key, c.APIVersion}, nil
}

// mode tells test keys from live ones ("API keys").
func mode(key providers.Credential) string {
	for _, kind := range []string{"sk_", "rk_"} {
		for _, mode := range []string{"live", "test"} {
			if strings.HasPrefix(key.Reveal(), kind+mode+"_") {
				return mode
			}
		}
	}
	return ""
}

// Identity is what an operation is bound to: idempotency keys and refunds belong to an
// account and a mode, and the key stands for both. The caller hashes it.
func (p *Provider) Identity() []string {
	return []string{p.client.Endpoint(), mode(p.key), p.key.Reveal()}
}

// Traits implements [providers.Provider].
func (p *Provider) Traits(action string) (t providers.Traits, ok bool) {
	if action != providers.RefundCreate {
		return providers.Traits{}, false
	}
	return providers.Traits{
		Deadline: p.timing.Deadline, Lease: p.timing.Lease, Settle: p.timing.Settle,
		Key: providers.KeyInHeader, Window: p.timing.Window, Margin: p.timing.Margin,
		Reuse: providers.ReuseRefused, CachesErrors: true,
		Lookup: providers.LookupByParent, ProvesAbsence: true,
		LimiterFirst: true,
	}, true
}

func (p *Provider) header() http.Header {
	return http.Header{
		"Authorization":  {"Bearer " + p.key.Reveal()},
		"Stripe-Version": {p.version},
		"Accept":         {"application/json"},
	}
}
