package intent

import (
	"bytes"
	"encoding/json"
)

// ReadJSON checks raw as [CheckJSON] does, and returns its value: nil, a bool, a
// string, a [json.Number], a []any or a map[string]any, as encoding/json's decoder makes
// them with UseNumber. The error is a [*JSONError].
//
// One reader for both means that nothing is decoded that wasn't checked, and that the
// text isn't scanned a third time.
func ReadJSON(raw []byte, names Names) (any, error) {
	v, err := readJSON(raw, names)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func readJSON(raw []byte, names Names) (any, *JSONError) {
	if err := checkJSON(raw, names); err != nil {
		return nil, err
	}
	r := reader{src: raw}
	return r.value(), nil
}

// A reader makes values of a text that has passed the check, so that nothing in it can
// be wrong.
type reader struct {
	src []byte
	pos int
}

// next is the next byte that isn't white space.
func (r *reader) next() byte {
	for {
		switch c := r.src[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
}

func (r *reader) value() any {
	switch r.next() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.string()
	case 't':
		r.pos += len("true")
		return true
	case 'f':
		r.pos += len("false")
		return false
	case 'n':
		r.pos += len("null")
		return nil
	}
	return r.number()
}

func (r *reader) object() map[string]any {
	object := make(map[string]any)
	r.pos++
	if r.next() == '}' {
		r.pos++
		return object
	}
	for {
		r.next()
		name := r.string()
		r.next()
		r.pos++ // the colon
		object[name] = r.value()
		end := r.next()
		r.pos++
		if end == '}' {
			return object
		}
	}
}

func (r *reader) array() []any {
	array := []any{}
	r.pos++
	if r.next() == ']' {
		r.pos++
		return array
	}
	for {
		array = append(array, r.value())
		end := r.next()
		r.pos++
		if end == ']' {
			return array
		}
	}
}

func (r *reader) string() string {
	r.pos++
	start, escaped := r.pos, false
	for r.src[r.pos] != '"' {
		if r.src[r.pos] == '\\' {
			escaped = true
			r.pos++ // what is escaped may be a quote
		}
		r.pos++
	}
	text := r.src[start:r.pos]
	r.pos++
	if escaped {
		text = unescape(make([]byte, 0, len(text)), text)
	}
	return string(text)
}

func (r *reader) number() json.Number {
	start := r.pos
	for r.pos < len(r.src) && bytes.IndexByte([]byte("+-.eE0123456789"), r.src[r.pos]) >= 0 {
		r.pos++
	}
	return json.Number(r.src[start:r.pos])
}
