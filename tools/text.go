package tools

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/onceward/onceward/providers"
)

// Limits in bytes, as sent.
const (
	maxText    = 512
	maxSubject = 998 // RFC 5322, 2.1.1: the longest line
	maxBody    = 256 << 10
	maxAmount  = 32 // far more digits than an int64 has
)

// text reads a string of at most limit bytes. An empty one counts as not given.
func (a *arguments) text(name string, limit int, required bool) string {
	v := a.value(name)
	if !a.given(name) {
		if required {
			a.wrong(name, "is required")
		}
		return ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		a.wrong(name, "must be a string")
	case required && s == "":
		a.wrong(name, "must not be empty")
	case len(s) > limit:
		a.wrong(name, "has %d bytes, at most %d are allowed", len(s), limit)
	case !utf8.ValidString(s):
		a.wrong(name, "isn't valid UTF-8")
	case strings.ContainsRune(s, 0):
		a.wrong(name, "has a zero byte")
	default:
		return s
	}
	return ""
}

func (a *arguments) given(name string) bool {
	_, ok := a.values[name]
	return ok
}

// line reads a string without line breaks and control characters: what gets into a
// mail's header or a bank's form.
func (a *arguments) line(name string, limit int, required bool) string {
	s := a.text(name, limit, required)
	if strings.ContainsFunc(s, breaksLine) {
		a.wrong(name, "has a line break or another control character; write it in one line")
		return ""
	}
	return s
}

func breaksLine(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// name reads a line that is an identity to somebody, so that a space too many would
// make another one of it.
func (a *arguments) name(name string) string {
	s := a.line(name, maxText, true)
	if s != strings.TrimSpace(s) {
		a.wrong(name, "begins or ends with a space")
		return ""
	}
	return s
}

// choice reads a string that is one of a list.
func (a *arguments) choice(name string, options []string, required bool) string {
	s := a.line(name, maxText, required)
	if s != "" && !slices.Contains(options, s) {
		a.wrong(name, "must be one of %s", strings.Join(options, ", "))
		return ""
	}
	return s
}

// integer reads a whole number from low to high; fallback where it isn't given.
func (a *arguments) integer(name string, low, high, fallback int) int {
	v := a.value(name)
	if !a.given(name) {
		return fallback
	}
	written, ok := v.(json.Number)
	if !ok {
		a.wrong(name, "must be an integer")
		return fallback
	}
	n, err := strconv.Atoi(string(written))
	if err != nil || n < low || n > high {
		a.wrong(name, "must be an integer from %d to %d", low, high)
		return fallback
	}
	return n
}

// money reads amount and currency.
func (a *arguments) money() providers.Money {
	before := len(a.problems)
	amount := a.line("amount", maxAmount, true)
	currency := a.line("currency", maxText, true) // in either case: ParseMoney knows
	if len(a.problems) > before {
		return providers.Money{}
	}
	m, err := providers.ParseMoney(amount, currency)
	if err == nil {
		return m
	}
	if bad, ok := errors.AsType[*providers.ArgumentError](err); ok {
		a.wrong(bad.Field, "%s", bad.Problem)
	} else {
		a.wrong("amount", "can't be read")
	}
	return providers.Money{}
}

// account reads a bank account's number, as people write it.
func (a *arguments) account(name string) string {
	before := len(a.problems)
	s := upper(strings.NewReplacer(" ", "", "-", "").Replace(a.line(name, maxText, true)))
	switch {
	case len(a.problems) > before:
		return ""
	case s == "" || len(s) > 64:
		a.wrong(name, "must have 1 to 64 characters besides spaces and hyphens")
	case strings.ContainsFunc(s, notAccount):
		a.wrong(name, "may have letters A to Z, digits and : _ . / only")
	case strings.ContainsAny(s[:1], ":_./"):
		a.wrong(name, "must begin with a letter or a digit")
	default:
		return s
	}
	return ""
}

func notAccount(r rune) bool {
	return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(":_./", r)
}

// upper changes the letters a to z only. Unicode's rules would turn other letters into
// these, and one account or address into another.
func upper(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

// lower changes the letters A to Z only, for the same reason as upper.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, s)
}
