package intent

import (
	"unicode/utf16"
	"unicode/utf8"
)

// plainInString marks the ASCII bytes that stand for themselves in a string.
var plainInString = func() (plain [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

// string reads a string and reports whether it has escapes.
func (s *scanner) string() (escaped bool, err *JSONError) {
	s.pos++
	for {
		i := s.pos
		for i < len(s.src) && plainInString[s.src[i]] {
			i++
		}
		if s.pos = i; i == len(s.src) {
			return escaped, s.malformed()
		}
		switch c := s.src[i]; {
		case c == '"':
			s.pos++
			return escaped, nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return true, err
			}
		case c < ' ':
			return escaped, s.malformed()
		default:
			r, size := utf8.DecodeRune(s.src[i:])
			if r == utf8.RuneError && size == 1 && !s.tolerant {
				return escaped, s.fail(problemUTF8)
			}
			s.pos += size
		}
	}
}

func (s *scanner) escape() *JSONError {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
	default:
		return s.malformed()
	}
	s.pos++
	r, ok := hex4(s.src[s.pos:])
	if !ok {
		return s.malformed()
	}
	s.pos += 4
	if !utf16.IsSurrogate(r) {
		return nil
	}
	if low, ok := lowHalf(s.src[s.pos:]); !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		if s.tolerant {
			return nil
		}
		return s.fail(problemSurrogate)
	}
	s.pos += 6
	return nil
}

// lowHalf reads a \u escape at the beginning of b.
func lowHalf(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	return hex4(b[2:])
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape appends what a string, which was read before, stands for.
func unescape(b, escaped []byte) []byte {
	for i := 0; i < len(escaped); i++ {
		c := escaped[i]
		if c != '\\' {
			b = append(b, c)
			continue
		}
		i++
		switch c := escaped[i]; c {
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, _ := hex4(escaped[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := lowHalf(escaped[i+1:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, c)
		}
	}
	return b
}
