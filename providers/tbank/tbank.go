// Package tbank creates payment orders in roubles at T-Bank (T-API, for companies).
//
// What is relied on, from T-Bank's documentation (developer.tbank.ru/docs/api, read in
// November 2026):
//
//   - "Выполнить платеж" (payments-core-pay): POST /api/v1/payment/ruble-transfer/pay with
//     an id of our own. All calls are de-duplicated by it within the company (for
//     partners: within the company and the clientId), without a limit of time: one id
//     makes one payment. The payment is carried out asynchronously.
//   - "Получить статус платежа" (payments-core-get-status): GET /api/v1/payment/{id} by
//     that id. With another clientId the payment can't be found any more.
//   - An id has at most 64 characters, a purpose at most 210, an account 20 or 22 digits.
//   - The secured host asks for a client certificate, which is bound to the token.
//
// Not confirmed there, since the pages leave it out: that success is 201 without a body
// (any other success is looked up first), the spelling of the error body (errorCode),
// the words for a payment's status but EXECUTED (see [Config.Statuses]), and how an
// unknown id is answered (404 is taken for "no such payment", which proves nothing
// here). A repeat under the id is always safe, so that absence needs no proof.
//
// # Accounts
//
// debit_account is an account number of 20 or 22 digits. payee_account is
// ACCOUNT:BIK:INN or ACCOUNT:BIK:INN:KPP, or the name of one of the payees that the
// configuration lists with all requisites. purpose is what the bank reads; if it is
// empty, business_reference takes its place. business_reference and amount are also sent
// as meta, and compared where a look-up shows them.
package tbank

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "tbank"

// defaultEndpoint is the host of the documented methods.
const defaultEndpoint = "https://secured-openapi.tbank.ru"

// A Config is the provider's part of the configuration.
type Config struct {
	Endpoint  string `yaml:"endpoint"` // https://secured-openapi.tbank.ru if empty
	TokenEnv  string `yaml:"token_env"`
	TokenFile string `yaml:"token_file"`
	// CertificateFile and CertificateKeyFile are the client certificate and its private
	// key (PEM). The default endpoint needs them.
	CertificateFile    string `yaml:"certificate_file"`
	CertificateKeyFile string `yaml:"certificate_key_file"`
	// CAFile has the certificate authorities to trust (PEM), instead of the system's.
	CAFile string `yaml:"ca_file"`

	// KPP is the paying company's, if the bank wants it.
	KPP string `yaml:"kpp"`
	// Payees gives payees names of one's own, for payee_account. Letter case, spaces and
	// hyphens of a name don't count.
	Payees map[string]Payee `yaml:"payees"`
	// Statuses adds to the words for a payment's status that are known.
	Statuses Statuses `yaml:"statuses"`

	providers.Timing `yaml:",inline"`
}

// Statuses are the bank's words for how far a payment has come. A word that is in no list
// proves nothing.
type Statuses struct {
	Accepted []string `yaml:"accepted"`
	Settled  []string `yaml:"settled"`
	Rejected []string `yaml:"rejected"`
}

// A Provider is a [providers.Provider] for payment_order.create.
type Provider struct {
	client *providers.HTTPClient
	token  providers.Credential
	kpp    string
	payees map[string]requisites
	states map[string]ledger.State
	timing providers.Timing
}

var _ providers.Provider = (*Provider)(nil)

// New checks the configuration. Its errors name the setting and never show a secret.
func New(c Config) (*Provider, error) {
	endpoint := c.Endpoint
	if endpoint == "" {
		endpoint = defaultEndpoint
	}
	client, err := providers.NewHTTPClient(endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	token, err := providers.ReadCredential("token", c.TokenEnv, c.TokenFile)
	if err != nil {
		return nil, err
	}
	config, err := c.tls(endpoint)
	if err != nil {
		return nil, err
	}
	if config != nil {
		client = client.WithTLS(config)
	}
	if c.KPP != "" && !kppDigits.MatchString(c.KPP) {
		return nil, errors.New("kpp has 9 digits")
	}
	payees, err := readPayees(c.Payees)
	if err != nil {
		return nil, err
	}
	states, err := c.Statuses.states()
	if err != nil {
		return nil, err
	}
	timing, err := c.Or(defaultTiming)
	if err != nil {
		return nil, err
	}
	return &Provider{client, token, c.KPP, payees, states, timing}, nil
}

// tls is nil where there is nothing to say about it.
func (c Config) tls(endpoint string) (*tls.Config, error) {
	if c.CertificateFile == "" && c.CertificateKeyFile == "" && endpoint == defaultEndpoint {
		return nil, errors.New("certificate_file and certificate_key_file are missing: the bank's secured host asks for a client certificate")
	}
	if (c.CertificateFile == "") != (c.CertificateKeyFile == "") {
		return nil, errors.New("certificate_file and certificate_key_file go together: give both")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CertificateFile != "" {
		certificate, err := tls.LoadX509KeyPair(c.CertificateFile, c.CertificateKeyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate_file and certificate_key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file has no certificate in PEM form")
		}
	}
	return config, nil
}

// Identity is what makes this company's access another one, for the caller to hash.
func (p *Provider) Identity() []string {
	return []string{Name, p.client.Endpoint(), p.token.Reveal()}
}
