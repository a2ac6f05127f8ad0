package intent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CanonicalJSON prints v exactly as Python's
//
//	json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
//
// so that an orchestrator can compute the same key in a few lines. It takes
// nil, bool, string, int, int64, uint64, a [json.Number] that is an integer,
// []string, []any, map[string]any and map[string]string, nested up to 64
// deep. Floats have no one spelling in two languages and are refused, as are
// all other types and invalid UTF-8. The error is a [*JSONError].
//
// encoding/json won't do: it escapes &, <, >, U+2028 and U+2029.
func CanonicalJSON(v any) ([]byte, error) {
	return AppendCanonicalJSON(make([]byte, 0, 256), v)
}

// AppendCanonicalJSON appends to b what [CanonicalJSON] prints.
func AppendCanonicalJSON(b []byte, v any) ([]byte, error) {
	b, err := appendCanonical(b, v, 0)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func appendCanonical(b []byte, v any, depth int) ([]byte, *JSONError) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendString(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case uint64:
		return strconv.AppendUint(b, v, 10), nil
	case json.Number:
		return appendNumber(b, string(v))
	case []string:
		return appendArray(b, v, depth)
	case []any:
		return appendArray(b, v, depth)
	case map[string]string:
		return appendObject(b, v, depth)
	case map[string]any:
		return appendObject(b, v, depth)
	case float32, float64:
		return nil, &JSONError{Problem: "a floating-point number has no canonical form"}
	}
	return nil, &JSONError{Problem: fmt.Sprintf("a Go %T has no canonical form", v)}
}

func appendArray[T any](b []byte, list []T, depth int) ([]byte, *JSONError) {
	if depth == maxDepth {
		return nil, &JSONError{Problem: problemDepth}
	}
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		var err *JSONError
		if b, err = appendCanonical(b, v, depth+1); err != nil {
			return nil, err.under(fmt.Sprintf("[%d]", i))
		}
	}
	return append(b, ']'), nil
}

// appendObject sorts names by their bytes, which for UTF-8 is the order of
// code points, Python's order.
func appendObject[T any](b []byte, object map[string]T, depth int) ([]byte, *JSONError) {
	if depth == maxDepth {
		return nil, &JSONError{Problem: problemDepth}
	}
	names := make([]string, 0, 16) // not slices.Sorted: every key is made here, and this is most of it
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		var err *JSONError
		if b, err = appendString(b, name); err != nil {
			return nil, err.under(shown(name))
		}
		b = append(b, ':')
		if b, err = appendCanonical(b, object[name], depth+1); err != nil {
			return nil, err.under(shown(name))
		}
	}
	return append(b, '}'), nil
}

// appendNumber takes JSON's integers of any size. Python reads "-0" as 0, and
// "1.0" or "1e2" as a float.
func appendNumber(b []byte, s string) ([]byte, *JSONError) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" || (digits[0] == '0' && digits != "0") {
		return nil, &JSONError{Problem: "only an integer has a canonical form"}
	}
	if digits == "0" {
		s = digits
	}
	return append(b, s...), nil
}

const hexDigits = "0123456789abcdef"

func appendString(b []byte, s string) ([]byte, *JSONError) {
	if !utf8.ValidString(s) {
		return nil, &JSONError{Problem: problemUTF8}
	}
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"'), nil
}
