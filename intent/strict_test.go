package intent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/intent"
)

const (
	twice     = "a member given twice (names that differ only in case count as one)"
	surrogate = `a \u escape of one half of a surrogate pair`
	trailing  = "something follows the end of the JSON text"
	tooDeep   = "nested more than 64 deep"
)

func misspelt(name string) string {
	return "differs only in case from " + name + ": write it exactly so"
}

func TestCheckJSONRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 65)
	for name, tc := range map[string]struct {
		text, path, problem string
	}{
		"nothing":                      {"", "", "malformed JSON: it ends too early"},
		"white space only":             {" \n", "", "malformed JSON: it ends too early"},
		"a second value":               {`{} {}`, "", trailing},
		"a byte after the value":       {`{"a":1}x`, "", trailing},
		"a zero byte after the value":  {"{}\x00", "", trailing},
		"a byte order mark":            {"\ufeff{}", "", "malformed JSON at byte 0"},
		"a comma before the end":       {`{"a":1,}`, "", "malformed JSON at byte 7"},
		"a comma in an array's end":    {`{"a":[1,]}`, "a[1]", "malformed JSON at byte 8"},
		"a leading zero":               {`{"a":01}`, "a", "malformed JSON at byte 6"},
		"a plus sign":                  {`[+1]`, "[0]", "malformed JSON at byte 1"},
		"an empty fraction":            {`[1.]`, "[0]", "malformed JSON at byte 3"},
		"an empty exponent":            {`[1e+]`, "[0]", "malformed JSON at byte 4"},
		"not a number":                 {`[NaN]`, "[0]", "malformed JSON at byte 1"},
		"half a literal":               {`[tru]`, "[0]", "malformed JSON at byte 1"},
		"a single quote":               {`['a']`, "[0]", "malformed JSON at byte 1"},
		"a name without quotes":        {`{a:1}`, "", "malformed JSON at byte 1"},
		"a name without a value":       {`{"a"}`, "a", "malformed JSON at byte 4"},
		"an open string":               {`["a`, "[0]", "malformed JSON: it ends too early"},
		"an open object":               {`{"a":1`, "a", "malformed JSON: it ends too early"},
		"a line break in a string":     {"[\"a\nb\"]", "[0]", "malformed JSON at byte 3"},
		"an unknown escape":            {`["\x41"]`, "[0]", "malformed JSON at byte 3"},
		"a short escape":               {`["\u004"]`, "[0]", "malformed JSON at byte 4"},
		"brackets that don't match":    {`[{"a":1]`, "[0].a", "malformed JSON at byte 7"},
		"a broken byte":                {"{\"a\":\"b\xff\"}", "a", "not valid UTF-8"},
		"a broken byte in a name":      {"{\"b\":1,\"a\xff\":1}", "", "not valid UTF-8"},
		"an overlong encoding":         {"[\"\xc0\xaf\"]", "[0]", "not valid UTF-8"},
		"a surrogate in UTF-8":         {"[\"\xed\xa0\x80\"]", "[0]", "not valid UTF-8"},
		"a high half alone":            {`{"a":{"b":"\uD800"}}`, "a.b", surrogate},
		"a high half and a letter":     {`["\ud83dA"]`, "[0]", surrogate},
		"a high half and an escape":    {`["\ud83d\u0041"]`, "[0]", surrogate},
		"two high halves":              {`["\ud83d\ud83d\ude00"]`, "[0]", surrogate},
		"a low half alone":             {`["\uDE00"]`, "[0]", surrogate},
		"half a pair in a name":        {`{"\ud800":1}`, "", surrogate},
		"a member twice":               {`{"a":1,"b":2,"a":1}`, "a", twice},
		"twice, once escaped":          {`{"amount":1,"\u0061mount":2}`, "amount", twice},
		"twice by case":                {`{"amount":1,"Amount":2}`, "Amount", twice},
		"twice by the Kelvin sign":     {`{"token":1,"to` + "\u212a" + `en":2}`, `"to\u212aen"`, twice},
		"twice by the long s":          {`{"es":1,"e` + "\u017f" + `":2}`, `"e\u017f"`, twice},
		"twice by an escaped long s":   {`{"es":1,"e\u017f":2}`, `"e\u017f"`, twice},
		"twice by a Greek final sigma": {`{"σ":1,"ς":2}`, `"\u03c2"`, twice},
		"twice at depth":               {`{"params":{"arguments":{"to":[{"x":1},{"y":1,"y":1}]}}}`, "params.arguments.to[1].y", twice},
		"the empty name twice":         {`{"":1,"":2}`, `""`, twice},
		"a known name in capitals":     {`{"params":{"_META":{}}}`, "params._META", misspelt("_meta")},
		"a known name, long s":         {`{"param` + "\u017f" + `":{}}`, `"param\u017f"`, misspelt("params")},
		"a known name, Kelvin sign":    {`{"_meta":{"onceward/operation":{"wor` + "\u212a" + `flow_id":"a"}}}`, `_meta.onceward/operation."wor\u212aflow_id"`, misspelt("workflow_id")},
		"a known name, escaped":        {`{"\u005fMeta":{}}`, "_Meta", misspelt("_meta")},
		"both spellings":               {`{"_meta":{},"_META":{}}`, "_META", misspelt("_meta")},
		"ours, capital":                {`{"_meta":{"Onceward/operation":{}}}`, "_meta.Onceward/operation", misspelt("onceward/operation")},
		"the protocol's, capital":      {`{"_meta":{"io.modelcontextprotocol/protocolversion":""}}`, `_meta."io.modelcontextprotocol/protocolversion"`, misspelt(`"io.modelcontextprotocol/protocolVersion"`)},
		"a long name in the path":      {`{"` + long + `":tru}`, `"` + strings.Repeat(`\u00e9`, 64) + `"...`, "malformed JSON at byte 134"},
		"65 arrays":                    {strings.Repeat("[", 65) + strings.Repeat("]", 65), "[0][0][0][0][0][0].(52 more)[0][0][0][0][0][0]", tooDeep},
		"64 objects and an array":      {strings.Repeat(`{"a":`, 64) + "[]" + strings.Repeat("}", 64), "a.a.a.a.a.a.(52 more).a.a.a.a.a.a", tooDeep},
		"a hundred thousand arrays":    {strings.Repeat("[", 100_000), "[0][0][0][0][0][0].(52 more)[0][0][0][0][0][0]", tooDeep},
		"twice among many, first half": {manyMembers(200, "m3"), "m3", twice},
		"twice among many, last":       {manyMembers(200, "m199"), "m199", twice},
		"twice among many, by case":    {manyMembers(200, "M150"), "M150", twice},
		"twice at the turn to many":    {manyMembers(32, "m31"), "m31", twice},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got *intent.JSONError
			if err := intent.CheckJSON([]byte(tc.text), intent.KnownMembers); !errors.As(err, &got) {
				t.Fatalf("CheckJSON = %v, want a *JSONError", err)
			}
			want := &intent.JSONError{Path: tc.path, Problem: tc.problem}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Two names that differ in one letter are taken for one exactly where
// strings.EqualFold says so.
func TestCheckJSONFoldsEveryLetter(t *testing.T) {
	t.Parallel()
	check := func(a, b rune) {
		text := fmt.Appendf(nil, `{"x\u%04x":1,"x\u%04x":2}`, a, b)
		refused := intent.CheckJSON(text, intent.Names{}) != nil
		if want := strings.EqualFold(string(a), string(b)); refused != want {
			t.Errorf("%U and %U: refused %t, want %t", a, b, refused, want)
		}
	}
	for a := range rune(0x80) {
		for b := range rune(0x80) {
			check(a, b)
		}
	}
	for a := rune(0x80); a <= 0xffff; a++ {
		if utf8.ValidRune(a) {
			check(a, unicode.SimpleFold(a))
			check(a, a^1) // neighbours, often the other case
		}
	}
}

// Names are compared as they read: each escape against the same letter
// written as \u.
func TestCheckJSONUnescapesNames(t *testing.T) {
	t.Parallel()
	for short, unit := range map[string]string{
		`\"`: "0022", `\\`: "005C", `\/`: "002f", `\b`: "0008", `\f`: "000c", `\n`: "000A", `\r`: "000d", `\t`: "0009", `é`: "00E9", `😀`: `d83d\uDE00`,
	} {
		same := `{"x` + short + `y":1,"x\u` + unit + `y":2}`
		if err := intent.CheckJSON([]byte(same), intent.Names{}); err == nil {
			t.Errorf("%s passed with a member twice", same)
		}
		other := `{"x` + short + `y":1,"x\\u` + strings.ReplaceAll(unit, `\`, `\\`) + `y":2}`
		if err := intent.CheckJSON([]byte(other), intent.Names{}); err != nil {
			t.Errorf("%s: %v, want no error", other, err)
		}
	}
}

// manyMembers is an object with n members m0, m1, ... and one more.
func manyMembers(n int, last string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&b, `"m%d":{"x":%d},`, i, i)
	}
	fmt.Fprintf(&b, `%q:0}`, last)
	return b.String()
}

