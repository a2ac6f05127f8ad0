package intent_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/intent"
)

func TestIntentRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value  any
		fields []string
	}{
		"null":                   {nil, nil},
		"a string":               {"refund_request_8812_1", nil},
		"a list":                 {[]any{first()}, nil},
		"raw, null":              {json.RawMessage("null"), nil},
		"raw, nothing":           {json.RawMessage(nil), nil},
		"raw, case variant":      {json.RawMessage(`{"workflow_id":"w","Step":"s","business_object":"b"}`), []string{"Step"}},
		"empty":                  {object{}, []string{"workflow_id", "step", "business_object"}},
		"without a step":         {with(first(), object{"step": nil}), []string{"step"}},
		"without an object":      {with(first(), object{"business_object": nil}), []string{"business_object"}},
		"without a workflow":     {with(first(), object{"workflow_id": nil}), []string{"workflow_id"}},
		"only grouping and run":  {object{"workflow_id": "w", "run_id": "r"}, []string{"step", "business_object"}},
		"a misspelt member":      {with(first(), object{"stp": "s", "step": nil}), []string{"stp", "step"}},
		"a superfluous member":   {with(first(), object{"tenant": "acme"}), []string{"tenant"}},
		"a member in capitals":   {with(first(), object{"REVISION": 2.0}), []string{"REVISION"}},
		"a member to be escaped": {with(second(), object{"run id\n": "r"}), []string{`"run id\n"`}},
		"a very long member":     {with(second(), object{strings.Repeat("x", 65): "r"}), []string{`"` + strings.Repeat("x", 64) + `"...`}},
		"both forms":             {with(first(), object{"business_operation_id": "b"}), []string{"step", "business_object"}},
		"an id with a revision":  {with(second(), object{"revision": 1.0}), []string{"revision"}},
		"an id that is null":     {object{"business_operation_id": nil}, []string{"business_operation_id"}},
		"a step that is null":    {object{"workflow_id": "w", "step": nil, "business_object": "b"}, []string{"step"}},
		"a number as workflow":   {with(first(), object{"workflow_id": 1842.0}), []string{"workflow_id"}},
		"an empty string":        {with(first(), object{"step": ""}), []string{"step"}},
		"an empty id":            {object{"business_operation_id": ""}, []string{"business_operation_id"}},
		"an empty run":           {with(first(), object{"run_id": ""}), []string{"run_id"}},
		"129 characters":         {with(first(), object{"step": strings.Repeat("é", 129)}), []string{"step"}},
		"a line break":           {with(first(), object{"step": "a\nb"}), []string{"step"}},
		"a zero byte":            {with(first(), object{"step": "\x00"}), []string{"step"}},
		"a delete":               {with(first(), object{"step": "\x7f"}), []string{"step"}},
		"a C1 control":           {with(first(), object{"step": "\u0085"}), []string{"step"}},
		"a broken byte":          {with(first(), object{"step": "\xff"}), []string{"step"}},
		"a surrogate's bytes":    {with(first(), object{"step": "\xed\xa0\x80"}), []string{"step"}},
		"two faults":             {with(first(), object{"step": "", "revision": "2"}), []string{"step", "revision"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := intent.Read(intent.Strict, intent.Carried{Meta: meta(tc.value)})
			checkRefused(t, err, intent.CodeInvalid, tc.fields)
		})
	}
}

func TestManyFaultsAreCut(t *testing.T) {
	t.Parallel()
	o := object{}
	for i := range 100 {
		o[fmt.Sprintf("m%02d", i)] = i
	}
	_, err := intent.Read(intent.Strict, intent.Carried{Meta: meta(o)})
	e := checkRefused(t, err, intent.CodeInvalid, []string{"m00", "m01", "m02", "m03", "m04", "m05", "m06", "m07"})
	if !strings.Contains(e.Message, "and 95 more") {
		t.Errorf("%q doesn't count the other 92 members and 3 missing ones", e.Message)
	}
}

func TestIDsOfOneCallAreRefused(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"call_Z8ofZnYOCeOnpu0h2auwOgeR", "toolu_013wc5CxNCjWGN2rsAR82rJK", "tooluse_hbTgdi0CSLq_hM4P8csZJA",
		"chatcmpl-tool-23c5c0da71854f9bbd8774f7d0113a69", "pyd_ai_0f8fad5bd9cb469fa165708677289501", "functions.refund:0",
	} {
		_, err := intent.Read(intent.Strict, intent.Carried{Meta: meta(object{"business_operation_id": id})})
		e := checkRefused(t, err, intent.CodeInvalid, []string{"business_operation_id"})
		if strings.Contains(e.Error(), id) {
			t.Errorf("%q shows the id", e)
		}
		_, err = intent.Read(intent.Strict, intent.Carried{Header: header("Onceward-Operation", `{"business_operation_id":"`+id+`"}`)})
		checkRefused(t, err, intent.CodeInvalid, []string{"business_operation_id"})
	}
	for _, id := range []string{"call-8812", "recall_1", "phone_call_7", "functions", "Toolu"} {
		if _, err := intent.Read(intent.Strict, intent.Carried{Meta: meta(object{"business_operation_id": id})}); err != nil {
			t.Errorf("%s: %v, want no error", id, err)
		}
	}
	if _, err := intent.Read(intent.Strict, intent.Carried{Meta: meta(with(first(), object{"business_object": "call_88"}))}); err != nil {
		t.Errorf("a business object may be a call: %v", err)
	}
}

