package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

var update = flag.Bool("update", false, "rewrite the generated parts of the documentation")

const (
	providersDoc = "docs/providers.md"
	policyDoc    = "docs/policy.md"
)

// documented are the YAML examples of the documentation, in its order.
func documented(t *testing.T, doc []byte) []string {
	t.Helper()
	var found []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(doc, -1) {
		found = append(found, string(block[1]))
	}
	if len(found) < 9 {
		t.Fatalf("the documentation has %d examples, want one for every provider and one for statements", len(found))
	}
	return found
}

// loaded reads a configuration as serve does, its secrets and certificates made up.
func loaded(t *testing.T, text string) (*configuration, error) {
	t.Helper()
	dir := t.TempDir()
	for _, match := range regexp.MustCompile(`(?:_env|\benv): ([A-Z_]+)`).FindAllStringSubmatch(text, -1) {
		t.Setenv(match[1], "sk_test_an_example")
	}
	if strings.Contains(text, "/etc/onceward/") {
		writeCertificate(t, dir)
		text = strings.ReplaceAll(text, "/etc/onceward", filepath.ToSlash(dir))
	}
	file := filepath.Join(dir, "onceward.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return configFlags{Config: file}.read()
}

// loadedQuietly reads a configuration that names no secrets, also in parallel tests.
func loadedQuietly(t *testing.T, text string) (*configuration, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "onceward.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return configFlags{Config: file}.read()
}

func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tbank.pem": {Type: "CERTIFICATE", Bytes: certificate}, "tbank-key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProvidersDoc: every example of the documentation is a configuration that starts, and
// its table says what the code's traits say.
func TestProvidersDoc(t *testing.T) {
	doc, err := os.ReadFile(providersDoc)
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{
		"| provider | tool | key | window | look-up | proves absence | counts after the lease | after a lost answer |",
		"| --- | --- | --- | --- | --- | --- | --- | --- |",
	}
	for _, example := range documented(t, doc) {
		c, err := loaded(t, example)
		if err != nil {
			t.Errorf("an example isn't a configuration: %v", err)
			continue
		}
		if csv := c.Statements.CSV; csv != nil {
			if err := csv.Check(); err != nil {
				t.Errorf("an example can't be read by: %v", err)
			}
		}
		made := map[string]realProvider{}
		for _, action := range actions {
			name, p, err := c.provider(action, made)
			if err != nil {
				t.Errorf("an example doesn't start: %v", err)
			} else if p != nil {
				traits, _ := p.Traits(action)
				rows = append(rows, traitsRow(name, action, traits))
			}
		}
	}
	head, rest, _ := bytes.Cut(doc, []byte("<!-- traits -->\n"))
	_, tail, found := bytes.Cut(rest, []byte("<!-- /traits -->"))
	if !found {
		t.Fatal("the documentation has no place for the table")
	}
	want := fmt.Sprintf("%s<!-- traits -->\n%s\n<!-- /traits -->%s", head, strings.Join(rows, "\n"), tail)
	if *update {
		if err := os.WriteFile(providersDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(doc)); diff != "" {
		t.Errorf("%s isn't what the traits say; go test . -run ProvidersDoc -update (-want +got):\n%s", providersDoc, diff)
	}
}

func traitsRow(name, action string, t providers.Traits) string {
	window, proves := "-", "no"
	if t.Key != providers.NoKey {
		window = "for ever"
		if t.Window > 0 {
			window = fmt.Sprintf("%s less %s", short(t.Window), short(t.Margin))
		}
	}
	if t.ProvesAbsence {
		proves = "yes"
	}
	return fmt.Sprintf("| %s | `%s` | %s | %s | %s | %s | %s | %s |", name, action, keyText(string(t.Key)), window,
		strings.ReplaceAll(keyText(string(t.Lookup)), "_", " "), proves, short(t.Settle+t.LookupLag), afterLoss(t))
}

// afterLoss is the order of reconciling, in words.
func afterLoss(t providers.Traits) string {
	var steps []string
	if t.Lookup != providers.NoLookup {
		steps = append(steps, "look up")
	}
	if t.Key != providers.NoKey {
		steps = append(steps, "send again under the key")
	}
	if t.ProvesAbsence {
		steps = append(steps, "absent: a new attempt")
	}
	return strings.Join(append(steps, "a person"), ", then ")
}

// short is a duration without the units that are zero at its end.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// TestWrongConfigurations: each is refused with the file, the line and what to do.
func TestWrongConfigurations(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"an unknown key":             {"tools:\n  refund: {provider: sandbox}\nlimits: 5\n", `onceward.yaml:3: unknown field "limits"`},
		"an unknown tool":            {"tools:\n  refunds: {provider: sandbox}\n", ":2: tools.'refunds': there is no such tool"},
		"an unknown provider":        {"tools:\n  refund: {provider: stirpe}\n", `:2: tools.'refund'.provider: there is no provider "stirpe"`},
		"a provider without section": {"tools:\n  refund: {provider: stripe}\n", "no section providers.stripe"},
		"one that can't serve it":    {"tools:\n  email.send: {provider: stripe}\nproviders:\n  stripe: {api_key_env: X_KEY}\n", ":2: tools.'email.send'.provider: stripe doesn't serve email.send"},
		"a missing secret":           {"tools:\n  refund: {provider: stripe}\nproviders:\n  stripe: {}\n", ":4: providers.stripe: stripe: api_key is missing"},
		"http off this machine":      {"tools:\n  refund: {provider: stripe}\nproviders:\n  stripe: {api_key_env: X_KEY, endpoint: 'http://api.example.com'}\n", "begins with https://"},
		"unverifiable, never asked":  {"tools:\n  email.send:\n    provider: smtp\n    approval: never\nproviders:\n  smtp: {host: m.example.com, from: a@example.com}\n", ":4: tools.'email.send'.approval: the provider knows neither keys nor look-ups"},
		"a negative limit":           {"tools:\n  refund:\n    limits:\n      per_run: {count: -1}\n", ":4: tools.'refund'.limits.per_run.count: a limit is at least 1"},
		"no such currency":           {"tools:\n  refund:\n    approval:\n      above:\n        USD: '5'\n        XXQ: '5'\n", ":6: tools.'refund'.approval.above.XXQ: there is no such currency"},
		"a currency twice":           {"tools:\n  refund:\n    approval:\n      above:\n        USD: '5'\n        USD: '9'\n", `:6: mapping key "USD" already defined`},
		"money without quotes":       {"tools:\n  refund:\n    approval:\n      above:\n        USD: 5.10\n", `:5: an amount of money is a string: write it in quotes, "5.10"`},
		"overlapping rules":          {"tools:\n  refund:\n    limits:\n      per_day: {count: 5}\n      per_tenant: {count: 5}\n", ":5: tools.'refund'.limits.per_tenant.count: it is never reached"},
		"an unknown condition":       {"tools:\n  refund:\n    approval:\n      over: {USD: '5'}\n", `:4: unknown field "over"`},
		"a domain in a list":         {"tools:\n  email.send:\n    approval:\n      recipients_outside:\n      - example.com\n      - '@example.org'\n", ":6: tools.'email.send'.approval.recipients_outside[1]: it isn't a domain"},
		"the provider's lease":       {"tools:\n  refund:\n    deadline: 10h\n", ":3: tools.'refund'.deadline: the provider's lease is"},
		"money elicited":             {"tools:\n  refund:\n    approval: always\n    elicit: true\n", ":4: tools.'refund'.elicit: refund moves money"},
		"neither true nor false":     {"tools:\n  email.send:\n    elicit: 'true'\n", ":3: it is true or false, without quotes"},
		"a template twice":           {"tools:\n  email.send:\n    templates: [a, b, a]\n", ":3: tools.'email.send'.templates[2]: it is empty, or stands there twice"},
		"no such zone":               {"tools: {}\ntime_zone: Europe/Berln\n", ":2: time_zone: there is no such time zone"},
		"this machine's zone":        {"time_zone: Local\n", ":1: time_zone: there is no such time zone"},
		"two documents":              {"tools: {}\n---\ntools: {refund: {approval: always}}\n", "2 YAML documents"},
		"alarms in clear":            {"alarms:\n  webhook: {url: 'http://hooks.example.com/', secret_env: X_KEY}\n", ":2: alarms.webhook.url: it begins with https://"},
		"alarms unsigned":            {"alarms:\n  webhook: {url: 'https://hooks.example.com/'}\n", ":2: alarms.webhook: the secret that signs"},
		"a secret in the file":       {"tools:\n  refund: {provider: stripe}\nproviders:\n  stripe: {api_key: sk_test_an_example}\n", `:4: unknown field "api_key"`},
		"templates elsewhere":        {"tools:\n  refund: {templates: [a]}\n", "only email.send has templates"},
		"not YAML":                   {"tools: [\n", "onceward.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := loaded(t, tc.text)
			made := map[string]realProvider{}
			for _, action := range actions {
				if err == nil {
					err = served(c, action, made)
				}
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "sk_test_an_example") {
				t.Fatalf("the error shows a secret: %v", err)
			}
		})
	}
}

