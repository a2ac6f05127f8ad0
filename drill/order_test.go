package drill

import (
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/policy"
	"github.com/onceward/onceward/providers"
)

// TestOrders: the ordinary call passes the policy, the sensitive one needs a person, and both are
// in a currency that the provider takes.
func TestOrders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		tool       string
		currencies []string
		plain      providers.Money
	}{
		{"nothing laid down", "", nil, providers.Money{Minor: 100, Currency: "EUR"}},
		{"the provider's currency", "", []string{"RUB"}, providers.Money{Minor: 100, Currency: "RUB"}},
		{"the limit's currency", `limits: {per_day: {amount: {JPY: "100"}}}`, nil, providers.Money{Minor: 25, Currency: "JPY"}},
		{"the limit's among the provider's", `limits: {per_day: {amount: {USD: "500.00"}}}`, []string{"EUR", "USD"}, providers.Money{Minor: 100, Currency: "USD"}},
		{"a limit of next to nothing", `limits: {per_day: {amount: {USD: "0.01"}}}`, nil, providers.Money{Minor: 1, Currency: "USD"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := subject(t, test.tool, test.currencies)
			if diff := cmp.Diff(test.plain, s.plain().money()); diff != "" {
				t.Errorf("the ordinary call's amount (-want +got):\n%s", diff)
			}
			if _, needs := s.sensitive(s.plain()); needs {
				t.Error("it needs approval, and nothing says so")
			}
		})
	}
	t.Run("above", func(t *testing.T) {
		t.Parallel()
		s := subject(t, `approval: {above: {USD: "0.50"}}`, nil)
		plain := s.plain()
		if s.Policy.NeedsApproval(plain.typed()) != "" || s.Policy.NeedsApproval(plain.other().typed()) != "" {
			t.Errorf("the ordinary call (%d %s) needs approval", plain.minor, plain.currency)
		}
		more, needs := s.sensitive(plain)
		if want := (providers.Money{Minor: 51, Currency: "USD"}); !needs || more.money() != want {
			t.Errorf("the sensitive call moves %v, needs approval: %v; want %v", more.money(), needs, want)
		}
	})
}

func subject(t *testing.T, text string, currencies []string) Subject {
	t.Helper()
	var tool policy.Tool
	if err := yaml.Unmarshal([]byte(text), &tool); err != nil {
		t.Fatal(err)
	}
	traits := providers.Traits{Deadline: time.Second, Lease: time.Minute, Lookup: providers.LookupByKey, Currencies: currencies}
	p, err := policy.Compile(providers.RefundCreate, tool, traits, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Subject{Action: providers.RefundCreate, Traits: traits, Tool: tool, Policy: p}
}
