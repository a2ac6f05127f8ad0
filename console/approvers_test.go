package console

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestApproversFile(t *testing.T) {
	t.Parallel()
	credential, hash := NewCredential()
	_, other := NewCredential()
	for name, c := range map[string]struct{ text, want string }{
		"three roles":       {"# people\nviewer vera " + other + "\n\napprover anna " + hash + " # lead\n", ""},
		"upper-case digits": {"approver anna " + strings.ToUpper(hash), ""},
		"nobody":            {"# nobody yet\n", "names nobody"},
		"unknown role":      {"admin anna " + hash, "line 1: the role is"},
		"no role":           {"nobody anna " + hash, "line 1: the role is"},
		"two words":         {"approver " + hash, "line 1: want three words"},
		"four words":        {"approver anna " + hash + " x", "line 1: want three words"},
		"a person's name":   {"approver anna@example.com " + hash, "line 1: the name must be"},
		"short hash":        {"approver anna " + hash[:62], "line 1: the third word"},
		"bad digit":         {"approver anna " + hash[:63] + "g", "line 1: the third word"},
		"the credential":    {"approver anna " + credential, "line 1: the third word"},
		"same name":         {"\nviewer anna " + other + "\napprover anna " + hash, "line 3: the name of line 2 again"},
		"same credential":   {"viewer vera " + hash + "\napprover anna " + hash, "line 2: the credential of line 1 again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "approvers")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := ReadApprovers(path)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got, ok := a.Who(credential); !ok || got != (Person{"anna", Approver}) {
					t.Errorf("Who = %v, %v; want anna, the approver", got, ok)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if strings.Contains(err.Error(), hash[:20]) || strings.Contains(err.Error(), credential) {
				t.Errorf("the error shows what it must not: %v", err)
			}
		})
	}
}

func TestApproversFileThatOthersMayWrite(t *testing.T) {
	t.Parallel()
	_, hash := NewCredential()
	path := filepath.Join(t.TempDir(), "approvers")
	if err := os.WriteFile(path, []byte("approver anna "+hash), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadApprovers(path); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("got %v, want a refusal that says what to do", err)
	}
}

// What isn't a credential by its form opens nothing, even where its hash stands in the file.
func TestOnlyCredentialsOpen(t *testing.T) {
	t.Parallel()
	credential, hash := NewCredential()
	lines := "approver anna " + hash
	for i, word := range []string{"hunter2", "", "Bearer abc"} {
		sum := sha256.Sum256([]byte(word))
		lines += "\napprover weak" + string(rune('a'+i)) + " " + hex.EncodeToString(sum[:])
	}
	a, err := parseApprovers("approvers", strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"", "hunter2", "Bearer abc", hash, credential[4:], credential + "x", strings.ToLower(credential) + " ", credential + "\n"} {
		if who, ok := a.Who(word); ok {
			t.Errorf("%q opens the console for %v", word, who)
		}
	}
	if _, ok := (*Approvers)(nil).Who(credential); ok {
		t.Error("nobody is known, and somebody came in")
	}
	if again, _ := NewCredential(); again == credential || len(again) != len("owc_")+43 {
		t.Errorf("two credentials: %d and %d characters", len(credential), len(again))
	}
}
