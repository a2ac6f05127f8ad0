package webhook

import (
	"fmt"
	"strconv"
	"strings"
)

// A path is where a member stands in JSON.
type path []string

// parsePath reads a dotted path or a JSON Pointer; "." is the whole.
func parsePath(s string) (path, error) {
	switch {
	case s == "":
		return nil, fmt.Errorf("is empty")
	case s == ".":
		return path{}, nil
	case s[0] == '/':
		parts := strings.Split(s[1:], "/")
		for i, part := range parts {
			if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
				return nil, fmt.Errorf("%q is no JSON Pointer: ~ is written ~0, and / is written ~1", s)
			}
			parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		}
		return parts, nil
	}
	parts := strings.Split(s, ".")
	for _, part := range parts {
		if part == "" {
			return nil, fmt.Errorf("%q has an empty name: write it like data.id, or as a JSON Pointer like /data/id", s)
		}
	}
	return parts, nil
}

// get is what stands there, if anything does.
func (p path) get(v any) (any, bool) {
	for _, name := range p {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[name]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) || strconv.Itoa(i) != name {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// set puts v there, and makes the objects on the way.
func (p path) set(in map[string]any, v any) {
	for _, name := range p[:len(p)-1] {
		next, ok := in[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			in[name] = next
		}
		in = next
	}
	in[p[len(p)-1]] = v
}

// within reports whether one of the paths leads through the other.
func (p path) within(other path) bool {
	short := min(len(p), len(other))
	for i := range short {
		if p[i] != other[i] {
			return false
		}
	}
	return true
}
