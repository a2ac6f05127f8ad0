package intent

import (
	"unicode"
	"unicode/utf8"
)

// Names is a set of member names that must be spelt exactly. Build it once
// with [NewNames]; the zero value is the empty set.
type Names struct {
	exact map[string]struct{}
	// folded leads from the folded form to the name as it should be.
	folded map[string]string
}

// NewNames makes the set of the given names.
func NewNames(names ...string) Names {
	n := Names{exact: make(map[string]struct{}, len(names)), folded: make(map[string]string, len(names))}
	for _, name := range names {
		n.exact[name] = struct{}{}
		n.folded[string(appendFold(nil, []byte(name)))] = name
	}
	return n
}

// misspelt returns the known name that name equals only when case is ignored.
func (n Names) misspelt(name, folded []byte) (string, bool) {
	known, ok := n.folded[string(folded)]
	if !ok || known == string(name) {
		return "", false
	}
	_, ok = n.exact[string(name)]
	return known, !ok
}

// KnownMembers are the names of JSON-RPC, of MCP and of the intent that
// something behind the check relies on. encoding/json would take "_META" or
// "paramſ" for them.
var KnownMembers = NewNames(
	"jsonrpc", "id", "method", "params", "result", "error",
	"name", "arguments", "_meta", "inputResponses", "requestState", "progressToken", "requestId",
	"protocolVersion", "capabilities", "clientInfo",
	"io.modelcontextprotocol/protocolVersion",
	"io.modelcontextprotocol/clientCapabilities",
	"io.modelcontextprotocol/clientInfo",
	MetaKey,
	fieldWorkflowID, fieldStep, fieldBusinessObject, fieldRevision, fieldBusinessOperationID, fieldRunID,
)

// appendFold appends the form in which two names are equal exactly when they
// are equal under Unicode's simple case folding, as encoding/json matches
// names: each letter becomes the least of those that fold together.
func appendFold(b, name []byte) []byte {
	for i := 0; i < len(name); {
		if c := name[i]; c < utf8.RuneSelf {
			// The least of an ASCII letter's orbit is its capital, also for k and
			// s, whose orbits hold the Kelvin sign and the long s.
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			b = append(b, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(name[i:])
		b = utf8.AppendRune(b, leastFold(r))
		i += size
	}
	return b
}

func leastFold(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}