// served makes an action type's provider and its policy, as serve does.
func served(c *configuration, action string, made map[string]realProvider) error {
	_, p, err := c.provider(action, made)
	if err != nil {
		return err
	}
	traits := provesAll
	if p != nil {
		traits, _ = p.Traits(action)
	}
	_, err = c.policy(action, traits)
	return err
}

// provesAll are the traits of a provider like the sandbox.
var provesAll = providers.Traits{
	Deadline: 5 * time.Second, Lease: 10 * time.Second, Key: providers.KeyInHeader, Lookup: providers.LookupByKey, ProvesAbsence: true,
}

// TestRealProviderAfterADryRun: a ledger with sandbox operations is no place for real ones.
func TestRealProviderAfterADryRun(t *testing.T) {
	dir := t.TempDir()
	box := defaultSandbox()
	ctx := t.Context()
	log := (&logFlags{LogLevel: "error"}).logger(streams{err: &bytes.Buffer{}})
	o, err := openOffice(ctx, officeFlags{dataFlags: dataFlags{DataDir: dir}, sandboxFlags: box}, log, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.ledger.Execute(ctx, dryRefund()); err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "onceward.yaml")
	if err := os.WriteFile(file, []byte("tools: {refund: {provider: stripe}}\nproviders: {stripe: {api_key_env: X_KEY}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("X_KEY", "sk_test_an_example")
	o, err = openOffice(ctx, officeFlags{dataFlags{DataDir: dir}, configFlags{file}, box}, log, true)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if err := o.checkDryRun(ctx); err == nil || !strings.Contains(err.Error(), "sandbox operations of refund") {
		t.Fatalf("the real provider starts on a dry run's ledger: %v", err)
	}
}

func dryRefund() ledger.Request {
	return ledger.Request{
		Action: providers.RefundCreate, Key: ledger.Key{1}, Intent: ledger.Intent{Identity: ledger.Strict, BusinessOperationID: "r-1"},
		Digest: ledger.Digest{Fingerprint: ledger.Hash{1}, Content: ledger.Hash{1}},
		Prepare: func(string, string) (ledger.Payload, error) {
			return ledger.Payload{Arguments: []byte(`{}`), Request: []byte(`{"payment_id":"pay_1","amount":"1.00","currency":"USD"}`)}, nil
		},
	}
}

// TestReadmeConfiguration: what the README shows starts.
func TestReadmeConfiguration(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(readme)
	if example == nil {
		t.Fatal("the README shows no configuration")
	}
	c, err := loaded(t, string(example[1]))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]realProvider{}
	for _, action := range actions {
		if _, p, err := c.provider(action, made); err != nil || p == nil {
			t.Errorf("%s: provider %v, %v", action, p, err)
		}
	}
}
