package intent_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/intent"
)

// python runs a script, with input on its standard input. CI must have a
// Python; elsewhere the test is skipped without one.
func python(t *testing.T, script string, input []byte) []byte {
	t.Helper()
	exe, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no python3 to compare with, and CI=true demands one")
		}
		t.Skip("there is no python3 to compare with")
	}
	cmd := exec.CommandContext(t.Context(), exe, "-c", script)
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, stderr.Bytes())
	}
	return out
}

// TestEveryCodePointAsPython prints all code points, 256 in a string, that an
// orchestrator in Python could have in an id.
func TestEveryCodePointAsPython(t *testing.T) {
	t.Parallel()
	const script = `
import json, sys
for page in range(0, 0x110000, 256):
    if 0xd800 <= page < 0xe000:
        continue
    s = "".join(map(chr, range(page, page + 256)))
    line = json.dumps({s: s}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
`
	lines := bufio.NewScanner(bytes.NewReader(python(t, script, nil)))
	pages := 0
	for page := rune(0); page <= utf8.MaxRune; page += 256 {
		if page >= 0xd800 && page < 0xe000 {
			continue
		}
		var s []rune
		for r := page; r < page+256; r++ {
			s = append(s, r)
		}
		got, err := intent.CanonicalJSON(map[string]any{string(s): string(s)})
		if err != nil {
			t.Fatalf("page %U: %v", page, err)
		}
		if !lines.Scan() {
			t.Fatalf("page %U: python3 printed %d lines", page, pages)
		}
		if diff := cmp.Diff(lines.Text(), string(got)); diff != "" {
			t.Fatalf("page %U (-python +got):\n%s", page, diff)
		}
		pages++
	}
	if want := 0x1100 - 8; pages != want {
		t.Errorf("%d pages compared, want %d", pages, want)
	}
}

// TestValuesAsPython hands values over as ASCII JSON, which Python reads and
// prints by itself.
func TestValuesAsPython(t *testing.T) {
	t.Parallel()
	const script = `
import json, sys
for line in sys.stdin:
    text = json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    sys.stdout.buffer.write(text.encode("utf-8") + b"\n")
`
	texts := []string{
		`{"workflow_id":"case-1842","step":"s","business_object":"b","revision":2,"action_type":"refund","tenant":"acme"}`,
		`{"\ud800\udc00":1,"\uffff":2,"\ue000":3,"\ud7ff":4,"\u00e9":5,"e\u0301":6,"z":7,"Z":8,"":9,"\u0000":10,"\u007f":11}`,
		`{"aa":1,"a":2,"a\u0000":3,"a!":4,"ab":{"b":1,"a":[{"d":1,"c":2}]}}`,
		`[0,-0,1,-1,2147483648,9007199254740993,-9223372036854775808,18446744073709551615,123456789012345678901234567890]`,
		`[null,true,false,[],{},[[]],{"a":{}},""]`,
		`["\ud83d\ude00","\u2028\u2029","<&>","\/","\b\f\n\r\t\u000b\u001f","\"\\"]`,
	}
	var input bytes.Buffer
	for _, s := range texts {
		input.WriteString(s + "\n")
	}
	want := bytes.Split(bytes.TrimSpace(python(t, script, input.Bytes())), []byte("\n"))
	for i, s := range texts {
		d := json.NewDecoder(bytes.NewReader([]byte(s)))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		got, err := intent.CanonicalJSON(v)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if diff := cmp.Diff(string(want[i]), string(got)); diff != "" {
			t.Errorf("%s (-python +got):\n%s", s, diff)
		}
	}
}
