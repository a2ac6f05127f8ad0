package smtp

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

// simpleHeader is text that a header can hold as it is and fold between words: printable
// ASCII, single spaces, no word too long for a line. An encoded word (=?...?=) that somebody
// typed isn't simple: a reader would decode it.
var simpleHeader = regexp.MustCompile(`^[!-~]{1,60}( [!-~]{1,60})*$`)

// encodedWord bounds the bytes in one word: base64 makes 60 of 45, and RFC 2047 allows a
// word 75 with its frame.
const encodedWord = 45

// headerText renders free text for a header, in encoded words of RFC 2047 where it isn't
// simple. What it returns is ASCII without line breaks, whatever the text holds.
func headerText(s string) string {
	if simpleHeader.MatchString(s) && !strings.Contains(s, "=?") {
		return s
	}
	var words []string
	for s != "" {
		n := 0
		for n < len(s) {
			_, size := utf8.DecodeRuneInString(s[n:])
			if n+size > encodedWord {
				break
			}
			n += size
		}
		words = append(words, "=?UTF-8?B?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}
