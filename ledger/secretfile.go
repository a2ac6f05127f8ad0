package ledger

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LoadSecret reads the secret that is kept at path, made there on a first start:
// 32 random bytes, as 64 hexadecimal digits. Two processes that start at once agree: the file
// is written elsewhere, synced, and linked into place, which fails for all but
// the first; then all read what is there. mayCreate is false where operations exist already: a new secret would mean
// new keys, and new keys mean duplicates.
func LoadSecret(path string, mayCreate bool) ([]byte, error) {
	secret, err := readSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if !mayCreate {
		return nil, fmt.Errorf("%s is missing, but the ledger beside it has operations: bring that file back from a backup (with another secret every repeat would look new)", path)
	}
	if err := createSecret(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("can't make %s: %w", path, err)
	}
	return readSecret(path)
}

func readSecret(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) < minSecretBytes {
		return nil, fmt.Errorf("%s is damaged: it should hold at least %d hexadecimal digits; bring it back from a backup", path, 2*minSecretBytes)
	}
	return secret, nil
}

func createSecret(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-secret-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	var secret [32]byte
	rand.Read(secret[:])
	_, err = f.WriteString(hex.EncodeToString(secret[:]) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a new name durable. Not every system lets a directory be synced;
// there the name is durable when the system says so.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}

// ParseSecret reads a secret from the environment: the value's bytes, or "hex:" and
// hexadecimal digits.
func ParseSecret(value string) ([]byte, error) {
	digits, ok := strings.CutPrefix(value, "hex:")
	if !ok {
		return []byte(value), nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, errors.New(`after "hex:" only pairs of hexadecimal digits may follow`)
	}
	return b, nil
}
