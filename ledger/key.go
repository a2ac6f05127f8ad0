package ledger

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// keyVersion stands before every key in its text form, so that another
// derivation could one day live beside this one.
const keyVersion = "v1:"

// A Key is an idempotency key: it names one business action, and two calls
// that have the same Key are the same action. It is made from what the
// orchestrator injected (see [Secret.Key]), never from what a model wrote.
type Key [32]byte

// String is the text form, "v1:" and 64 lower-case hexadecimal digits.
func (k Key) String() string { return keyVersion + hex.EncodeToString(k[:]) }

// IsZero reports whether k was never set.
func (k Key) IsZero() bool { return k == Key{} }

// ParseKey reads the text form of a [Key].
func ParseKey(s string) (Key, error) {
	digits, ok := strings.CutPrefix(s, keyVersion)
	if !ok || len(digits) != 2*len(Key{}) {
		return Key{}, fmt.Errorf("an idempotency key is %q and %d hexadecimal digits", keyVersion, 2*len(Key{}))
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return Key{}, errors.New("an idempotency key holds hexadecimal digits only")
	}
	return Key(raw), nil
}

// A Hash is a keyed digest of arguments: the fingerprint (critical arguments)
// or the content hash (all of them). Without the [Secret] it tells nothing.
type Hash [32]byte

// String is 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h was never set.
func (h Hash) IsZero() bool { return h == Hash{} }

// A FieldHash is a short keyed digest of one argument. It is long enough to
// say that an argument changed and too short to be an identity.
type FieldHash [8]byte

// IsZero reports whether h was never set.
func (h FieldHash) IsZero() bool { return h == FieldHash{} }
