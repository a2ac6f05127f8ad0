package tbank_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/tbank"
)

// TestStatuses has the words that are known without a configuration, and that a word
// nobody knows proves nothing.
func TestStatuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	for body, want := range map[string]struct {
		state ledger.State
		code  string
		mark  providers.Mark
	}{
		`{"status":"EXECUTED"}`:                            {state: ledger.Settled},
		`{"status":"IN_PROGRESS"}`:                         {state: ledger.Accepted},
		`{"status":"FAILED","errorMessage":"Ida Planted"}`: {state: ledger.Rejected},
		`{"status":"PAID_OUT"}`:                            {state: ledger.Settled}, // configured
		`{"status":"DRAFT"}`:                               {code: "unknown_status"},
		`{"status":""}`:                                    {code: "answer_unreadable"},
		`{"status":"EXECUTED","meta":{"business_reference":"invoice-731","amount":"1250.00","more":1}}`: {state: ledger.Settled},
		`{"status":"EXECUTED","meta":{}}`:                                   {state: ledger.Settled},
		`{"status":"EXECUTED","meta":{"business_reference":"invoice-732"}}`: {code: "other_object", mark: providers.Contradiction},
		`{"status":"EXECUTED","meta":{"amount":"1250.0"}}`:                  {code: "other_object", mark: providers.Contradiction},
	} {
		t.Run(body, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(body))
			}))
			defer server.Close()
			p := configured(t, tbank.Config{Endpoint: server.URL, Statuses: tbank.Statuses{Settled: []string{"PAID_OUT"}}})
			request, err := p.Prepare(providers.Order{Arguments: paid})
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Lookup(context.Background(), providers.PaymentOrderCreate, ledger.Question{ProviderKey: "k1", Payload: ledger.Payload{Request: request}})
			got, _ := errors.AsType[*providers.Error](err)
			if got == nil {
				got = &providers.Error{}
			}
			if r.State != want.state || got.Code != want.code || got.Mark != want.mark {
				t.Errorf("state %q, code %q, mark %q; want %q, %q, %q", r.State, got.Code, got.Mark, want.state, want.code, want.mark)
			}
		})
	}
}

// Two ids of one operation can't both have a payment.
func TestPaymentsOfTwoGenerations(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"status":"EXECUTED"}`))
	}))
	defer server.Close()
	_, err := configured(t, tbank.Config{Endpoint: server.URL}).Lookup(context.Background(), providers.PaymentOrderCreate, ledger.Question{ProviderKey: "k2", EarlierKeys: []string{"k1"}})
	if providers.MarkOf(err) != providers.Contradiction {
		t.Errorf("error %v, want a contradiction", err)
	}
}

// The bank's success has no body: if another payment has the id, only a look-up can tell.
func TestAnotherPaymentUnderTheID(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	b := newBank()
	b.silent = true
	server := httptest.NewServer(b)
	defer server.Close()
	p := configured(t, tbank.Config{Endpoint: server.URL, Statuses: tbank.Statuses{Accepted: []string{takenOn}}})
	var request []byte
	for _, minor := range []int64{125000, 125001} {
		order := paid
		order.Amount.Minor = minor
		var err error
		if request, err = p.Prepare(providers.Order{Arguments: order}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Apply(context.Background(), providers.PaymentOrderCreate, ledger.Attempt{ProviderKey: "k1", Payload: ledger.Payload{Request: request}, MaySend: func() error { return nil }}); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.ids) != 1 {
		t.Errorf("%d payments, want 1", len(b.ids))
	}
	_, err := p.Lookup(context.Background(), providers.PaymentOrderCreate, ledger.Question{ProviderKey: "k1", Payload: ledger.Payload{Request: request}})
	if providers.MarkOf(err) != providers.Contradiction {
		t.Errorf("look-up: %v, want a contradiction", err)
	}
}

// TestSuccesses has the answers to a payment that look like a success.
func TestSuccesses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	for name, tt := range map[string]struct {
		status     int
		kind, body string
		code       string
	}{
		"created":               {201, "", "", ""},
		"created, with a body":  {201, "application/json", `{"anything": 1}`, ""},
		"created, with a page":  {201, "text/html", "<html>", "answer_unreadable"},
		"an empty 200":          {200, "", "", "answer_unreadable"},
		"an empty 204":          {204, "", "", "answer_unreadable"},
		"accepted by who knows": {202, "application/json", `{}`, "answer_unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.kind != "" {
					w.Header().Set("Content-Type", tt.kind)
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}))
			defer server.Close()
			_, err := configured(t, tbank.Config{Endpoint: server.URL}).Apply(context.Background(), providers.PaymentOrderCreate, ledger.Attempt{
				ProviderKey: "k1", Payload: ledger.Payload{Request: []byte(`{"amount":1}`)}, MaySend: func() error { return nil },
			})
			got, _ := errors.AsType[*providers.Error](err)
			if got == nil {
				got = &providers.Error{}
			}
			if got.Code != tt.code || got.Mark != "" {
				t.Errorf("error %v, want code %q", err, tt.code)
			}
		})
	}
}

// TestClientCertificate speaks to a server that asks for a certificate, as the bank's
// secured host does.
func TestClientCertificate(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(newBank())
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	server.TLS.ClientCAs.AddCert(certificate)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()

	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	c := tbank.Config{
		Endpoint: server.URL, CAFile: write("ca.pem", "CERTIFICATE", server.Certificate().Raw),
		CertificateFile: write("client.pem", "CERTIFICATE", der), CertificateKeyFile: write("client.key", "PRIVATE KEY", private),
	}
	look := func(c tbank.Config) error {
		_, err := configured(t, c).Lookup(context.Background(), providers.PaymentOrderCreate, ledger.Question{ProviderKey: "k1"})
		return err
	}
	if err := look(c); !errors.Is(err, providers.ErrAbsent) {
		t.Errorf("with the certificate: %v, want ErrAbsent", err)
	}
	c.CertificateFile, c.CertificateKeyFile = "", ""
	if err := look(c); err == nil || errors.Is(err, providers.ErrAbsent) {
		t.Errorf("without the certificate: %v, want an error that learnt nothing", err)
	}
}
