package intent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/onceward/onceward/intent"
)

var fuzzNames = []string{"_meta", "params", "workflow_id", "onceward/operation"}

// FuzzCheckJSON compares the scanner with another way to the same verdict:
// encoding/json's grammar and tokens, strings.EqualFold and a regular
// expression for surrogates.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{
		toolCall, ``, `1 2`, `{"a":1,"a":2}`, `{"k":1,"` + "\u212a" + `":2}`, `{"s":1,"\u017f":2}`, `{"param\u017f":1}`, `{"_META":1}`,
		`["\ud83d\ude00"]`, `["\ud83d"]`, `["\\ud83d"]`, `["\\\ud83d"]`, `["\ud83d\\ude00"]`, "[\"\xff\"]", "\xff", `[1,]`, `{"a":1,}`, `[-]`, `[1e]`, `[1.5e+3]`, `[00]`,
		strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65),
		`[{"a":{"b":[{"c":1,"C":2}]}}]`, manyMembers(40, "m35"), manyMembers(40, "x"), `{"\u0000":1,"":2}`, "[\"\x01\"]", "{}\v",
	} {
		f.Add([]byte(seed))
	}
	names := intent.NewNames(fuzzNames...)
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := intent.CheckJSON(raw, names)
		want := oracle(raw)
		if (err == nil) != (want == "") {
			t.Fatalf("CheckJSON(%q) = %v, the oracle says %q", raw, err, want)
		}
		var je *intent.JSONError
		if err != nil && !errors.As(err, &je) {
			t.Fatalf("CheckJSON(%q) = %T, want a *JSONError", raw, err)
		}
	})
}

// oracle says what is wrong with raw, or "".
func oracle(raw []byte) string {
	switch {
	case !json.Valid(raw):
		return "malformed"
	case !utf8.Valid(raw):
		return "UTF-8"
	case halfPair(string(raw)):
		return "surrogate"
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return walk(d, 0)
}

var escapes = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// halfPair looks at the escapes in their order; two halves make a pair only
// when they are neighbours.
func halfPair(s string) bool {
	high := -1 // where the escape after a high half has to begin
	for _, at := range escapes.FindAllStringIndex(s, -1) {
		e := s[at[0]:at[1]]
		unit := uint64(0)
		if e[1] == 'u' {
			unit, _ = strconv.ParseUint(e[2:], 16, 16)
		}
		low := unit >= 0xdc00 && unit <= 0xdfff
		if (high >= 0) != low || (low && at[0] != high) {
			return true
		}
		if high = -1; unit >= 0xd800 && unit <= 0xdbff {
			high = at[1]
		}
	}
	return high >= 0
}

func walk(d *json.Decoder, depth int) string {
	tok, err := d.Token()
	if err != nil {
		return "token"
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return ""
	}
	if depth == 64 {
		return "deep"
	}
	var seen []string
	for d.More() {
		if delim == '{' {
			tok, err := d.Token()
			if err != nil {
				return "token"
			}
			name := tok.(string)
			for _, s := range seen {
				if strings.EqualFold(s, name) {
					return "twice"
				}
			}
			seen = append(seen, name)
			for _, k := range fuzzNames {
				if k != name && strings.EqualFold(k, name) {
					return "misspelt"
				}
			}
		}
		if bad := walk(d, depth+1); bad != "" {
			return bad
		}
	}
	if _, err := d.Token(); err != nil {
		return "token"
	}
	return ""
}
