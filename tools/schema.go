package tools

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/onceward/onceward/intent"
)

// compile compiles the input schemas of all tools. One compiler for all of them reads
// JSON Schema's own definition only once, which is most of the time it takes.
func compile(tools []*tool) error {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	for _, t := range tools {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(t.input))
		if err != nil {
			return fmt.Errorf("tools: the input schema of %s isn't JSON: %w", t.name, err)
		}
		if err := c.AddResource(t.name, doc); err != nil {
			return fmt.Errorf("tools: the input schema of %s: %w", t.name, err)
		}
		if t.schema, err = c.Compile(t.name); err != nil {
			return fmt.Errorf("tools: the input schema of %s doesn't compile: %w", t.name, err)
		}
		t.known = intent.NewNames(slices.Collect(maps.Keys(t.schema.Properties))...)
	}
	return nil
}

// violations says which rules of the schema the arguments break. The validator's own
// texts quote values, so the words are made here from the kind of each error.
func (t *tool) violations(args map[string]any) ([]problem, error) {
	err := t.schema.Validate(args)
	if err == nil {
		return nil, nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil, err
	}
	var found []problem
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) == 0 {
			found = append(found, t.violation(e)...)
		}
	}
	walk(invalid)
	return found, nil
}

// identityNames are what models try to set who have seen them elsewhere.
var identityNames = map[string]bool{
	"workflow_id": true, "step": true, "business_object": true, "revision": true, "business_operation_id": true,
	"run_id": true, "idempotency_key": true, "operation_id": true, "tenant": true,
}

func (t *tool) violation(e *jsonschema.ValidationError) []problem {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		var missing []problem
		for _, name := range k.Missing {
			missing = append(missing, problem{field: name, text: name + " is required"})
		}
		return missing
	case *kind.AdditionalProperties:
		var unknown []problem
		for _, name := range k.Properties {
			unknown = append(unknown, unknownArgument(name))
		}
		return unknown
	}
	field, place := location(e.InstanceLocation)
	text := place + " " + rule(e.ErrorKind)
	if hint := t.hints[field]; hint != "" {
		if _, ok := e.ErrorKind.(*kind.Pattern); ok {
			text = place + " isn't of the right form"
		}
		text += " (" + hint + ")"
	}
	return []problem{{field: field, text: text}}
}

func unknownArgument(name string) problem {
	text := shown(name) + " isn't an argument of this tool"
	if identityNames[name] {
		text += ": what an action is called comes from the orchestrator, not from arguments"
	}
	return problem{field: shown(name), text: text}
}

// rule words the rule that a value breaks; never the value.
func rule(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be " + article(strings.Join(k.Want, " or "))
	case *kind.Enum:
		options := make([]string, len(k.Want))
		for i, want := range k.Want {
			options[i] = fmt.Sprint(want)
		}
		return "must be one of " + strings.Join(options, ", ")
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d, and has %d", k.Want, k.Got)
	case *kind.Pattern:
		return "must match " + k.Want
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	}
	return "isn't valid"
}

func number(r *big.Rat) string { return strings.TrimSuffix(r.RatString(), "/1") }

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeio") {
		return "an " + noun
	}
	return "a " + noun
}

// location gives the argument and the place in it, such as to and to[3].
func location(path []string) (field, place string) {
	if len(path) == 0 {
		return "", "the whole"
	}
	field = shown(path[0])
	place = field
	for _, element := range path[1:] {
		place += "[" + shown(element) + "]"
	}
	return field, place
}
