package yookassa_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/yookassa"
)

func keyFile(t *testing.T, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := keyFile(t, plantedKey)
	for _, tt := range []struct {
		name   string
		config yookassa.Config
		want   string // in the error
	}{
		{"no shop", yookassa.Config{SecretKeyFile: good}, "shop_id"},
		{"a shop with a colon", yookassa.Config{ShopID: "1:2", SecretKeyFile: good}, "shop_id"},
		{"no key", yookassa.Config{ShopID: shop}, "secret_key_env"},
		{"both", yookassa.Config{ShopID: shop, SecretKeyEnv: "X", SecretKeyFile: good}, "keep secret_key_env or secret_key_file"},
		{"http", yookassa.Config{ShopID: shop, SecretKeyFile: good, Endpoint: "http://api.yookassa.ru"}, "https://"},
		{"a margin longer than the window", yookassa.Config{ShopID: shop, SecretKeyFile: good, Timing: providers.Timing{Window: time.Hour}}, "margin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := yookassa.New(tt.config)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "yookassa: ") {
				t.Fatalf("error %v, want one that says yookassa: and %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "planted") {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	p, err := yookassa.New(yookassa.Config{ShopID: shop, SecretKeyFile: keyFile(t, plantedKey)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"https://api.yookassa.ru", shop, plantedKey}, p.Identity()); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	p, err := yookassa.New(yookassa.Config{ShopID: shop, SecretKeyFile: keyFile(t, plantedKey)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Prepare(providers.Order{OperationID: "op_1", ProviderKey: "k", Arguments: providers.Refund{
		PaymentID: payment, Amount: providers.Money{Minor: 5, Currency: "RUB"}, Note: plantedNote,
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"payment_id":"` + payment + `","amount":{"value":"0.05","currency":"RUB"},"metadata":{"onceward_operation":"op_1"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	for field, bad := range map[string]providers.Refund{
		"payment_id": {PaymentID: "../payments", Amount: providers.Money{Minor: 5, Currency: "RUB"}},
		"amount":     {PaymentID: payment, Amount: providers.Money{Minor: 0, Currency: "RUB"}},
		"currency":   {PaymentID: payment, Amount: providers.Money{Minor: 5, Currency: "JPY"}},
	} {
		_, err := p.Prepare(providers.Order{Arguments: bad})
		if problem, ok := errors.AsType[*providers.ArgumentError](err); !ok || problem.Field != field {
			t.Errorf("a bad %s: %v", field, err)
		}
	}
}

// Traits are promises: a changed one is a changed promise to the ledger.
func TestTraits(t *testing.T) {
	t.Parallel()
	p, err := yookassa.New(yookassa.Config{ShopID: shop, SecretKeyFile: keyFile(t, plantedKey), Timing: providers.Timing{Window: 20 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := p.Traits(providers.RefundCreate)
	want := providers.Traits{
		Deadline: 20 * time.Second, Lease: 40 * time.Second, Settle: 2 * time.Minute,
		Key: providers.KeyInHeader, Window: 20 * time.Hour, Margin: 2 * time.Hour, Reuse: providers.ReuseRefused,
		Lookup: providers.LookupByParent,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("traits (-want +got):\n%s", diff)
	}
}