func TestRevision(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		value any
		want  int // 0: refused
	}{
		{1.0, 1}, {2.0, 2}, {1e6, 1_000_000}, {7, 7}, {int64(8), 8}, {json.Number("9"), 9}, {json.Number("1e1"), 10},
		{0.0, 0}, {-1.0, 0}, {1.5, 0}, {1e6 + 1, 0}, {1e300, 0}, {9007199254740993.0, 0}, {math.NaN(), 0}, {math.Inf(1), 0},
		{0, 0}, {1_000_001, 0}, {int64(math.MinInt64), 0}, {json.Number("0"), 0}, {json.Number("1.5"), 0}, {json.Number("1e400"), 0}, {json.Number("x"), 0},
		{"2", 0}, {true, 0}, {nil, 0}, {[]any{1.0}, 0}, {object{}, 0},
	} {
		o := first()
		o["revision"] = tc.value
		got, err := intent.Read(intent.Strict, intent.Carried{Meta: meta(o)})
		if tc.want == 0 {
			checkRefused(t, err, intent.CodeInvalid, []string{"revision"})
		} else if err != nil || got.Intent.Revision != tc.want {
			t.Errorf("revision %v: got %d, %v, want %d", tc.value, got.Intent.Revision, err, tc.want)
		}
	}
}

func TestStringsThatPass(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{
		"one character":             "a",
		"128 characters, 512 bytes": strings.Repeat("😀", 128),
		"white space":               " ",
		"separators":                "a\u2028b\u2029c",
		"the replacement character": "\ufffd",
		"no normalisation":          "e\u0301",
		"markup":                    `<b>"&\`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := intent.Read(intent.Strict, intent.Carried{Meta: meta(with(first(), object{"workflow_id": s, "step": s, "business_object": s, "run_id": s}))})
			if err != nil {
				t.Fatal(err)
			}
			want := intent.Intent{WorkflowID: s, Step: s, BusinessObject: s, RunID: s, Revision: 1}
			if diff := cmp.Diff(want, got.Intent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsShowNoValue(t *testing.T) {
	t.Parallel()
	const planted = "planted-4111"
	for _, c := range []intent.Carried{
		{Meta: meta(planted)},
		{Meta: meta(object{"workflow_id": planted})},
		{Meta: meta(object{"business_operation_id": "call_" + planted})},
		{Meta: meta(with(first(), object{"step": planted + "\n", "business_object": planted + strings.Repeat("x", 128), "revision": planted}))},
		{Meta: meta(with(first(), object{"other": planted, "revision": json.Number(planted)}))},
		{Meta: meta(json.RawMessage(`{"step":"` + planted))},
		{Header: header("Onceward-Operation", planted)},
		{Header: header("Onceward-Operation", planted+"é")},
		{Header: header("Onceward-Workflow-Id", planted+",")},
		{Header: header("Onceward-Workflow-Id", planted, "Onceward-Workflow-Id", planted+"2")},
		{Header: header("Onceward-Other", planted)},
		{Meta: object{"onceward/other": planted}},
		{Meta: meta(second()), Header: header("Onceward-Operation", `{"business_operation_id":"`+planted+`"}`)},
		{Meta: meta(second()), Header: header("Onceward-Run-Id", planted), Process: intent.Scope{RunID: planted + "2"}},
	} {
		if _, err := intent.Read(intent.Strict, c); err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("Read(%v) = %v, want an error without the value", c, err)
		}
	}
}

func TestScopeValidate(t *testing.T) {
	t.Parallel()
	for _, ok := range []intent.Scope{{}, {WorkflowID: "desktop"}, {WorkflowID: "дело, 1842", RunID: strings.Repeat("r", 128)}} {
		if err := ok.Validate(); err != nil {
			t.Errorf("%+v: %v, want no error", ok, err)
		}
	}
	for _, tc := range []struct {
		scope  intent.Scope
		fields []string
	}{
		{intent.Scope{WorkflowID: "a\n"}, []string{"workflow_id"}},
		{intent.Scope{RunID: "\xff"}, []string{"run_id"}},
		{intent.Scope{WorkflowID: strings.Repeat("a", 129), RunID: "\x00"}, []string{"workflow_id", "run_id"}},
	} {
		e := checkRefused(t, tc.scope.Validate(), intent.CodeInvalid, tc.fields)
		if !strings.Contains(e.Message, "ONCEWARD_WORKFLOW_ID") {
			t.Errorf("%q doesn't say where the scope comes from", e.Message)
		}
	}
}
