package tools_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// compiled compiles a schema as a client would.
func compiled(t testing.TB, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// conforms holds an answer to the schema that its tool shows.
func conforms(t testing.TB, schema *jsonschema.Schema, structured json.RawMessage) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(structured))
	if err != nil {
		t.Fatalf("%v: %s", err, structured)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("the answer breaks the output schema: %v\n%s", err, structured)
	}
}
