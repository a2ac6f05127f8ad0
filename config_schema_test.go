package main

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/onceward/onceward/providers"
)

const configSchema = "docs/config.schema.json"

func compileConfigSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(configSchema)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func fitsSchema(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return schema.Validate(v)
}

// TestConfigSchemaTakesExamples: what the documentation shows has no line that an editor would
// mark.
func TestConfigSchemaTakesExamples(t *testing.T) {
	t.Parallel()
	schema := compileConfigSchema(t)
	for _, name := range []string{providersDoc, "README.md", policyDoc} {
		doc, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(doc, -1)
		if len(examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for i, example := range examples {
			if err := fitsSchema(t, schema, string(example[1])); err != nil {
				t.Errorf("%s, example %d: %v", name, i+1, err)
			}
		}
	}
}

// TestConfigSchemaRefuses: an editor marks what the server would refuse, as far as a schema can.
func TestConfigSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := compileConfigSchema(t)
	for _, text := range []string{
		"limits: 5",
		"tools: {refunds: {provider: sandbox}}",
		"tools: {refund: {provider: stirpe}}",
		"tools: {refund: {provider: smtp}}",
		"tools: {refund: {templates: [a]}}",
		"tools: {refund: {elicit: true}}",
		"tools: {refund: {approval: off}}",
		"tools: {refund: {approval: {}}}",
		"tools: {refund: {approval: {above: {}}}}",
		"tools: {refund: {approval: {above: {USD: 100.00}}}}",
		"tools: {refund: {approval: {above: {usd: '100.00'}}}}",
		"tools: {refund: {approval: {above: {USD: '-1'}}}}",
		"tools: {refund: {approval: {recipients_outside: [example.com]}}}",
		"tools: {email.send: {approval: {above: {USD: '1'}}}}",
		"tools: {email.send: {approval: {recipients_outside: ['@example.com']}}}",
		"tools: {email.send: {limits: {per_day: {amount: {USD: '1'}}}}}",
		"tools: {refund: {limits: {per_day: {}}}}",
		"tools: {refund: {limits: {per_day: {count: 0}}}}",
		"tools: {refund: {limits: {per_day: {count: 1.5}}}}",
		"tools: {refund: {limits: {per_hour: {count: 1}}}}",
		"tools: {refund: {lease: 40}}",
		"tools: {refund: {lease: 1d}}",
		"tools: {refund: {retention: -1h}}",
		"tools: {refund: {second_intent: deny}}",
		"providers: {smtp: {host: m.example.com, from: a@example.com, window: 1h}}",
		"providers: {stripe: {api_key: sk_test_1}}",
		"alarms: {webhook: {url: 'http://hooks.example.com', secret_env: X}}",
		"alarms: {webhook: {url: 'https://hooks.example.com'}}",
		"review_overdue: 24",
	} {
		if fitsSchema(t, schema, text) == nil {
			t.Errorf("the schema takes %s", text)
		}
		if c, err := loadedQuietly(t, text); err == nil {
			if err = everyPolicy(c); err == nil {
				t.Errorf("the server takes %s", text)
			}
		}
	}
}

// TestConfigSchemaKeys: the schema knows exactly the keys that the code reads, everywhere.
func TestConfigSchemaKeys(t *testing.T) {
	t.Parallel()
	w := &schemaWalk{t: t}
	w.compare("$", reflect.TypeFor[configuration](), []*jsonschema.Schema{compileConfigSchema(t)})
	if w.structs < 25 {
		t.Fatalf("only %d structs were compared", w.structs)
	}
}

type schemaWalk struct {
	t       *testing.T
	structs int
}

// compare holds a type against the schemas that may describe its value; a struct's keys are those
// of all of them together (a mail's approval has other conditions than a payment's).
func (w *schemaWalk) compare(path string, typ reflect.Type, schemas []*jsonschema.Schema) {
	schemas = alternatives(schemas)
	switch {
	case len(schemas) == 0:
		w.t.Errorf("%s: the schema says nothing of it", path)
	case typ.Kind() == reflect.Pointer:
		w.compare(path, typ.Elem(), schemas)
	case typ == reflect.TypeFor[map[string]toolConfig]() || strings.HasSuffix(path, "webhook.actions"):
		merged := map[string][]*jsonschema.Schema{}
		for _, s := range schemas {
			for action, tool := range s.Properties {
				merged[action] = append(merged[action], tool)
			}
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(actions)), slices.Sorted(maps.Keys(merged))); diff != "" {
			w.t.Errorf("%s: actions (-code +schema):\n%s", path, diff)
		}
		w.compare(path+".*", typ.Elem(), slices.Concat(slices.Collect(maps.Values(merged))...))
	case typ.Kind() == reflect.Map:
		w.compare(path+".*", typ.Elem(), each(schemas, func(s *jsonschema.Schema) *jsonschema.Schema {
			inner, _ := s.AdditionalProperties.(*jsonschema.Schema)
			return inner
		}))
	case typ.Kind() == reflect.Slice:
		w.compare(path+"[]", typ.Elem(), each(schemas, func(s *jsonschema.Schema) *jsonschema.Schema { return s.Items2020 }))
	case typ.Kind() == reflect.Struct:
		w.compareStruct(path, typ, schemas)
	}
}

