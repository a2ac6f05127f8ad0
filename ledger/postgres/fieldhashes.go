package postgres

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/onceward/onceward/ledger"
)

// encodeFields renders field hashes as bytes: for each name, in order, its length as a
// uvarint, the name, and the hash. As JSON they would be a fifth of a finished
// operation, and every replay reads them.
func encodeFields(h ledger.FieldHashes) []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(h)) {
		sum := h[name]
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
		b = append(b, sum[:]...)
	}
	return b
}

var errFieldHashes = errors.New("ledger/postgres: field_hashes is damaged")

// decodeFields reads what encodeFields wrote.
func decodeFields(b []byte) (ledger.FieldHashes, error) {
	h := make(ledger.FieldHashes, 8)
	for len(b) > 0 {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > uint64(len(b)) || uint64(len(b)-width) < n+uint64(len(ledger.FieldHash{})) {
			return nil, errFieldHashes
		}
		var sum ledger.FieldHash
		name, rest := b[width:width+int(n)], b[width+int(n):]
		b = rest[copy(sum[:], rest):]
		h[string(name)] = sum
	}
	return h, nil
}