func TestCheckJSONAccepts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a call":                            toolCall,
		"a bare value":                      " 1 ",
		"numbers":                           `[0,-0,1,-1,10,0.5,1e9,1E+9,1.5e-9,9007199254740993,1e999]`,
		"literals":                          `[true,false,null]`,
		"escapes":                           `["\"\\\/\b\f\n\r\t\u0000\u00e9\uD83D\ude00"]`,
		"a surrogate pair in a name":        `{"\ud83d\ude00":1,"😁":2}`,
		"the replacement character":         `["` + "\ufffd" + `","\ufffd"]`,
		"a member in two objects":           `[{"a":1},{"a":1},{"a":{"a":1}}]`,
		"a member again after an inner one": `{"a":{"b":{"c":1},"d":1},"b":1,"c":1,"d":1}`,
		"64 deep":                           strings.Repeat("[", 64) + strings.Repeat("]", 64),
		"64 deep, objects":                  strings.Repeat(`{"a":`, 64) + "0" + strings.Repeat("}", 64),
		"a known name inside a longer one":  `{"ID_":1,"Stepfather":2}`,
		"dotless i is no i":                 `{"i":1,"ı":2,"İ":3}`,
		"sharp s is no ss":                  `{"ss":1,"ß":2}`,
		"many members":                      manyMembers(200, "last"),
		"many members, each in its own":     "[" + manyMembers(200, "last") + "," + manyMembers(200, "last") + "]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := intent.CheckJSON([]byte(text), intent.KnownMembers); err != nil {
				t.Errorf("CheckJSON(%.80q) = %v, want no error", text, err)
			}
		})
	}
}

