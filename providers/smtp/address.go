package smtp

import (
	"net/mail"
	"strings"
	"unicode/utf8"

	"github.com/onceward/onceward/providers"
)

// bareAddress says what is wrong with an address that goes into a command, between < and >,
// and into a header. "" means that it is plainly one mailbox: a reader who is more generous
// might find two in it, or an end of the command.
func bareAddress(s string) (problem string) {
	parsed, err := mail.ParseAddress(s)
	switch {
	case !utf8.ValidString(s):
		return "isn't valid UTF-8"
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`<>()[]\",;:`, r) }):
		return "has a character that a bare address can't hold"
	case strings.Count(s, "@") != 1:
		return "must have one @"
	case err != nil || parsed.Address != s || parsed.Name != "":
		return "isn't a bare address like name@example.com"
	}
	return ""
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// addresses reads a list of bare addresses.
func addresses(field string, list []string) ([]*mail.Address, error) {
	var read []*mail.Address
	for _, s := range list {
		if problem := bareAddress(s); problem != "" {
			return nil, &providers.ArgumentError{Field: field, Problem: problem}
		}
		read = append(read, &mail.Address{Address: s})
	}
	return read, nil
}

// envelope lists each recipient once, whichever headers show it.
func envelope(lists ...[]*mail.Address) []string {
	var to []string
	seen := map[string]bool{}
	for _, list := range lists {
		for _, a := range list {
			if !seen[a.Address] {
				seen[a.Address] = true
				to = append(to, a.Address)
			}
		}
	}
	return to
}
