package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/onceward/onceward/tools"
)

func hashHex(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// testTokens takes "tenant token" pairs, with * before the heir.
func testTokens(t *testing.T, pairs ...string) *Tokens {
	t.Helper()
	var text strings.Builder
	for _, pair := range pairs {
		tenant, token, _ := strings.Cut(pair, " ")
		text.WriteString(tenant + " " + hashHex(token) + "\n")
	}
	tk, err := parseTokens("test", strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func TestParseTokens(t *testing.T) {
	t.Parallel()
	// The hashes of "test" and "hello", as sha256sum prints them.
	const (
		h1 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
		h2 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	)
	tests := []struct {
		name, text string
		wrong      string // part of the error; "" for none
		count      int
		heir       string
	}{
		{"one", "acme " + h1, "", 1, ""},
		{"comments, blank lines, tabs, CRLF", "# who\r\n\r\nacme\t" + h1 + " # since May\r\n", "", 1, ""},
		{"upper-case hex", "acme " + strings.ToUpper(h1), "", 1, ""},
		{"two tokens of one tenant", "acme " + h1 + "\nacme " + h2, "", 2, ""},
		{"heir", "*acme " + h1 + "\nglobex " + h2, "", 2, "acme"},
		{"heir, with a space", "* acme " + h1, "", 1, "acme"},
		{"heir marked at each token", "*acme " + h1 + "\n*acme " + h2, "", 2, "acme"},
		{"two heirs", "*acme " + h1 + "\n\n*globex " + h2, "line 3: a second heir", 0, ""},
		{"same token twice", "acme " + h1 + "\nglobex " + strings.ToUpper(h1), "line 2: the token of line 1", 0, ""},
		{"one word", h1, "line 1", 0, ""},
		{"output of sha256sum", "acme " + h1 + "  -", "line 1", 0, ""},
		{"hash too short", "acme " + h1[:62], "line 1", 0, ""},
		{"token instead of its hash", "acme test", "never the token itself", 0, ""},
		{"not hex", "acme " + strings.Repeat("g", 64), "line 1", 0, ""},
		{"bad name", "ac/me " + h1, "line 1: the tenant's name", 0, ""},
		{"name too long", strings.Repeat("a", 65) + " " + h1, "line 1: the tenant's name", 0, ""},
		{"name as long as may be", strings.Repeat("a", 64) + " " + h1, "", 1, ""},
		{"empty token", "acme e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "empty token", 0, ""},
		{"only comments", "# nobody\n", "holds no token", 0, ""},
		{"very long line", "acme " + strings.Repeat("a", 100_000), "line 1", 0, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tk, err := parseTokens("tokens.txt", strings.NewReader(tc.text))
			if tc.wrong == "" {
				if err != nil || tk.count() != tc.count || tk.Heir() != tc.heir {
					t.Errorf("count %d, heir %q, error %v; want %d, %q", tk.count(), tk.Heir(), err, tc.count, tc.heir)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wrong) || !strings.Contains(err.Error(), "tokens.txt") {
				t.Fatalf("error %v, want the file and %q", err, tc.wrong)
			}
			if low := strings.ToLower(err.Error()); strings.Contains(low, h1[:16]) || strings.Contains(low, h2[:16]) {
				t.Errorf("the error shows a hash: %v", err)
			}
		})
	}
}

func TestTenantOfAToken(t *testing.T) {
	t.Parallel()
	tk := testTokens(t, "acme alpha", "*old beta", "globex gamma", "acme delta")
	compared := 0
	equal := tk.equal
	tk.equal = func(a, b []byte) int { compared++; return equal(a, b) }
	for _, tc := range []struct {
		bearer string
		want   tools.Caller
		ok     bool
	}{
		{"alpha", tools.Caller{Tenant: "acme"}, true},
		{"delta", tools.Caller{Tenant: "acme"}, true},
		{"beta", tools.Caller{}, true},
		{"gamma", tools.Caller{Tenant: "globex"}, true},
		{"Alpha", tools.Caller{}, false},
		{"alpha ", tools.Caller{}, false},
	} {
		compared = 0
		if got, ok := tk.tenant(tc.bearer); got != tc.want || ok != tc.ok {
			t.Errorf("%q: %+v, %v; want %+v, %v", tc.bearer, got, ok, tc.want, tc.ok)
		}
		// First, last or no match: the work is the same.
		if compared != 4 {
			t.Errorf("%q: compared with %d hashes, want all 4", tc.bearer, compared)
		}
	}
	if _, ok := tk.tenant(""); ok {
		t.Error("an empty token has a tenant")
	}
	if _, ok := (*Tokens)(nil).tenant("alpha"); ok || (*Tokens)(nil).count() != 0 || (*Tokens)(nil).Heir() != "" {
		t.Error("no tokens know a token")
	}
}

func TestReadTokensRefusesAFileOthersMayWrite(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("file modes mean nothing here")
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte("acme "+hashHex("alpha")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o440: true, 0o660: false, 0o602: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTokens(path); (err == nil) != ok {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
	if _, err := ReadTokens(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestRequireAuth(t *testing.T) {
	t.Parallel()
	some := testTokens(t, "acme alpha")
	for _, tc := range []struct {
		addr   string
		tokens *Tokens
		ok     bool
	}{
		{"127.0.0.1:8931", nil, true},
		{"127.9.9.9:0", nil, true},
		{"localhost:8931", nil, true},
		{"[::1]:8931", nil, true},
		{":8931", nil, false},
		{"0.0.0.0:8931", nil, false},
		{"[::]:8931", nil, false},
		{"192.0.2.1:8931", nil, false},
		{"mcp.example.com:8931", nil, false},
		{"0.0.0.0:8931", &Tokens{}, false},
		{"0.0.0.0:8931", some, true},
		{"8931", some, false},
	} {
		err := RequireAuth(tc.addr, tc.tokens)
		if (err == nil) != tc.ok {
			t.Errorf("%s, %d tokens: %v", tc.addr, tc.tokens.count(), err)
		}
		if err != nil && tc.addr != "8931" && !strings.Contains(err.Error(), "--tokens") {
			t.Errorf("%s: the error doesn't say what to do: %v", tc.addr, err)
		}
	}
}