func TestCheckJSONWithoutNames(t *testing.T) {
	t.Parallel()
	if err := intent.CheckJSON([]byte(`{"_META":1}`), intent.Names{}); err != nil {
		t.Errorf("the empty set knows no name, but: %v", err)
	}
	both := intent.NewNames("toUSD", "tousd")
	for _, ok := range []string{`{"toUSD":1}`, `{"tousd":1}`} {
		if err := intent.CheckJSON([]byte(ok), both); err != nil {
			t.Errorf("%s: %v, want no error", ok, err)
		}
	}
	if err := intent.CheckJSON([]byte(`{"ToUsd":1}`), both); err == nil {
		t.Error(`{"ToUsd":1} passed beside toUSD and tousd`)
	}
}

func TestCheckJSONShowsNoValue(t *testing.T) {
	t.Parallel()
	const planted = "planted-4111"
	for _, text := range []string{
		`{"a":"` + planted + `\ud800"}`,
		`{"a":"` + planted + `","a":"` + planted + `"}`,
		`{"a":"` + planted + `"} "` + planted + `"`,
		`{"a":` + planted + `}`,
		"{\"a\":\"" + planted + "\xff\"}",
	} {
		err := intent.CheckJSON([]byte(text), intent.KnownMembers)
		if err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("CheckJSON(%q) = %v, want an error without the value", text, err)
		}
	}
}

// toolCall is a call as a current client sends it.
const toolCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"email_send","arguments":` +
	`{"to":["ada@example.com","bob@example.com"],"subject":"Your application \u2013 approved","body":"Dear Ada,\n\nwe are glad to tell you that ` +
	`your application was approved. Please find the details below.\n\nKind regards\nThe office","template":"approval"},` +
	`"_meta":{"progressToken":"p-1","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"onceward/operation":{"workflow_id":"case-1842","step":"send_approval_notice",` +
	`"business_object":"application-731","revision":2,"run_id":"run-77"}}}}`

func BenchmarkCheckJSON(b *testing.B) {
	raw := []byte(toolCall)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if err := intent.CheckJSON(raw, intent.KnownMembers); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckJSONManyMembers shows that a hostile body of 1 MiB costs time
// in proportion to its size.
func BenchmarkCheckJSONManyMembers(b *testing.B) {
	var s strings.Builder
	s.WriteByte('{')
	for i := 0; s.Len() < 1<<20; i++ {
		fmt.Fprintf(&s, `"%x":0,`, i)
	}
	raw := []byte(s.String() + `"":0}`)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if err := intent.CheckJSON(raw, intent.KnownMembers); err != nil {
			b.Fatal(err)
		}
	}
}

// Broken text in a tool's arguments is the tool's to refuse; nothing else is.
func TestCheckMessageLeavesArgumentsToTheTool(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, message string
		path          string // of the refusal; empty: accepted
	}{
		{"a lone surrogate in an argument", `{"params":{"arguments":{"to":["x\ud800"]}}}`, ""},
		{"broken UTF-8 in an argument", "{\"params\":{\"arguments\":{\"to\":[\"x\xff\"]}}}", ""},
		{"a lone surrogate beside them", `{"params":{"arguments":{},"_meta":{"a":"\ud800"}}}`, "params._meta.a"},
		{"broken text, then a member twice", `{"params":{"arguments":{"a":"\ud800","b":1,"b":2}}}`, "params.arguments.b"},
		{"broken text, then _meta twice", `{"params":{"arguments":{"a":"\ud800"},"_meta":{},"_meta":{}}}`, "params._meta"},
		{"a broken name of an argument", `{"params":{"arguments":{"\ud800":1}}}`, "params.arguments"},
		{"arguments elsewhere", `{"result":{"arguments":{"a":"\ud800"}}}`, "result.arguments.a"},
	} {
		got := intent.CheckMessage([]byte(tc.message), intent.KnownMembers)
		if tc.path == "" {
			if got != nil {
				t.Errorf("%s: %v", tc.name, got)
			}
			continue
		}
		if refused, ok := errors.AsType[*intent.JSONError](got); !ok || refused.Path != tc.path {
			t.Errorf("%s: got %v, want a refusal at %s", tc.name, got, tc.path)
		}
	}
}
