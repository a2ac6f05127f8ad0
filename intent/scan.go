package intent

import "bytes"

// A span is a part of the text.
type span struct{ start, end int }

func (p span) of(b []byte) []byte { return b[p.start:p.end] }

// A frame is an array or object that is being read.
type frame struct {
	object bool
	named  bool // name is set
	name   span // an object's current member, without quotes, still escaped
	index  int  // an array's current element
	first  int  // an object's first entry in scanner.members
	// seen replaces the entries in scanner.members when they become many.
	seen map[string]struct{}
}

// manyMembers is when looking through a list of names gives way to a map: a
// hostile object with a hundred thousand members must not cost their square.
const manyMembers = 32

// A scanner walks a JSON text once, without building anything from it.
type scanner struct {
	src    []byte
	pos    int
	names  Names
	frames [maxDepth]frame
	depth  int
	// members are the folded names of the open objects, parts of folds.
	members []span
	folds   []byte
	scratch []byte
	// leavesArguments: see CheckMessage. tolerant is set while such a string is read.
	leavesArguments, tolerant bool
}

// inArguments reports whether the scanner stands in params.arguments of a message.
func (s *scanner) inArguments() bool {
	return s.leavesArguments && s.depth >= 2 &&
		string(s.frames[0].name.of(s.src)) == "params" && string(s.frames[1].name.of(s.src)) == "arguments"
}

func (s *scanner) document() *JSONError {
	if err := s.value(); err != nil {
		return err
	}
	if s.space(); s.pos != len(s.src) {
		return s.fail(problemTrailing)
	}
	return nil
}

// peek is the next byte, or 0 at the end, which begins nothing in JSON.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) value() *JSONError {
	s.space()
	switch c := s.peek(); {
	case c == '{':
		return s.container(true)
	case c == '[':
		return s.container(false)
	case c == '"':
		s.tolerant = s.inArguments()
		_, err := s.string()
		s.tolerant = false
		return err
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || isDigit(c):
		return s.number()
	}
	return s.malformed()
}

func (s *scanner) literal(word string) *JSONError {
	if !bytes.HasPrefix(s.src[s.pos:], []byte(word)) {
		return s.malformed()
	}
	s.pos += len(word)
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (s *scanner) number() *JSONError {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return s.malformed()
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return s.malformed()
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return s.malformed()
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for isDigit(s.peek()) {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) container(object bool) *JSONError {
	if s.depth == maxDepth {
		return s.fail(problemDepth)
	}
	f := &s.frames[s.depth]
	*f = frame{object: object, first: len(s.members)}
	s.depth++
	folds := len(s.folds)
	closing := byte(']')
	if object {
		closing = '}'
	}
	s.pos++
	if s.space(); s.peek() == closing {
		s.pos++
		s.depth--
		return nil
	}
	for {
		if object {
			if err := s.member(f); err != nil {
				return err
			}
		}
		if err := s.value(); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			f.index++
		case closing:
			s.pos++
			s.depth--
			s.members, s.folds = s.members[:f.first], s.folds[:folds]
			return nil
		default:
			return s.malformed()
		}
	}
}

// member reads a name and its colon.
func (s *scanner) member(f *frame) *JSONError {
	f.named = false
	if s.space(); s.peek() != '"' {
		return s.malformed()
	}
	start := s.pos + 1
	escaped, err := s.string()
	if err != nil {
		return err
	}
	f.name, f.named = span{start, s.pos - 1}, true
	name := f.name.of(s.src)
	if escaped {
		s.scratch = unescape(s.scratch[:0], name)
		name = s.scratch
	}
	if err := s.enter(f, name); err != nil {
		return err
	}
	if s.space(); s.peek() != ':' {
		return s.malformed()
	}
	s.pos++
	return nil
}

// enter notes a member and refuses one that can be taken for another.
func (s *scanner) enter(f *frame, name []byte) *JSONError {
	start := len(s.folds)
	s.folds = appendFold(s.folds, name)
	folded := s.folds[start:]
	if known, bad := s.names.misspelt(name, folded); bad {
		return s.fail("differs only in case from " + shown(known) + ": write it exactly so")
	}
	if f.seen == nil && len(s.members)-f.first == manyMembers {
		f.seen = make(map[string]struct{}, 4*manyMembers)
		for _, m := range s.members[f.first:] {
			f.seen[string(m.of(s.folds))] = struct{}{}
		}
	}
	if f.seen != nil {
		if _, twice := f.seen[string(folded)]; twice {
			return s.fail(problemTwice)
		}
		f.seen[string(folded)] = struct{}{}
		s.folds = s.folds[:start]
		return nil
	}
	for _, m := range s.members[f.first:] {
		if bytes.Equal(m.of(s.folds), folded) {
			return s.fail(problemTwice)
		}
	}
	s.members = append(s.members, span{start, len(s.folds)})
	return nil
}
