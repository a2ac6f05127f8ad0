package ledger

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// Bytes is how stores keep field hashes: for each name, in order, its length as a
// uvarint, the name, and the hash. As JSON they would be a fifth of a finished
// operation, and every replay reads them.
func (h FieldHashes) Bytes() []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(h)) {
		sum := h[name]
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
		b = append(b, sum[:]...)
	}
	return b
}

var errFieldHashes = errors.New("ledger: field hashes are damaged")

// ParseFieldHashes reads what [FieldHashes.Bytes] wrote.
func ParseFieldHashes(b []byte) (FieldHashes, error) {
	h := make(FieldHashes, 8)
	for len(b) > 0 {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > uint64(len(b)) || uint64(len(b)-width) < n+uint64(len(FieldHash{})) {
			return nil, errFieldHashes
		}
		var sum FieldHash
		name, rest := b[width:width+int(n)], b[width+int(n):]
		b = rest[copy(sum[:], rest):]
		h[string(name)] = sum
	}
	return h, nil
}
