package tbank_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/tbank"
)

const loopback = "http://127.0.0.1:1" // nobody is there

var supplier = tbank.Payee{
	Account: "40702810900000000002", BIK: "044525974", INN: "7700000000", KPP: "770001001", BankName: "АО «ТБанк»", CorrAccount: "30101810145250000974",
}

func TestRequests(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	for _, tt := range []struct {
		name   string
		config tbank.Config
		change func(*providers.PaymentOrder)
		want   string
	}{
		{"requisites in the argument", tbank.Config{}, func(*providers.PaymentOrder) {},
			`{"from":{"accountNumber":"40702810900000000001"},"to":{"name":"Ida Planted","inn":"7700000000","kpp":"770001001","bik":"044525974","accountNumber":"40702810900000000002"},"purpose":"planted purpose <1>","amount":1250.00,"meta":{"business_reference":"invoice-731","amount":"1250.00"}}`},
		{"no KPP, no purpose, a kopeck", tbank.Config{}, func(o *providers.PaymentOrder) {
			o.PayeeAccount, o.Purpose, o.Amount.Minor = "40702810900000000002:044525974:770000000012", "", 1
		},
			`{"from":{"accountNumber":"40702810900000000001"},"to":{"name":"Ida Planted","inn":"770000000012","bik":"044525974","accountNumber":"40702810900000000002"},"purpose":"invoice-731","amount":0.01,"meta":{"business_reference":"invoice-731","amount":"0.01"}}`},
		{"a payee by name, above 2^53", tbank.Config{KPP: "770001002", Payees: map[string]tbank.Payee{"supplier-1": supplier}}, func(o *providers.PaymentOrder) {
			o.PayeeAccount, o.Amount.Minor = "SUPPLIER1", 9_007_199_254_740_993
		},
			`{"from":{"accountNumber":"40702810900000000001","kpp":"770001002"},"to":{"name":"Ida Planted","inn":"7700000000","kpp":"770001001","bik":"044525974","bankName":"АО «ТБанк»","corrAccountNumber":"30101810145250000974","accountNumber":"40702810900000000002"},"purpose":"planted purpose <1>","amount":90071992547409.93,"meta":{"business_reference":"invoice-731","amount":"90071992547409.93"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Endpoint = loopback
			order := paid
			tt.change(&order)
			got, err := configured(t, tt.config).Prepare(providers.Order{Arguments: order})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	for name, tt := range map[string]struct {
		change func(*providers.PaymentOrder)
		field  string
	}{
		"dollars":                 {func(o *providers.PaymentOrder) { o.Amount.Currency = "USD" }, "currency"},
		"an IBAN pays":            {func(o *providers.PaymentOrder) { o.DebitAccount = "DE02120300000000202051" }, "debit_account"},
		"21 digits":               {func(o *providers.PaymentOrder) { o.DebitAccount += "1" }, "debit_account"},
		"an account alone":        {func(o *providers.PaymentOrder) { o.PayeeAccount = "40702810900000000002" }, "payee_account"},
		"a part too many":         {func(o *providers.PaymentOrder) { o.PayeeAccount += ":1" }, "payee_account"},
		"a short payee account":   {func(o *providers.PaymentOrder) { o.PayeeAccount = "4070281:044525974:7700000000" }, "payee_account"},
		"a short BIK":             {func(o *providers.PaymentOrder) { o.PayeeAccount = "40702810900000000002:04452597:7700000000" }, "payee_account"},
		"an INN of 11 digits":     {func(o *providers.PaymentOrder) { o.PayeeAccount = "40702810900000000002:044525974:77000000001" }, "payee_account"},
		"an empty KPP":            {func(o *providers.PaymentOrder) { o.PayeeAccount = "40702810900000000002:044525974:7700000000:" }, ""},
		"a short KPP":             {func(o *providers.PaymentOrder) { o.PayeeAccount = "40702810900000000002:044525974:7700000000:77" }, "payee_account"},
		"no payee name":           {func(o *providers.PaymentOrder) { o.PayeeName = "" }, "payee_name"},
		"no reference":            {func(o *providers.PaymentOrder) { o.BusinessReference = "" }, "business_reference"},
		"a long purpose":          {func(o *providers.PaymentOrder) { o.Purpose = strings.Repeat("я", 211) }, "purpose"},
		"a long reference for it": {func(o *providers.PaymentOrder) { o.Purpose, o.BusinessReference = "", strings.Repeat("я", 211) }, "business_reference"},
	} {
		t.Run(name, func(t *testing.T) {
			order := paid
			tt.change(&order)
			_, err := configured(t, tbank.Config{Endpoint: loopback}).Prepare(providers.Order{Arguments: order})
			if tt.field == "" {
				if err != nil {
					t.Errorf("error %v, want none", err)
				}
				return
			}
			problem, ok := errors.AsType[*providers.ArgumentError](err)
			if !ok || problem.Field != tt.field {
				t.Errorf("error %v, want an *ArgumentError for %s", err, tt.field)
			}
			if err != nil && (strings.Contains(err.Error(), "4070281") || strings.Contains(err.Error(), "7700000")) {
				t.Errorf("the error shows the account: %v", err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	with := func(change func(*tbank.Config)) tbank.Config {
		c := tbank.Config{Endpoint: loopback, TokenEnv: "ONCEWARD_TEST_TBANK_TOKEN"}
		change(&c)
		return c
	}
	payee := func(change func(*tbank.Payee)) func(*tbank.Config) {
		p := supplier
		change(&p)
		return func(c *tbank.Config) { c.Payees = map[string]tbank.Payee{"supplier": p} }
	}
	for name, tt := range map[string]struct {
		config tbank.Config
		says   string
	}{
		"no token":                 {tbank.Config{Endpoint: loopback}, "token is missing"},
		"http off loopback":        {with(func(c *tbank.Config) { c.Endpoint = "http://secured-openapi.tbank.ru" }), "endpoint"},
		"no certificate":           {with(func(c *tbank.Config) { c.Endpoint = "" }), "certificate_file"},
		"half a certificate":       {with(func(c *tbank.Config) { c.CertificateFile = "client.pem" }), "go together"},
		"no such certificate file": {with(func(c *tbank.Config) { c.CertificateFile, c.CertificateKeyFile = "no.pem", "no.key" }), "no.pem"},
		"no such CA file":          {with(func(c *tbank.Config) { c.CAFile = "no.pem" }), "ca_file"},
		"a CA file without CAs":    {with(func(c *tbank.Config) { c.CAFile = "tbank.go" }), "no certificate"},
		"a short KPP":              {with(func(c *tbank.Config) { c.KPP = "77" }), "kpp has 9 digits"},
		"payee without an account": {with(payee(func(p *tbank.Payee) { p.Account = "" })), `"supplier": the account`},
		"payee with a short BIK":   {with(payee(func(p *tbank.Payee) { p.BIK = "1" })), "BIK"},
		"payee without an INN":     {with(payee(func(p *tbank.Payee) { p.INN = "" })), "INN"},
		"payee, corr. account":     {with(payee(func(p *tbank.Payee) { p.CorrAccount = "1" })), "correspondent"},
		"a payee twice": {with(func(c *tbank.Config) {
			c.Payees = map[string]tbank.Payee{"A B": supplier, "a-b": supplier}
		}), "twice"},
		"a status with a space": {with(func(c *tbank.Config) { c.Statuses.Settled = []string{"all done"} }), "statuses.settled"},
		"an empty status":       {with(func(c *tbank.Config) { c.Statuses.Rejected = []string{""} }), "statuses.rejected"},
		"a status twice": {with(func(c *tbank.Config) {
			c.Statuses = tbank.Statuses{Settled: []string{"DONE"}, Rejected: []string{"DONE"}}
		}), "DONE twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tbank.New(tt.config)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v, want one that says %q", err, tt.says)
			}
			if strings.Contains(err.Error(), planted) || strings.Contains(err.Error(), supplier.Account) {
				t.Errorf("the error shows the token or an account: %v", err)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_TBANK_TOKEN", planted)
	if diff := cmp.Diff([]string{"tbank", loopback, planted}, configured(t, tbank.Config{Endpoint: loopback}).Identity()); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
}
