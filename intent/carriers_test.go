package intent_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/intent"
)

type object = map[string]any

func first() object {
	return object{"workflow_id": "case-1842", "step": "refund", "business_object": "order-8812"}
}

func second() object { return object{"business_operation_id": "refund_request_8812_1"} }

// with is o with more members; a nil value takes one away.
func with(o object, more object) object {
	for k, v := range more {
		if o[k] = v; v == nil {
			delete(o, k)
		}
	}
	return o
}

func meta(o any) map[string]any { return object{"onceward/operation": o, "progressToken": "p"} }

func header(pairs ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Mcp-Param-Workflow_id": {"from-the-model"}, "Mcp-Session-Id": {"s"}}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestRead(t *testing.T) {
	t.Parallel()
	whole := intent.Intent{WorkflowID: "case-1842", Step: "refund", BusinessObject: "order-8812", Revision: 1}
	wholeRun := whole
	wholeRun.RunID = "run-77"
	byID := intent.Intent{BusinessOperationID: "refund_request_8812_1"}
	byIDCase := byID
	byIDCase.WorkflowID = "case-1842"
	for name, tc := range map[string]struct {
		mode    intent.Mode
		carried intent.Carried
		want    intent.Resolved
	}{
		"_meta": {intent.Strict, intent.Carried{Meta: meta(first())},
			intent.Resolved{Intent: whole, Whole: true, Carriers: []string{"_meta"}}},
		"_meta, raw": {intent.Strict, intent.Carried{Meta: meta(json.RawMessage(`{"workflow_id":"case-1842","step":"re\u0066und","business_object":"order-8812","revision":1}`))},
			intent.Resolved{Intent: whole, Whole: true, Carriers: []string{"_meta"}}},
		"_meta, business_operation_id": {intent.Strict, intent.Carried{Meta: meta(second())},
			intent.Resolved{Intent: byID, Whole: true, Carriers: []string{"_meta"}}},
		"_meta, business_operation_id with a workflow": {intent.Strict, intent.Carried{Meta: meta(with(second(), object{"workflow_id": "case-1842"}))},
			intent.Resolved{Intent: byIDCase, Whole: true, Carriers: []string{"_meta"}}},
		"header": {intent.Strict, intent.Carried{Header: header("Onceward-Operation", `{"workflow_id":"case-1842","step":"refund","business_object":"order-8812","run_id":"run-77"}`)},
			intent.Resolved{Intent: wholeRun, Whole: true, Carriers: []string{"Onceward-Operation"}}},
		"header, the same twice": {intent.Strict, intent.Carried{Header: header("Onceward-Operation", `{"business_operation_id":"refund_request_8812_1"}`, "Onceward-Operation", `{ "business_operation_id": "refund\u005frequest_8812_1" }`)},
			intent.Resolved{Intent: byID, Whole: true, Carriers: []string{"Onceward-Operation"}}},
		"_meta and header agree, one has the run": {intent.Strict, intent.Carried{Meta: meta(first()), Header: header("Onceward-Operation", `{"workflow_id":"case-1842","step":"refund","business_object":"order-8812","revision":1.0,"run_id":"run-77"}`)},
			intent.Resolved{Intent: wholeRun, Whole: true, Carriers: []string{"_meta", "Onceward-Operation"}}},
		"_meta and header agree, one has the group": {intent.Strict, intent.Carried{Meta: meta(second()), Header: header("Onceward-Operation", `{"business_operation_id":"refund_request_8812_1","workflow_id":"case-1842"}`)},
			intent.Resolved{Intent: byIDCase, Whole: true, Carriers: []string{"_meta", "Onceward-Operation"}}},
		"the scope fills the run": {intent.Strict, intent.Carried{Meta: meta(first()), Header: header("Onceward-Run-Id", "run-77")},
			intent.Resolved{Intent: wholeRun, Whole: true, Carriers: []string{"_meta", "Onceward-Run-Id"}}},
		"the process fills workflow and run": {intent.Strict, intent.Carried{Meta: meta(second()), Process: intent.Scope{WorkflowID: "case-1842"}},
			intent.Resolved{Intent: byIDCase, Whole: true, Carriers: []string{"_meta", "process"}}},
		"a scope's workflow that isn't used": {intent.Strict, intent.Carried{Meta: meta(first()), Header: header("Onceward-Workflow-Id", "a"), Process: intent.Scope{WorkflowID: "b"}},
			intent.Resolved{Intent: whole, Whole: true, Carriers: []string{"_meta"}}},
		"header and process agree": {intent.Workflow, intent.Carried{Header: header("Onceward-Workflow-Id", "w", "Onceward-Run-Id", "r"), Process: intent.Scope{WorkflowID: "w", RunID: "r"}},
			intent.Resolved{Intent: intent.Intent{WorkflowID: "w", RunID: "r", Revision: 1}, Carriers: []string{"Onceward-Workflow-Id", "Onceward-Run-Id"}}},
		"scope of the process": {intent.Workflow, intent.Carried{Process: intent.Scope{WorkflowID: "desktop"}},
			intent.Resolved{Intent: intent.Intent{WorkflowID: "desktop", Revision: 1}, Carriers: []string{"process"}}},
		"scope by a header sent twice": {intent.Workflow, intent.Carried{Header: header("Onceward-Workflow-Id", "w", "Onceward-Workflow-Id", "w")},
			intent.Resolved{Intent: intent.Intent{WorkflowID: "w", Revision: 1}, Carriers: []string{"Onceward-Workflow-Id"}}},
		"a whole intent wins": {intent.Workflow, intent.Carried{Meta: meta(first()), Process: intent.Scope{WorkflowID: "desktop"}},
			intent.Resolved{Intent: whole, Whole: true, Carriers: []string{"_meta"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := intent.Read(tc.mode, tc.carried)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const op = "Onceward-Operation"
	scope := intent.Scope{WorkflowID: "desktop", RunID: "run-1"}
	for name, tc := range map[string]struct {
		mode    intent.Mode
		carried intent.Carried
		code    string
		fields  []string
	}{
		"nothing":                           {intent.Strict, intent.Carried{}, "intent_missing", []string{"onceward/operation"}},
		"nothing, workflow":                 {intent.Workflow, intent.Carried{Header: header()}, "intent_missing", []string{"workflow_id"}},
		"only a run, workflow":              {intent.Workflow, intent.Carried{Process: intent.Scope{RunID: "r"}}, "intent_missing", []string{"workflow_id"}},
		"only a scope, strict":              {intent.Strict, intent.Carried{Header: header("Onceward-Workflow-Id", "w"), Process: scope}, "intent_missing", []string{"onceward/operation"}},
		"only a scope, a mode nobody knows": {"", intent.Carried{Process: scope}, "intent_missing", []string{"onceward/operation"}},
		"what a client says of itself":      {intent.Strict, intent.Carried{Meta: object{"progressToken": "p", "claudecode/toolUseId": "toolu_1", "workflow_id": "w", "io.modelcontextprotocol/clientInfo": object{"name": "c"}}}, "intent_missing", []string{"onceward/operation"}},
		"a neighbour in _meta":              {intent.Strict, intent.Carried{Meta: object{"onceward/operation": first(), "onceward/operaton": first()}}, "intent_invalid", []string{"onceward/operaton"}},
		"a neighbour by case, workflow":     {intent.Workflow, intent.Carried{Meta: object{"Onceward/Operation": first()}, Process: scope}, "intent_invalid", []string{"Onceward/Operation"}},
		"a misspelt header, workflow":       {intent.Workflow, intent.Carried{Header: header("Onceward-Operaton", "{}"), Process: scope}, "intent_invalid", []string{"Onceward-Operaton"}},
		"the first of many headers":         {intent.Workflow, intent.Carried{Header: header("Onceward-C", "", "Onceward-E", "", "Onceward-A", "", "Onceward-B", "", "Onceward-D", ""), Process: scope}, "intent_invalid", []string{"Onceward-A"}},
		"a header net/http wouldn't make":   {intent.Workflow, intent.Carried{Header: http.Header{"onceward-operation": {"{}"}}, Process: scope}, "intent_invalid", []string{"onceward-operation"}},
		"a broken header beside _meta":      {intent.Strict, intent.Carried{Meta: meta(first()), Header: header(op, "{")}, "intent_invalid", nil},
		"two headers joined by a proxy":     {intent.Strict, intent.Carried{Header: header(op, `{"business_operation_id":"a"}, {"business_operation_id":"a"}`)}, "intent_invalid", nil},
		"an empty header":                   {intent.Strict, intent.Carried{Header: header(op, "")}, "intent_invalid", nil},
		"a header that isn't ASCII":         {intent.Strict, intent.Carried{Header: header(op, `{"business_operation_id":"é"}`)}, "intent_invalid", []string{op}},
		"a header with Latin-1":             {intent.Strict, intent.Carried{Header: header(op, "{\"business_operation_id\":\"\xe9\"}")}, "intent_invalid", []string{op}},
		"a header with half a pair":         {intent.Strict, intent.Carried{Header: header(op, `{"business_operation_id":"\ud800"}`)}, "intent_invalid", []string{"business_operation_id"}},
		"a header with a member twice":      {intent.Strict, intent.Carried{Header: header(op, `{"business_operation_id":"a","business_operation_id":"b"}`)}, "intent_invalid", []string{"business_operation_id"}},
		"a header with a case variant":      {intent.Strict, intent.Carried{Header: header(op, `{"Business_operation_id":"a"}`)}, "intent_invalid", []string{"Business_operation_id"}},
		"an empty scope header":             {intent.Workflow, intent.Carried{Header: header("Onceward-Workflow-Id", ""), Process: scope}, "intent_invalid", []string{"workflow_id"}},
		"a scope header with a comma":       {intent.Workflow, intent.Carried{Header: header("Onceward-Workflow-Id", "a, a")}, "intent_invalid", []string{"workflow_id"}},
		"a scope header in Latin-1":         {intent.Workflow, intent.Carried{Header: header("Onceward-Workflow-Id", "\xe9")}, "intent_invalid", []string{"workflow_id"}},
		"a scope header too long":           {intent.Strict, intent.Carried{Meta: meta(first()), Header: header("Onceward-Run-Id", strings.Repeat("r", 129))}, "intent_invalid", []string{"run_id"}},
		"a scope header with two values":    {intent.Strict, intent.Carried{Meta: meta(first()), Header: header("Onceward-Workflow-Id", "a", "Onceward-Workflow-Id", "b")}, "intent_conflict", []string{"workflow_id"}},
		"header against process":            {intent.Workflow, intent.Carried{Header: header("Onceward-Workflow-Id", "w"), Process: scope}, "intent_conflict", []string{"workflow_id"}},
		"header against process, grouping":  {intent.Strict, intent.Carried{Meta: meta(second()), Header: header("Onceward-Workflow-Id", "w"), Process: scope}, "intent_conflict", []string{"workflow_id"}},
		"runs: header against process":      {intent.Workflow, intent.Carried{Header: header("Onceward-Run-Id", "r"), Process: scope}, "intent_conflict", []string{"run_id"}},
		"runs: _meta against process":       {intent.Strict, intent.Carried{Meta: meta(with(first(), object{"run_id": "r"})), Process: scope}, "intent_conflict", []string{"run_id"}},
		"runs: _meta against header":        {intent.Strict, intent.Carried{Meta: meta(with(second(), object{"run_id": "r"})), Header: header(op, `{"business_operation_id":"refund_request_8812_1","run_id":"R"}`)}, "intent_conflict", []string{"run_id"}},
		"step differs":                      {intent.Strict, intent.Carried{Meta: meta(first()), Header: header(op, `{"workflow_id":"case-1842","step":"Refund","business_object":"order-8812"}`)}, "intent_conflict", []string{"step"}},
		"workflow differs":                  {intent.Strict, intent.Carried{Meta: meta(first()), Header: header(op, `{"workflow_id":"case-1","step":"refund","business_object":"order-8812"}`)}, "intent_conflict", []string{"workflow_id"}},
		"object and revision differ":        {intent.Workflow, intent.Carried{Meta: meta(first()), Header: header(op, `{"workflow_id":"case-1842","step":"refund","business_object":"o","revision":2}`)}, "intent_conflict", []string{"business_object", "revision"}},
		"ids differ":                        {intent.Strict, intent.Carried{Meta: meta(second()), Header: header(op, `{"business_operation_id":"refund_request_8812_2"}`)}, "intent_conflict", []string{"business_operation_id"}},
		"grouping differs":                  {intent.Strict, intent.Carried{Meta: meta(with(second(), object{"workflow_id": "a"})), Header: header(op, `{"business_operation_id":"refund_request_8812_1","workflow_id":"b"}`)}, "intent_conflict", []string{"workflow_id"}},
		"forms differ":                      {intent.Strict, intent.Carried{Meta: meta(first()), Header: header(op, `{"business_operation_id":"refund_request_8812_1","workflow_id":"case-1842"}`)}, "intent_conflict", []string{"step", "business_object", "revision", "business_operation_id"}},
		"a header against itself":           {intent.Strict, intent.Carried{Header: header(op, `{"business_operation_id":"a"}`, op, `{"business_operation_id":"b"}`)}, "intent_conflict", []string{"business_operation_id"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := intent.Read(tc.mode, tc.carried)
			checkRefused(t, err, tc.code, tc.fields)
			if diff := cmp.Diff(intent.Resolved{}, got); diff != "" {
				t.Errorf("a refused call resolved to something (-want +got):\n%s", diff)
			}
		})
	}
}

func checkRefused(t *testing.T, err error, code string, fields []string) *intent.Error {
	t.Helper()
	var e *intent.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want an *Error with %s", err, code)
	}
	if e.Code != code {
		t.Errorf("code %s, want %s (%s)", e.Code, code, e.Message)
	}
	if diff := cmp.Diff(fields, e.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s\n%s", diff, e.Message)
	}
	return e
}

// Operators act on these; each names what to inject and where.
func TestMessages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode    intent.Mode
		carried intent.Carried
		want    []string
	}{
		"missing": {intent.Strict, intent.Carried{},
			[]string{`_meta["onceward/operation"]`, "workflow_id", "step", "business_object", "business_operation_id", "Onceward-Operation", "--identity workflow"}},
		"missing, workflow": {intent.Workflow, intent.Carried{}, []string{"--workflow-id", "ONCEWARD_WORKFLOW_ID", "Onceward-Workflow-Id"}},
		"half":              {intent.Strict, intent.Carried{Meta: meta(object{"workflow_id": "w"})}, []string{`_meta["onceward/operation"]`, "step is missing", "business_object is missing"}},
		"conflict":          {intent.Strict, intent.Carried{Meta: meta(second()), Header: header("Onceward-Operation", `{"business_operation_id":"b"}`)}, []string{`_meta["onceward/operation"]`, "the header Onceward-Operation", "business_operation_id"}},
		"header twice":      {intent.Strict, intent.Carried{Header: header("Onceward-Operation", `{"business_operation_id":"a"}`, "Onceward-Operation", `{"business_operation_id":"b"}`)}, []string{"the header Onceward-Operation came twice", "business_operation_id"}},
		"made for one call": {intent.Strict, intent.Carried{Meta: meta(object{"business_operation_id": "toolu_01"})}, []string{`begins with "toolu_"`, "made anew for every call"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := intent.Read(tc.mode, tc.carried)
			if err == nil {
				t.Fatal("not refused")
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q doesn't say %q", err.Error(), w)
				}
			}
		})
	}
}
