package stripe_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/stripe"
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
		config stripe.Config
		want   string // in the error
	}{
		{"no key", stripe.Config{}, "api_key_env"},
		{"an environment variable that isn't set", stripe.Config{APIKeyEnv: "ONCEWARD_TEST_NO_SUCH_VARIABLE"}, "ONCEWARD_TEST_NO_SUCH_VARIABLE"},
		{"both", stripe.Config{APIKeyEnv: "X", APIKeyFile: good}, "keep api_key_env or api_key_file"},
		{"a publishable key", stripe.Config{APIKeyFile: keyFile(t, "pk_test_planted4242")}, "sk_live_"},
		{"something else", stripe.Config{APIKeyFile: keyFile(t, "planted4242")}, "sk_live_"},
		{"http", stripe.Config{APIKeyFile: good, Endpoint: "http://api.stripe.com"}, "https://"},
		{"a lease that is too short", stripe.Config{APIKeyFile: good, Timing: providers.Timing{Deadline: time.Minute, Lease: time.Minute}}, "lease"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := stripe.New(tt.config)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "stripe: ") {
				t.Fatalf("error %v, want one that says stripe: and %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "planted") {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

// Another key, mode or endpoint is another scope; the version isn't.
func TestIdentity(t *testing.T) {
	t.Parallel()
	identity := func(c stripe.Config) string {
		t.Helper()
		p, err := stripe.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(p.Identity(), "|")
	}
	test, live := keyFile(t, "sk_test_1"), keyFile(t, "sk_live_1")
	base := identity(stripe.Config{APIKeyFile: test})
	if diff := cmp.Diff("https://api.stripe.com|test|sk_test_1", base); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	for name, other := range map[string]string{
		"live":             identity(stripe.Config{APIKeyFile: live}),
		"another key":      identity(stripe.Config{APIKeyFile: keyFile(t, "sk_test_2")}),
		"another endpoint": identity(stripe.Config{APIKeyFile: test, Endpoint: "https://stripe.example.com"}),
	} {
		if other == base {
			t.Errorf("%s: the same identity", name)
		}
	}
	if identity(stripe.Config{APIKeyFile: test, APIVersion: "2026-01-01.x"}) != base {
		t.Error("another version is another identity")
	}
}

// Traits are promises: a changed one is a changed promise to the ledger.
func TestTraits(t *testing.T) {
	t.Parallel()
	p, err := stripe.New(stripe.Config{APIKeyFile: keyFile(t, plantedKey), Timing: providers.Timing{Window: 20 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := p.Traits(providers.RefundCreate)
	want := providers.Traits{
		Deadline: 20 * time.Second, Lease: 40 * time.Second, Settle: 2 * time.Minute,
		Key: providers.KeyInHeader, Window: 20 * time.Hour, Margin: time.Hour, Reuse: providers.ReuseRefused, CachesErrors: true,
		Lookup: providers.LookupByParent, ProvesAbsence: true, LimiterFirst: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("traits (-want +got):\n%s", diff)
	}
	for _, action := range []string{providers.EmailSend, providers.PaymentOrderCreate, ""} {
		if _, ok := p.Traits(action); ok {
			t.Errorf("%q is served", action)
		}
	}
}
