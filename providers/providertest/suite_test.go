package providertest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/providertest"
)

var toyRefundArguments = providers.Refund{
	PaymentID: "pay_1", Amount: providers.Money{Minor: 10000, Currency: "USD"}, Note: toyNote,
}

func toyHarness(bug string) providertest.Harness {
	other := toyRefundArguments
	other.Amount.Minor = 2500
	plain := map[string][]string{"Content-Type": {"text/plain"}}
	return providertest.Harness{
		Action: providers.RefundCreate,
		New: func(t *testing.T, endpoint string) providers.Provider {
			client, err := providers.NewHTTPClient(endpoint)
			if err != nil {
				t.Fatal(err)
			}
			return &toy{client, bug}
		},
		Fake: func(t *testing.T) providertest.Fake {
			return (&toyServer{forgetful: bug == "the server knows no keys"}).fake(t)
		},
		Arguments: toyRefundArguments,
		Other:     other,
		Answers: []providertest.Answer{
			{Name: "400", Status: 400, Header: plain, Body: "toy error: invalid", Want: ledger.Refused},
			{Name: "401", Status: 401, Header: plain, Body: "toy error: unknown_key", Want: ledger.NotSent, Alarm: "credentials_refused"},
			{Name: "404", Status: 404, Header: plain, Body: "toy error: no_payment", Want: ledger.Refused},
			{Name: "409", Status: 409, Header: plain, Body: "toy error: key_reused", Want: ledger.Contradiction},
			{Name: "429", Status: 429, Header: plain, Body: "toy error: limit", Want: ledger.NotSent},
			{Name: "500", Status: 500, Header: plain, Body: "toy error: internal", Acts: true, Want: ledger.Unclear},
		},
		Secrets: []string{toySecret},
		Private: []string{toyNote},
	}
}

// bugVariable names the bug of the toy, in a process of its own that has to fail.
const bugVariable = "ONCEWARD_TEST_TOY_BUG"

func TestProvider(t *testing.T) {
	providertest.TestProvider(t, toyHarness(os.Getenv(bugVariable)))
}

// TestSuiteFindsBugs runs the suite over a provider with one bug, in a process of its own,
// and wants the test that is there for it to be red.
func TestSuiteFindsBugs(t *testing.T) {
	if os.Getenv(bugVariable) != "" {
		t.Skip("this is such a process")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ bug, test string }{
		{"margin shorter than an attempt", "traits"},
		{"window without a key", "traits"},
		{"any currency", "prepare"},
		{"impure Prepare", "prepare"},
		{"never asks MaySend", "attempt/too_late"},
		{"no key sent", "attempt/success"},
		{"the server knows no keys", "attempt/success"},
		{"evidence shows the answer", "attempt/success"},
		{"errors show secrets", "attempt/refused"},
		{"tries again", "attempt/FIN_before_the_effect"},
		{"errors are refusals", "attempt/RST_after_the_effect"},
		{"errors are not sent", "attempt/silence_after_the_effect"},
		{"every 4xx is a refusal", "attempt/404_of_a_gateway_after_the_effect"},
		{"a 500 is a refusal", "attempt/500"},
		{"any 200 is a success", "attempt/half_of_the_JSON"},
		{"needs what was sealed", "look-up/present"},
		{"one page", "look-up/present"},
		{"takes any refund", "look-up/absent"},
		{"takes any amount", "look-up/changed/another_amount"},
		{"takes the first of two", "look-up/changed/two_objects"},
		{"takes the rejected for done", "look-up/changed/rejected"},
		{"404 is absence", "look-up/404_of_a_gateway_before_the_effect"},
		{"an empty object is absence", "look-up/200_with_an_empty_object_after_the_effect"},
		{"a refused question is a refusal", "look-up/400"},
		{"window for ever", "traits"},
		{"the server knows no keys", "ledger/run/lag"},
		{"errors are refusals", "ledger/run/RST_after_the_effect"},
		{"errors are not sent", "ledger/run/FIN_after_the_effect"},
		{"one page", "ledger/run/found/on_another_page"},
		{"takes the first of two", "ledger/run/found/two_objects"},
		{"evidence shows the answer", "ledger"},
		{"any 200 is a success", "ledger/run/200_of_a_portal_before_the_effect"},
	} {
		t.Run(tt.bug+" "+tt.test, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), self, "-test.run=^TestProvider$/^"+strings.ReplaceAll(tt.test, "/", "$/^")+"$", "-test.count=1")
			run.Env = append(os.Environ(), bugVariable+"="+tt.bug)
			output, err := run.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "--- FAIL: TestProvider/"+tt.test) {
				t.Errorf("%s isn't red with this bug: %v\n%s", tt.test, err, output)
			}
		})
	}
}
