package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onceward/onceward/ledger"
)

func TestASecretIsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	secret, err := ledger.LoadSecret(path, true)
	if err != nil || len(secret) != 32 {
		t.Fatalf("LoadSecret made %d bytes, %v; want 32", len(secret), err)
	}
	for _, mayCreate := range []bool{true, false} {
		if again, err := ledger.LoadSecret(path, mayCreate); err != nil || !bytes.Equal(again, secret) {
			t.Errorf("read again, it is another one (error %v)", err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want that its owner alone reads it", info.Mode(), err)
	}
	onlyFile(t, path)
}

// onlyFile demands that nothing but a file is in its folder: no half-made secret stays.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("the folder holds %v, %v; want the secret alone", entries, err)
	}
}

func TestManyWhoMakeTheSecretAgree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	const many = 50
	secrets := make([]string, many)
	gun := make(chan struct{})
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			<-gun
			secret, err := ledger.LoadSecret(path, true)
			if err != nil {
				t.Error(err)
			}
			secrets[i] = string(secret)
		})
	}
	close(gun)
	wg.Wait()
	for _, s := range secrets {
		if s != secrets[0] || s == "" {
			t.Fatal("they have different secrets")
		}
	}
	onlyFile(t, path)
}

// secretPath names the file that this binary, started anew, loads and prints.
const secretPath = "ONCEWARD_TEST_SECRET_PATH"

func TestMain(m *testing.M) {
	path := os.Getenv(secretPath)
	if path == "" {
		os.Exit(m.Run())
	}
	secret, err := ledger.LoadSecret(path, true)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("secret=%x\n", secret)
}

func TestProcessesThatMakeTheSecretAgree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	const processes = 4
	output := make([]string, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), secretPath+"="+path)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
			for line := range strings.Lines(string(out)) {
				if after, ok := strings.CutPrefix(line, "secret="); ok {
					output[i] = after
				}
			}
		})
	}
	wg.Wait()
	for _, o := range output {
		if o != output[0] || o == "" {
			t.Fatalf("they have different secrets, or none")
		}
	}
	onlyFile(t, path)
}

func TestASecretIsNeverMadeAnew(t *testing.T) {
	t.Parallel()
	t.Run("beside operations", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "secret")
		_, err := ledger.LoadSecret(path, false)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("error %v, want which file is missing and what to do", err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("the file was made")
		}
	})
	for name, content := range map[string]string{
		"empty": "", "too short": strings.Repeat("ab", 15), "no digits": strings.Repeat("zz", 32), "half a digit": strings.Repeat("ab", 32) + "a",
	} {
		t.Run("over a damaged file: "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			secret, err := ledger.LoadSecret(path, true)
			if err == nil {
				t.Fatalf("it was read as %d bytes", len(secret))
			}
			if content != "" && strings.Contains(err.Error(), content) {
				t.Errorf("the error shows what the file holds: %v", err)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != content {
				t.Errorf("the file was changed, error %v", err)
			}
		})
	}
	t.Run("in a folder that isn't there", func(t *testing.T) {
		if _, err := ledger.LoadSecret(filepath.Join(t.TempDir(), "no", "secret"), true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v, want that the folder doesn't exist", err)
		}
	})
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"plain bytes, as they are": "plain bytes, as they are",
		"hex:":                     "",
		"hex:6f6e63656F":           "onceo",
		" hex:6f":                  " hex:6f",
		"HEX:6f":                   "HEX:6f",
		"geheim-äöü":               "geheim-äöü",
		"":                         "",
	} {
		if got, err := ledger.ParseSecret(value); err != nil || string(got) != want {
			t.Errorf("ParseSecret(%q) = %q, %v; want %q", value, got, err, want)
		}
	}
	for _, value := range []string{"hex:6", "hex:zz", "hex:6f ", "hex:hex:6f", "hex:6f\n"} {
		got, err := ledger.ParseSecret(value)
		if err == nil {
			t.Errorf("ParseSecret(%q) = %q, want an error", value, got)
		} else if rest := strings.TrimSpace(value[len("hex:"):]); len(rest) > 1 && strings.Contains(err.Error(), rest) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

func TestASecretIsNeverShown(t *testing.T) {
	t.Parallel()
	s, err := ledger.NewSecret([]byte("not to be shown to anybody"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("start", "secret", s)
	slog.New(slog.NewTextHandler(&log, nil)).Info("start", "secret", s)
	fmt.Fprintf(&log, "%v %+v %#v %s", s, s, s, s)
	if strings.Contains(log.String(), "not to be") || strings.Contains(log.String(), fmt.Sprintf("%x", "not to")) {
		t.Errorf("it is shown: %s", log.String())
	}
	if _, err := ledger.NewSecret(bytes.Repeat([]byte("x"), 15)); err == nil {
		t.Error("a secret of 15 bytes is taken")
	}
}

func TestALedgerKeepsToItsSecret(t *testing.T) {
	inWorld(t, func(t *world) {
		one, _ := ledger.NewSecret([]byte("the ledger's own secret"))
		two, _ := ledger.NewSecret([]byte("some other secret, no less"))
		for _, step := range []struct {
			secret ledger.Secret
			fits   bool
		}{{one, true}, {two, false}, {one, true}} {
			err := ledger.CheckSecret(t.Context(), t.store, step.secret)
			if fits := err == nil; fits != step.fits {
				t.Errorf("CheckSecret = %v, want that it fits: %v", err, step.fits)
			}
		}
	})
}
