package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/onceward/onceward/providers"
)

// The codes of this provider's own errors, beside the gateway's.
const (
	codeUnreadable    = "answer_unreadable"
	codeIncomplete    = "answer_incomplete"
	codeUnknownStatus = "unknown_status"
	codeOtherObject   = "other_object"
	codeTwoObjects    = "two_objects"
	codeTooManyPages  = "too_many_pages"
)

// An answer is a checked Answer: nil paths are those that aren't given.
type answer struct {
	id, status, key, code path
	same                  []comparison
}

// A comparison is of a member of the answer with what was sent.
type comparison struct {
	answered, sent path
	argument       string
}

func newAnswer(c Answer, b body) (answer, error) {
	if c.ID == "" {
		return answer{}, fmt.Errorf("answer.id is missing: write where the object's id stands in an answer, such as id or data.id")
	}
	var a answer
	for _, setting := range []struct {
		name, where string
		to          *path
	}{{"id", c.ID, &a.id}, {"status", c.Status, &a.status}, {"key", c.Key, &a.key}, {"error", c.Error, &a.code}} {
		if setting.where == "" {
			continue
		}
		at, err := parsePath(setting.where)
		if err != nil {
			return answer{}, fmt.Errorf("answer.%s: %w", setting.name, err)
		}
		*setting.to = at
	}
	for _, where := range slices.Sorted(maps.Keys(c.Same)) {
		at, err := parsePath(where)
		if err != nil {
			return answer{}, fmt.Errorf("answer.same: %w", err)
		}
		sent, ok := b.place(c.Same[where])
		if !ok {
			return answer{}, fmt.Errorf("answer.same: %q is compared with %q, which body doesn't send", where, c.Same[where])
		}
		a.same = append(a.same, comparison{at, sent, c.Same[where]})
	}
	return a, nil
}

// decode reads JSON with its numbers as they are written.
func decode(b []byte) (any, bool) {
	if !json.Valid(b) {
		return nil, false // also if something follows
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err == nil
}

// isJSON also takes a gateway's own media types, such as application/vnd.example+json.
func isJSON(reply providers.HTTPReply) bool {
	kind, _, err := mime.ParseMediaType(reply.Header.Get("Content-Type"))
	return reply.IsJSON() || err == nil && strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// text is a string, a number or a truth value as text, and "" for all else.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return ""
}

// text is the text that stands at a path, "" if there is none.
func (p path) text(v any) string {
	if p == nil {
		return ""
	}
	found, _ := p.get(v)
	return text(found)
}

// word is what a status or an error code in the configuration can be: they are kept in
// the ledger.
var word = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// identifier lets through what an id can be.
func identifier(s string) string {
	if len(s) > 255 || strings.ContainsFunc(s, unicode.IsControl) {
		return ""
	}
	return s
}

// checkKey wants an object to show our key, where it shows one at all.
func (a answer) checkKey(object any, key string) error {
	if a.key == nil {
		return nil
	}
	switch shown, ok := a.key.get(object); {
	case !ok:
		return &providers.Error{Code: codeIncomplete}
	case text(shown) != key:
		return &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
	}
	return nil
}

// compare says whether the object shows what was sent. It is incomplete if it doesn't show
// a member that it should.
func (a answer) compare(object, sent any) *providers.Error {
	for _, c := range a.same {
		was, ok := c.sent.get(sent)
		if !ok {
			continue // the argument was empty
		}
		is, ok := c.answered.get(object)
		if !ok {
			return &providers.Error{Code: codeIncomplete}
		}
		if !equal(c.argument, was, is) {
			return &providers.Error{Mark: providers.Contradiction, Code: codeOtherObject}
		}
	}
	return nil
}

// equal compares as strictly as it can be done without taking a number for another one
// because of its spelling.
func equal(argument string, was, is any) bool {
	if list, ok := was.([]any); ok {
		other, ok := is.([]any)
		return ok && slices.EqualFunc(list, other, func(a, b any) bool { return text(a) != "" && text(a) == text(b) })
	}
	a, b := text(was), text(is)
	if a == "" || b == "" {
		return false
	}
	switch argument {
	case argAmount, argAmountMinor:
		x, y := decimal(a), decimal(b)
		return x != nil && y != nil && x.Cmp(y) == 0
	case argCurrency:
		return strings.EqualFold(a, b)
	}
	return a == b
}

// decimal reads a plain decimal number; nil is none.
func decimal(s string) *big.Rat {
	if len(s) > 40 || strings.Trim(s, "0123456789.") != "" || strings.Count(s, ".") > 1 {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil
	}
	return r
}
