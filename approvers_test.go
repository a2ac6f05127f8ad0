package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestApprovers: a credential is shown once and kept nowhere; who may decide is told by its hash.
func TestApprovers(t *testing.T) {
	dir := dataDir(t)
	code, credential, _ := command(t.Context(), "approvers", "add", "anna", "--data-dir", dir)
	credential = strings.TrimSpace(credential)
	if code != exitDone || !strings.HasPrefix(credential, "owc_") {
		t.Fatalf("exit code %d, credential %q", code, credential)
	}
	path := filepath.Join(dir, "approvers")
	text, err := os.ReadFile(path)
	if err != nil || string(text) != fmt.Sprintf("approver anna %x\n", sha256.Sum256([]byte(credential))) {
		t.Errorf("the file is %q, %v; want the hash alone", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	for _, again := range [][]string{{"anna"}, {"two words"}} {
		if code, _, _ := command(t.Context(), append([]string{"approvers", "add", "--data-dir", dir}, again...)...); code == exitDone {
			t.Errorf("%v was added", again)
		}
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != string(text) {
		t.Errorf("what was refused changed the file to %q, %v", kept, err)
	}
	if _, said, _ := command(t.Context(), "approvers", "list", "--data-dir", dir); strings.Join(strings.Fields(said), " ") != "approver anna" {
		t.Errorf("the list says %q", said)
	}

	serve := func() string { // a server that starts is ended
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, _, said := command(ctx, "serve", "--data-dir", dir, "--transport", "http", "--addr", "127.0.0.1:0", "--tokens", filepath.Join(dir, "tokens"))
		return said
	}
	tokens := func(secret string) {
		if err := os.WriteFile(filepath.Join(dir, "tokens"), fmt.Appendf(nil, "one %x\n", sha256.Sum256([]byte(secret))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tokens(credential)
	if said := serve(); !strings.Contains(said, "whoever asks can't approve") {
		t.Errorf("a server whose agent's token is a credential says %q", said)
	}
	tokens("another")
	t.Setenv(credentialVariable, credential)
	if said := serve(); !strings.Contains(said, credentialVariable+" is in the server's environment") || strings.Contains(said, credential) {
		t.Errorf("a server with a credential in its environment says %q", said)
	}
}
