package tools

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRecipients counts to, cc and bcc together.
const maxRecipients = 100

// Limits of an address in bytes: RFC 5321, 4.5.3.1.
const (
	maxAddress = 254
	maxLocal   = 64
	maxLabel   = 63
)

const addressHint = "write the bare address only, like name@example.com"

// addresses reads a list: lower-case, sorted, each once. total counts all lists.
func (a *arguments) addresses(name string, required bool, total *int) []string {
	v := a.value(name)
	if !a.given(name) {
		if required {
			a.wrong(name, "is required")
		}
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		a.wrong(name, "must be an array of addresses")
		return nil
	}
	if required && len(list) == 0 {
		a.wrong(name, "must have at least 1")
	}
	before := *total
	if *total += len(list); *total > maxRecipients {
		if before <= maxRecipients {
			a.wrong(name, "makes more than %d recipients together", maxRecipients)
		}
		return nil
	}
	var found []string
	for i, element := range list {
		s, ok := element.(string)
		why := "must be a string"
		if ok {
			s, why = address(s)
		}
		if why != "" {
			a.problems = append(a.problems, problem{field: name, text: fmt.Sprintf("%s[%d] %s", name, i, why)})
			continue
		}
		found = append(found, s)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// address reads one optional address.
func (a *arguments) address(name string) string {
	s := a.text(name, maxText, false)
	if s == "" {
		return ""
	}
	s, why := address(s)
	if why != "" {
		a.wrong(name, "%s", why)
	}
	return s
}

// address normalises a bare address, local@domain, or says what is wrong with it.
// net/mail reads more than that: names, comments, quotes, whole lists. What isn't
// plainly one mailbox is refused, because it may be two to the next reader.
// Letters beyond ASCII are allowed (RFC 6531) and stay as they are.
func address(s string) (normal, why string) {
	local, domain, found := strings.Cut(s, "@")
	switch {
	case len(s) > maxAddress:
		return "", "is longer than 254 bytes"
	case !utf8.ValidString(s):
		return "", "isn't valid UTF-8"
	case strings.ContainsFunc(s, invisible):
		return "", "has a space, a line break or another invisible character; " + addressHint
	case !found || strings.Contains(domain, "@"):
		return "", "must have one @; " + addressHint
	case !isLocal(local):
		return "", "has no valid name before the @; " + addressHint
	case !isDomain(domain):
		return "", "has no valid domain after the @; " + addressHint
	}
	return lower(s), ""
}

func invisible(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// isLocal accepts a dot-string of RFC 5321 with the letters of RFC 6531. Quoted
// names are refused.
func isLocal(s string) bool {
	if s == "" || len(s) > maxLocal || s[0] == '.' || s[len(s)-1] == '.' || strings.Contains(s, "..") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < utf8.RuneSelf && !isAlphanumeric(r) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~.", r)
	})
}

// isDomain accepts names of at least two labels. The last one has a letter: an IP
// address is no domain.
func isDomain(s string) bool {
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return len(labels) > 1 && strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

func notInLabel(r rune) bool {
	if r < utf8.RuneSelf {
		return !isAlphanumeric(r) && r != '-'
	}
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
