package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
)

// A problem is what is wrong with one argument: a whole clause that names it and
// never its value.
type problem struct{ field, text string }

// maxProblems bounds how many problems one refusal lists.
const maxProblems = 8

func invalid(problems []problem) *ledger.Refusal {
	r := &ledger.Refusal{Code: ledger.InvalidArguments}
	var texts []string
	for i, p := range problems {
		if i == maxProblems {
			texts = append(texts, fmt.Sprintf("and %d more", len(problems)-i))
			break
		}
		texts = append(texts, p.text)
		if p.field != "" && !slices.Contains(r.Fields, p.field) {
			r.Fields = append(r.Fields, p.field)
		}
	}
	r.Message = strings.Join(texts, "; ") + "."
	return r
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// shown is a name from the input as it may stand in an answer. A model can write
// anything for a name, also somebody's address.
func shown(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return "an argument whose name isn't plain"
}

// parse reads a call's arguments: exact, strict, numbers as they were written.
func (t *tool) parse(raw any) (map[string]any, *ledger.Refusal) {
	var text []byte
	switch raw := raw.(type) {
	case nil:
		return map[string]any{}, nil
	case json.RawMessage:
		text = raw
	default:
		// Decoded once already: numbers and broken strings would have changed.
		return nil, invalid([]problem{{text: "the arguments didn't come as JSON text"}})
	}
	v, err := intent.ReadJSON(text, t.known)
	if err != nil {
		return nil, t.malformed(err)
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	}
	return nil, invalid([]problem{{text: "the arguments must be an object"}})
}

func (t *tool) malformed(err error) *ledger.Refusal {
	bad, ok := errors.AsType[*intent.JSONError](err)
	if !ok {
		return invalid([]problem{{text: "the arguments aren't valid JSON"}})
	}
	field := bad.Path
	if end := strings.IndexAny(field, ".["); end >= 0 {
		field = field[:end]
	}
	if _, ok := t.schema.Properties[field]; !ok {
		field = ""
	}
	text := "the arguments can't be read: " + bad.Problem
	if field != "" {
		text = field + " can't be read: " + bad.Problem
	}
	return invalid([]problem{{field: field, text: text}})
}

// arguments are read one by one, by name; what is wrong is collected, so that a model
// can correct everything at once.
type arguments struct {
	values   map[string]any
	read     map[string]bool
	problems []problem
}

func newArguments(values map[string]any) *arguments {
	return &arguments{values: values, read: make(map[string]bool, len(values))}
}

// refusal tells all that was wrong, also arguments that nobody read.
func (a *arguments) refusal() *ledger.Refusal {
	var unread []string
	for name := range a.values {
		if !a.read[name] {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	for _, name := range unread {
		a.problems = append(a.problems, unknownArgument(name))
	}
	if len(a.problems) == 0 {
		return nil
	}
	return invalid(a.problems)
}

func (a *arguments) wrong(name, format string, args ...any) {
	a.problems = append(a.problems, problem{field: name, text: name + " " + fmt.Sprintf(format, args...)})
}

func (a *arguments) value(name string) any {
	a.read[name] = true
	return a.values[name]
}
