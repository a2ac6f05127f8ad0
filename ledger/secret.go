package ledger

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"log/slog"
	"sync"
)

// minSecretBytes is the least a secret may have.
const minSecretBytes = 16

// A Secret keys identities and fingerprints. It never changes in a ledger's
// life: another secret means other keys, and other keys mean duplicates. The
// ledger stores [Secret.Check] and refuses to open under another one.
type Secret struct {
	macs *sync.Pool // of hash.Hash keyed with the secret: making one costs more than using it
}

// NewSecret takes the secret's bytes, at least 16 of them.
func NewSecret(b []byte) (Secret, error) {
	if len(b) < minSecretBytes {
		return Secret{}, fmt.Errorf("the secret has %d bytes, it needs at least %d", len(b), minSecretBytes)
	}
	key := bytes.Clone(b)
	return Secret{macs: &sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}, nil
}

// Key derives the idempotency key of an action from its canonical JSON. Any
// HMAC-SHA256 does the same, so an orchestrator can compute keys itself.
func (s Secret) Key(canonical []byte) Key { return Key(s.sum(canonical)) }

// Hash digests canonical JSON for one purpose ("fingerprint", "content", ...).
// Different purposes give unrelated digests of the same bytes.
func (s Secret) Hash(purpose string, canonical []byte) Hash {
	return Hash(s.sum([]byte(purpose), []byte{0}, canonical))
}

// Field digests the canonical JSON of one named argument.
func (s Secret) Field(name string, canonical []byte) FieldHash {
	h := s.Hash("field\x00"+name, canonical)
	return FieldHash(h[:len(FieldHash{})])
}

// Check is a value that tells secrets apart and gives none away.
func (s Secret) Check() Hash { return s.Hash("onceward ledger", nil) }

func (s Secret) sum(parts ...[]byte) []byte {
	mac := s.macs.Get().(hash.Hash)
	defer s.macs.Put(mac)
	mac.Reset()
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

// String never shows the secret.
func (s Secret) String() string { return "[secret]" }

// GoString never shows the secret.
func (s Secret) GoString() string { return "[secret]" }

// LogValue never shows the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }
