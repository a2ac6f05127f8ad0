// Package webhook speaks to any HTTP gateway of one's own that the configuration
// describes: for payment orders, refunds and mail.
//
// A payment-order API with POST /v1/payment-orders and an Idempotency-Key is described
// like this:
//
//	providers:
//	  webhook:
//	    endpoint: https://payments.example.com
//	    headers:
//	      Authorization: {env: PAYMENTS_TOKEN, prefix: "Bearer "}
//	    actions:
//	      payment_order.create:
//	        create: {path: /v1/payment-orders}
//	        key: {header: Idempotency-Key, reuse: refused}
//	        window: 24h
//	        body:
//	          account_id: debit_account
//	          amount_minor: amount_minor
//	          currency: currency
//	          business_reference: business_reference
//	        answer:
//	          id: id
//	          status: status
//	          error: error.code
//	          same: {amount_minor: amount_minor, currency: currency}
//	        statuses: {accepted: [pending], settled: [completed], rejected: [failed]}
//	        errors:
//	          - {status: 409, code: request_in_progress, means: in_flight}
//	          - {status: 422, code: idempotency_key_reused, means: key_reused}
//	        lookup:
//	          path: /v1/payment-orders/by-key/{key}
//	          not_found: absent
//	          not_found_code: payment_order_not_found
//
// Nothing is assumed of a gateway that the configuration doesn't say. Above all: key and
// lookup have to be given, or said to be none ({none: true}); the window of the key has
// to be given, or said to have no end (for_ever: true); a refusal counts only if it is in
// JSON and has the gateway's own error code or stands under errors; and an answer without
// a known status proves nothing. A gateway with neither a key nor a look-up leaves every
// lost answer to a person.
//
// # Paths
//
// Where a member stands in JSON is written with points ("data.id", "items.0.id"), or as a
// JSON Pointer (RFC 6901) where a name has a point in it ("/data/order.id"). "." is the
// whole.
package webhook

import (
	"fmt"
	"maps"
	"slices"

	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "webhook"

// A Provider is a [providers.Provider] for the actions that its configuration describes.
type Provider struct {
	client  *providers.HTTPClient
	headers []header
	actions map[string]*action
}

var _ providers.Provider = (*Provider)(nil)

// New checks the configuration. Its errors name the setting and what to write instead,
// and never show a secret.
func New(c Config) (*Provider, error) {
	if c.Endpoint == "" {
		return nil, fmt.Errorf("endpoint is missing: write the gateway's URL, such as https://payments.example.com")
	}
	client, err := providers.NewHTTPClient(c.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	headers, err := readHeaders(c.Headers)
	if err != nil {
		return nil, err
	}
	base, err := c.Or(defaultTiming)
	if err != nil {
		return nil, err
	}
	if len(c.Actions) == 0 {
		return nil, fmt.Errorf("actions is missing: describe payment_order.create, refund or email.send")
	}
	p := &Provider{client: client, headers: headers, actions: map[string]*action{}}
	for _, name := range slices.Sorted(maps.Keys(c.Actions)) {
		a, err := newAction(name, c.Actions[name], base, headers)
		if err != nil {
			return nil, fmt.Errorf("actions: %s: %w", name, err)
		}
		p.actions[name] = a
	}
	return p, nil
}

// Identity is what makes this gateway, or the account at it, another one, for the caller
// to hash: where it is, who we are, where things are created, and how the key is sent.
func (p *Provider) Identity() []string {
	identity := []string{Name, p.client.Endpoint()}
	for _, h := range p.headers {
		identity = append(identity, h.name, h.value())
	}
	for _, name := range slices.Sorted(maps.Keys(p.actions)) {
		a := p.actions[name]
		identity = append(identity, name, a.method, a.path, a.key.Header, a.key.Member, a.key.Format)
	}
	return identity
}
