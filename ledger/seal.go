package ledger

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A Sealer keeps payloads unreadable at rest: AES-256-GCM under a key derived from
// the seal key by HKDF-SHA256, with the operation's idempotency key as
// associated data, so that a payload opens only as the operation's it belongs to.
type Sealer struct {
	current  sealKey
	previous []sealKey
}

type sealKey struct {
	id   [4]byte // tells keys apart; says nothing about them
	aead cipher.AEAD
}

// sealedHeader is the length of what stands before the ciphertext: a format byte, the
// key's id, and the nonce.
const (
	sealedFormat = 1
	nonceBytes   = 12
	sealedHeader = 1 + 4 + nonceBytes
)

// ErrSealed is returned for a payload that no seal key here opens.
var ErrSealed = errors.New("ledger: no seal key here opens this payload")

// NewSealer seals under key and opens under key and the previous ones. Each has at
// least 16 bytes.
func NewSealer(key []byte, previous ...[]byte) (*Sealer, error) {
	current, err := newSealKey(key)
	if err != nil {
		return nil, err
	}
	s := &Sealer{current: current}
	for _, p := range previous {
		k, err := newSealKey(p)
		if err != nil {
			return nil, err
		}
		s.previous = append(s.previous, k)
	}
	return s, nil
}

func newSealKey(material []byte) (sealKey, error) {
	if len(material) < minSecretBytes {
		return sealKey{}, fmt.Errorf("the seal key has %d bytes, it needs at least %d", len(material), minSecretBytes)
	}
	raw, err := hkdf.Key(sha256.New, material, nil, "onceward seal v1", 32+4)
	if err != nil {
		return sealKey{}, err
	}
	block, err := aes.NewCipher(raw[:32])
	if err != nil {
		return sealKey{}, err
	}
	aead, err := cipher.NewGCM(block)
	return sealKey{id: [4]byte(raw[32:]), aead: aead}, err
}

// Seal makes p unreadable to all but [Sealer.Open] for the same operation.
func (s *Sealer) Seal(k Key, p Payload) []byte {
	plain := binary.AppendUvarint(nil, uint64(len(p.Arguments)))
	plain = append(plain, p.Arguments...)
	plain = append(plain, p.Request...)
	sealed := make([]byte, sealedHeader, sealedHeader+len(plain)+s.current.aead.Overhead())
	sealed[0] = sealedFormat
	copy(sealed[1:], s.current.id[:])
	nonce := sealed[1+4:]
	rand.Read(nonce) // never fails (crypto/rand, Go 1.24)
	return s.current.aead.Seal(sealed, nonce, plain, k[:])
}

// Open reads what Seal made. It returns ErrSealed if no key fits or the bytes were
// changed or belong to another operation.
func (s *Sealer) Open(k Key, sealed []byte) (Payload, error) {
	if len(sealed) < sealedHeader || sealed[0] != sealedFormat {
		return Payload{}, ErrSealed
	}
	id, nonce := sealed[1:1+4], sealed[1+4:sealedHeader]
	for _, key := range append([]sealKey{s.current}, s.previous...) {
		if !bytes.Equal(id, key.id[:]) {
			continue
		}
		plain, err := key.aead.Open(nil, nonce, sealed[sealedHeader:], k[:])
		if err != nil {
			continue
		}
		n, size := binary.Uvarint(plain)
		if size <= 0 || n > uint64(len(plain)-size) {
			return Payload{}, ErrSealed
		}
		split := size + int(n)
		return Payload{Arguments: plain[size:split], Request: plain[split:]}, nil
	}
	return Payload{}, ErrSealed
}
