package intent_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/onceward/onceward/intent"
)

// FuzzReadJSON compares what is read with what encoding/json makes of the same text,
// wherever the check lets it pass.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{
		toolCall, ` null `, `true`, `[false,true , null]`, `""`, `"a\"b\\"`, `"\\"`, `{"\"":"\\\""}`, `{"a\u0062":"\u00e9\ud83d\ude00\/\b\f\n\r\t"}`,
		`-0`, `0`, `12e-3`, `1.5E+30`, `9007199254740993`, ` [ ] `, ` { } `, `[[],{},[{}]]`, "\t{ \"a\" : [ 1 , 2 ] ,\r\n\"b\":{} } ", `"é\u2028"`,
		strings.Repeat("[", 64) + strings.Repeat("]", 64), manyMembers(40, "x"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		names := intent.NewNames(fuzzNames...)
		got, err := intent.ReadJSON(raw, names)
		if checked := intent.CheckJSON(raw, names); checked != nil {
			if !reflect.DeepEqual(checked, err) || got != nil {
				t.Fatalf("ReadJSON(%q) = %v, %v, want CheckJSON's error %v", raw, got, err, checked)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		// cmp.Diff would take exponential time in the depth.
		if err != nil || !reflect.DeepEqual(want, got) {
			t.Fatalf("ReadJSON(%q) = %#v, %v, want %#v", raw, got, err, want)
		}
	})
}
