package intent_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/intent"
)

// The expected texts are what Python 3.11 printed for the same values.
func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"null":                  {nil, `null`},
		"booleans":              {[]any{true, false}, `[true,false]`},
		"integers":              {[]any{0, -1, int64(math.MinInt64), uint64(math.MaxUint64)}, `[0,-1,-9223372036854775808,18446744073709551615]`},
		"numbers":               {[]any{json.Number("-0"), json.Number("9007199254740993"), json.Number("-123456789012345678901234567890")}, `[0,9007199254740993,-123456789012345678901234567890]`},
		"empty":                 {[]any{"", []any{}, []string{}, map[string]any{}, map[string]string{}}, `["",[],[],{},{}]`},
		"nil lists and objects": {[]any{[]any(nil), []string(nil), map[string]any(nil)}, `[[],[],{}]`},
		"escapes":               {"\"\\/\b\f\n\r\t\x00\x1f\x7f", `"\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f\""},
		"not escaped":           {"<>&'\u0080\u2028\u2029\ufeff\ufffd\uffffé😀", "\"<>&'\u0080\u2028\u2029\ufeff\ufffd\uffffé😀\""},
		"sorted by code point":  {map[string]any{"\U00010000": 1, "\uffff": 2, "b": 3, "B": 4, "": 5, "bb": 6, "é": 7, "_": 8, "\x7f": 9}, "{\"\":5,\"B\":4,\"_\":8,\"b\":3,\"bb\":6,\"\x7f\":9,\"é\":7,\"\uffff\":2,\"\U00010000\":1}"},
		"nested":                {map[string]any{"b": []string{"x", "y"}, "a": map[string]string{"d": "1", "c": "2"}}, `{"a":{"c":"2","d":"1"},"b":["x","y"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := intent.CanonicalJSON(tc.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCanonicalJSONRefuses(t *testing.T) {
	t.Parallel()
	deep := any("x")
	deepObject := any("x")
	for range 65 {
		deep, deepObject = []any{deep}, map[string]any{"a": deepObject}
	}
	const noFloat, noNumber, noUTF8 = "a floating-point number has no canonical form", "only an integer has a canonical form", "not valid UTF-8"
	for name, tc := range map[string]struct {
		value         any
		path, problem string
	}{
		"a float":             {map[string]any{"a": []any{1, 2.0}}, "a[1]", noFloat},
		"a small float":       {float32(1), "", noFloat},
		"a fraction":          {json.Number("1.0"), "", noNumber},
		"an exponent":         {json.Number("1e2"), "", noNumber},
		"a leading zero":      {json.Number("01"), "", noNumber},
		"minus zeros":         {json.Number("-00"), "", noNumber},
		"a plus sign":         {json.Number("+1"), "", noNumber},
		"no digits":           {json.Number("-"), "", noNumber},
		"no number":           {json.Number(""), "", noNumber},
		"two signs":           {json.Number("--1"), "", noNumber},
		"a sign in between":   {json.Number("1-1"), "", noNumber},
		"digits not in ASCII": {json.Number("١"), "", noNumber},
		"a broken string":     {map[string]any{"a": map[string]any{"b": []string{"x", "\xff"}}}, "a.b[1]", noUTF8},
		"a surrogate":         {map[string]string{"a": "\xed\xa0\x80"}, "a", noUTF8},
		"a broken name":       {map[string]any{"a": map[string]any{"x\xff": 1}}, `a."x\xff"`, noUTF8},
		"another type":        {map[string]any{"a b": int32(1)}, `"a b"`, "a Go int32 has no canonical form"},
		"a struct":            {[]any{struct{ A string }{"planted"}}, "[0]", "a Go struct { A string } has no canonical form"},
		"a pointer":           {new(int), "", "a Go *int has no canonical form"},
		"65 deep, objects":    {deepObject, strings.TrimSuffix(strings.Repeat("a.", 64), "."), "nested more than 64 deep"},
		"65 deep":             {deep, strings.Repeat("[0]", 64), "nested more than 64 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := intent.CanonicalJSON(tc.value)
			var got *intent.JSONError
			if !errors.As(err, &got) || b != nil {
				t.Fatalf("CanonicalJSON = %q, %v, want nil and a *JSONError", b, err)
			}
			if diff := cmp.Diff(&intent.JSONError{Path: tc.path, Problem: tc.problem}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCanonicalJSON reads any JSON and prints it canonically: encoding/json
// reads the same value from that, and printing it again changes nothing.
func FuzzCanonicalJSON(f *testing.F) {
	for _, seed := range []string{
		`null`, `{"b":[1,-0,"x"],"a":{"é":true,"":null}}`, `"\u0000\u001f\u007f\u2028\ud83d\ude00<&>\/"`, `[123456789012345678901234567890]`,
		strings.Repeat("[", 64) + strings.Repeat("]", 64), `{"\uffff":1,"\ud800\udc00":2}`, `[1.5]`, `[1e2]`, `{"a":1,"a":2}`, `"\ud800"`, strings.Repeat("[", 65) + strings.Repeat("]", 65),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, ok := readJSON(raw)
		if !ok {
			t.Skip()
		}
		printed, err := intent.CanonicalJSON(value)
		if err != nil {
			if !hasFloat(value) && depth(value) <= 64 {
				t.Fatalf("CanonicalJSON(%q): %v", raw, err)
			}
			return
		}
		again, ok := readJSON(printed)
		if !ok {
			t.Fatalf("CanonicalJSON(%q) = %q, which isn't JSON", raw, printed)
		}
		// Not cmp.Diff: its time doubles with every level of nesting.
		if !reflect.DeepEqual(unsignedZeros(value), again) {
			t.Fatalf("%q printed as %q is another value", raw, printed)
		}
		reprinted, err := intent.CanonicalJSON(again)
		if err != nil || string(reprinted) != string(printed) {
			t.Fatalf("%q printed again is %q, %v", printed, reprinted, err)
		}
	})
}

// unsignedZeros turns -0 into 0, in place.
func unsignedZeros(v any) any {
	switch v := v.(type) {
	case json.Number:
		if v == "-0" {
			return json.Number("0")
		}
	case []any:
		for i := range v {
			v[i] = unsignedZeros(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = unsignedZeros(v[k])
		}
	}
	return v
}

func readJSON(raw []byte) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

func hasFloat(v any) bool {
	found := false
	visit(v, 0, func(v any, _ int) {
		n, ok := v.(json.Number)
		found = found || (ok && strings.ContainsAny(string(n), ".eE"))
	})
	return found
}

func depth(v any) (deepest int) {
	visit(v, 0, func(v any, d int) {
		switch v.(type) {
		case []any, map[string]any:
			deepest = max(deepest, d+1)
		}
	})
	return deepest
}

func visit(v any, depth int, f func(any, int)) {
	f(v, depth)
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			visit(e, depth+1, f)
		}
	case map[string]any:
		for _, e := range v {
			visit(e, depth+1, f)
		}
	}
}