func (w *schemaWalk) compareStruct(path string, typ reflect.Type, schemas []*jsonschema.Schema) {
	w.structs++
	inSchema := map[string][]*jsonschema.Schema{}
	for _, s := range schemas {
		if len(s.Properties) > 0 && s.AdditionalProperties != false {
			w.t.Errorf("%s: the schema takes unknown keys", path)
		}
		for key, property := range s.Properties {
			inSchema[key] = append(inSchema[key], property)
		}
	}
	inCode := map[string]reflect.Type{}
	for key, field := range yamlFields(reflect.New(typ).Elem()) {
		inCode[key] = field.Type()
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(inCode)), slices.Sorted(maps.Keys(inSchema))); diff != "" {
		w.t.Errorf("%s: keys (-code +schema):\n%s", path, diff)
	}
	for key, property := range inSchema {
		if typ, ok := inCode[key]; ok {
			w.compare(path+"."+key, typ, property)
		}
	}
}

func each(schemas []*jsonschema.Schema, step func(*jsonschema.Schema) *jsonschema.Schema) []*jsonschema.Schema {
	var next []*jsonschema.Schema
	for _, s := range schemas {
		if inner := step(s); inner != nil {
			next = append(next, inner)
		}
	}
	return next
}

// alternatives follows references, and takes alternatives apart.
func alternatives(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	var flat []*jsonschema.Schema
	for _, s := range schemas {
		switch {
		case s.Ref != nil:
			flat = append(flat, alternatives([]*jsonschema.Schema{s.Ref})...)
		case len(s.AnyOf) > 0:
			flat = append(flat, alternatives(s.AnyOf)...)
		default:
			flat = append(flat, s)
		}
	}
	return flat
}

// TestConfigSchemaTools: what may be said of mail may be said of money, but for what can't be meant.
func TestConfigSchemaTools(t *testing.T) {
	t.Parallel()
	tools := compileConfigSchema(t).Properties["tools"].Properties
	keys := func(action string) []string {
		return slices.Sorted(maps.Keys(alternatives([]*jsonschema.Schema{tools[action]})[0].Properties))
	}
	ofMail := slices.DeleteFunc(keys(providers.EmailSend), func(key string) bool { return key == "templates" || key == "elicit" })
	for _, action := range []string{providers.PaymentOrderCreate, providers.RefundCreate} {
		if diff := cmp.Diff(ofMail, keys(action)); diff != "" {
			t.Errorf("%s (-mail +money):\n%s", action, diff)
		}
	}
}

// TestConfigSchemaProviders: what the schema offers for provider is what there is.
func TestConfigSchemaProviders(t *testing.T) {
	t.Parallel()
	offered := map[string]bool{}
	tools := compileConfigSchema(t).Properties["tools"].Properties
	for _, action := range actions {
		for _, name := range alternatives([]*jsonschema.Schema{tools[action]})[0].Properties["provider"].Enum.Values {
			offered[fmt.Sprint(name)] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(providerNames)), slices.Sorted(maps.Keys(offered))); diff != "" {
		t.Errorf("(-code +schema):\n%s", diff)
	}
}

// everyPolicy makes what serve makes, with providers that prove everything.
func everyPolicy(c *configuration) error {
	made := map[string]realProvider{}
	for _, action := range actions {
		if _, _, err := c.provider(action, made); err != nil {
			return err
		}
		if _, err := c.policy(action, provesAll); err != nil {
			return err
		}
	}
	for name := range yamlFields(reflect.ValueOf(c.Providers)) {
		if c.section(name).IsValid() {
			if _, err := c.make(name, "$.tools"); err != nil {
				return err
			}
		}
	}
	return nil
}
