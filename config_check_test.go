package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// checked runs the check on a file named onceward.yaml, in a directory of its own, and gives
// what it says without the directory.
func checked(t *testing.T, text string, asJSON bool) (said string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "onceward.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = configCheckCommand{configFlags{file}, defaultSandbox(), asJSON}.Run(t.Context(), streams{out: &out})
	if err != nil && exitCode(err) != exitUsage {
		t.Errorf("exit code %d, want %d", exitCode(err), exitUsage)
	}
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), file, "onceward.yaml"))
	}
	return strings.ReplaceAll(out.String(), file, "onceward.yaml"), err
}

// TestConfigCheck: testdata/config/check.txtar has configurations, and what is said of each.
func TestConfigCheck(t *testing.T) {
	const golden = "testdata/config/check.txtar"
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Files) < 8 {
		t.Fatalf("%s has only %d files", golden, len(archive.Files))
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		config, want := archive.Files[i], &archive.Files[i+1]
		said, err := checked(t, string(config.Data), strings.HasSuffix(want.Name, ".json"))
		if err != nil {
			said += "onceward: " + err.Error() + "\n"
		}
		if *update {
			want.Data = []byte(said)
		}
		if diff := cmp.Diff(string(want.Data), said); diff != "" {
			t.Errorf("%s (-want +got; go test . -run ConfigCheck -update):\n%s", want.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConfigCheckNeedsNoSecrets: the check says what is missing where it isn't, and nothing
// where it is; the value is never shown.
func TestConfigCheckNeedsNoSecrets(t *testing.T) {
	const text = "tools: {refund: {provider: stripe}}\nproviders:\n  stripe: {api_key_env: CHECKED_KEY}\n"
	missing := func() []remark {
		said, err := checked(t, text, true)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said, "sk_test_an_example") {
			t.Errorf("the check shows a secret: %s", said)
		}
		var e explanation
		if err := json.Unmarshal([]byte(said), &e); err != nil {
			t.Fatal(err)
		}
		return e.Missing
	}
	want := []remark{{3, "providers.stripe.api_key_env", "the environment variable CHECKED_KEY is empty"}}
	if diff := cmp.Diff(want, missing()); diff != "" {
		t.Errorf("without the secret (-want +got):\n%s", diff)
	}
	t.Setenv("CHECKED_KEY", "sk_test_an_example")
	if diff := cmp.Diff([]remark{}, missing()); diff != "" {
		t.Errorf("with the secret (-want +got):\n%s", diff)
	}
	t.Setenv("CHECKED_KEY", "not a key")
	if said, err := checked(t, text, true); err == nil || !strings.Contains(err.Error(), "onceward.yaml:3: providers.stripe") {
		t.Errorf("a secret that can't be one: %s, %v", said, err)
	}
}

// TestConfigCheckKnowsAllSecrets: every example of the documentation can be checked without any of
// its secrets and files, and what serve would then miss is named.
func TestConfigCheckKnowsAllSecrets(t *testing.T) {
	for _, name := range []string{providersDoc, "README.md"} {
		doc, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
			said, err := checked(t, block[1], false)
			if err != nil {
				t.Errorf("%v of\n%s", err, block[1])
			}
			for _, variable := range regexp.MustCompile(`(?:_env|\benv): ([A-Z_]+)`).FindAllStringSubmatch(block[1], -1) {
				if !strings.Contains(said, "the environment variable "+variable[1]+" is empty") {
					t.Errorf("%s: the check doesn't miss %s", name, variable[1])
				}
			}
			for _, file := range regexp.MustCompile(`_file: (\S+)`).FindAllStringSubmatch(block[1], -1) {
				if !strings.Contains(said, "the file "+file[1]+" can't be read") {
					t.Errorf("%s: the check doesn't miss %s", name, file[1])
				}
			}
		}
	}
}

func TestConfigCheckNeedsAFile(t *testing.T) {
	t.Parallel()
	err := configCheckCommand{}.Run(t.Context(), streams{out: &bytes.Buffer{}})
	if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--config") {
		t.Errorf("%v, want one that names --config", err)
	}
}

// TestPolicyDoc: the example of the documentation starts, and what is said of it is what the
// check says.
func TestPolicyDoc(t *testing.T) {
	doc, err := os.ReadFile(policyDoc)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(doc)
	if example == nil {
		t.Fatal("the documentation has no example")
	}
	said, err := checked(t, string(example[1]), false)
	if err != nil {
		t.Fatal(err)
	}
	c, err := loaded(t, string(example[1]))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]realProvider{}
	for _, action := range actions {
		if err := served(c, action, made); err != nil {
			t.Errorf("the example doesn't start: %v", err)
		}
	}
	if secret, err := c.alarmSecret(); err != nil || secret.IsZero() {
		t.Errorf("the example's alarms aren't signed: %v", err)
	}
	head, rest, _ := bytes.Cut(doc, []byte("<!-- check -->\n"))
	_, tail, found := bytes.Cut(rest, []byte("<!-- /check -->"))
	if !found {
		t.Fatal("the documentation has no place for what is said")
	}
	want := string(head) + "<!-- check -->\n```text\n" + said + "```\n<!-- /check -->" + string(tail)
	if *update {
		if err := os.WriteFile(policyDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(doc)); diff != "" {
		t.Errorf("%s isn't what the check says; go test . -run PolicyDoc -update (-want +got):\n%s", policyDoc, diff)
	}
}
