package tools_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/tools"
)

var (
	completed = time.Date(2026, 11, 30, 11, 0, 0, 0, time.FixedZone("CET", 3600))
	expires   = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
)

func refundOperation(change func(*ledger.Operation)) ledger.Operation {
	op := ledger.Operation{ID: "op_1", Action: "refund", Attempts: 1, Provider: "sandbox"}
	if change != nil {
		change(&op)
	}
	return op
}

func succeeded(op *ledger.Operation) {
	op.ProviderOperationID, op.ProviderStatus, op.CompletedAt = "re_123", "accepted", completed
	op.Result = json.RawMessage(`{"payment_id":"pay_8812","amount":"100.00","currency":"USD"}`)
}

// outcomes are all that a call can get from the ledger, and what the client reads.
var outcomes = []struct {
	name    string
	answer  ledger.Answer
	isError bool
	want    string // the structured content
}{
	{"done", ledger.Answer{Status: ledger.AnswerSucceeded, Operation: refundOperation(succeeded)}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"succeeded","replayed":false,"attempts":1,"provider":"sandbox",
		"provider_operation_id":"re_123","provider_status":"accepted","completed_at":"2026-11-30T10:00:00Z",
		"result":{"payment_id":"pay_8812","amount":"100.00","currency":"USD"},"next":"none","message":"This refund was made."}`},
	{"done before, and reworded", ledger.Answer{Status: ledger.AnswerSucceeded, Replayed: true, Ignored: []string{"note"}, Operation: refundOperation(succeeded)}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"succeeded","replayed":true,"attempts":1,"provider":"sandbox",
		"provider_operation_id":"re_123","provider_status":"accepted","completed_at":"2026-11-30T10:00:00Z",
		"result":{"payment_id":"pay_8812","amount":"100.00","currency":"USD"},"ignored_changes":["note"],"next":"none",
		"message":"This refund was already made. Nothing was sent again. What you changed (note) was ignored: the first call's values stand."}`},
	{"done, and pruned", ledger.Answer{Status: ledger.AnswerSucceeded, Replayed: true, Operation: refundOperation(func(op *ledger.Operation) {
		succeeded(op)
		op.Result = nil
	})}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"succeeded","replayed":true,"attempts":1,"provider":"sandbox",
		"provider_operation_id":"re_123","provider_status":"accepted","completed_at":"2026-11-30T10:00:00Z","result":null,
		"next":"none","message":"This refund was already made. Nothing was sent again."}`},
	{"done, and rejected later", ledger.Answer{Status: ledger.AnswerSucceeded, Replayed: true, Operation: refundOperation(func(op *ledger.Operation) {
		succeeded(op)
		op.ProviderStatus, op.Result = "rejected", json.RawMessage(`"not an object"`)
	})}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"succeeded","replayed":true,"attempts":1,"provider":"sandbox",
		"provider_operation_id":"re_123","provider_status":"rejected","completed_at":"2026-11-30T10:00:00Z","result":null,"next":"none",
		"message":"This refund was already made. Nothing was sent again. The provider's own status for it is \"rejected\"."}`},
	{"under way", ledger.Answer{Status: ledger.AnswerInProgress, RetryAfter: 1200 * time.Millisecond, Operation: refundOperation(nil)}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"in_progress","attempts":1,"provider":"sandbox","retry_after":2,"next":"wait",
		"message":"This refund is being made right now, and how it ends isn't known yet. Don't do it another way. Make the same call again in 2 seconds, or read the operation with operation_get."}`},
	{"unknown", ledger.Answer{Status: ledger.AnswerUnknown, Operation: refundOperation(nil)}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"unknown","attempts":1,"provider":"sandbox","retry_after":1,"next":"wait",
		"message":"It isn't known yet whether this refund was made: the provider's answer didn't arrive. It may well have been, so don't do it another way. The provider is being asked. Make the same call again in 1 second, or read the operation with operation_get."}`},
	{"unknown, and a person is asked", ledger.Answer{Status: ledger.AnswerUnknown, RetryAfter: time.Minute, Operation: refundOperation(func(op *ledger.Operation) { op.Review.OpenedAt = completed })}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"unknown","attempts":1,"provider":"sandbox","review":true,"next":"ask_human",
		"message":"It isn't known whether this refund was made, and nothing automatic can find it out. It may well have been, so don't do it another way. A person is asked to look into it: tell the user. operation_get shows what they find."}`},
	{"waits for a person", ledger.Answer{Status: ledger.AnswerAwaitingApproval, Operation: refundOperation(func(op *ledger.Operation) {
		op.Attempts, op.Provider, op.ExpiresAt, op.Approval.State = 0, "", expires, ledger.Waiting
	})}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"awaiting_approval","attempts":0,"expires_at":"2026-12-01T10:00:00Z","next":"ask_human",
		"message":"This refund waits for a person's approval, at the latest until 2026-12-01T10:00:00Z. Nothing was sent yet. Tell the user, and don't do it another way. Once it is approved, make the same call again."}`},
	{"approved", ledger.Answer{Status: ledger.AnswerAwaitingApproval, Operation: refundOperation(func(op *ledger.Operation) {
		op.Attempts, op.Provider, op.Approval.State = 0, "", ledger.Approved
	})}, false,
		`{"operation_id":"op_1","action_type":"refund","status":"awaiting_approval","attempts":0,"next":"ask_human",
		"message":"This refund was approved by a person and is not made yet. Make the same call again to carry it out."}`},
	{"not sent", ledger.Answer{Status: ledger.AnswerFailedRetryable, RetryAfter: 3 * time.Minute, Operation: refundOperation(func(op *ledger.Operation) { op.ErrorCode = "unavailable" })}, true,
		`{"operation_id":"op_1","action_type":"refund","status":"failed_retryable","attempts":1,"provider":"sandbox","retry_after":180,"code":"unavailable","next":"retry_later",
		"message":"This refund was not made: the request could not be sent (unavailable), and nothing happened. Make the same call again in 3 minutes. Doing it another way is not needed."}`},
	{"not sent, and a person is asked", ledger.Answer{Status: ledger.AnswerFailedRetryable, Operation: refundOperation(func(op *ledger.Operation) {
		op.ErrorCode, op.Review.OpenedAt = "unavailable", completed
	})}, true,
		`{"operation_id":"op_1","action_type":"refund","status":"failed_retryable","attempts":1,"provider":"sandbox","review":true,"code":"unavailable","next":"ask_human",
		"message":"This refund was not made: the request could not be sent (unavailable), and nothing happened. A person is asked to look into it before it is tried again: tell the user."}`},
	{"refused by the provider", ledger.Answer{Status: ledger.AnswerFailedFinal, Replayed: true, Operation: refundOperation(func(op *ledger.Operation) {
		op.ErrorCode, op.CompletedAt = "sandbox_refused", completed
	})}, true,
		`{"operation_id":"op_1","action_type":"refund","status":"failed_final","attempts":1,"provider":"sandbox","completed_at":"2026-11-30T10:00:00Z","code":"sandbox_refused","next":"none",
		"message":"This refund was not made, and nothing happened (sandbox_refused). Making the same call again gives the same answer. Tell the user. If it is still wanted, the orchestrator has to start it as a new action."}`},
	{"a code that could be anything", ledger.Answer{Status: ledger.AnswerFailedFinal, Operation: refundOperation(func(op *ledger.Operation) { op.ErrorCode = "Dear Ann, no" })}, true,
		`{"operation_id":"op_1","action_type":"refund","status":"failed_final","attempts":1,"provider":"sandbox","code":"Dear Ann, no","next":"none",
		"message":"This refund was not made, and nothing happened (no code). Making the same call again gives the same answer. Tell the user. If it is still wanted, the orchestrator has to start it as a new action."}`},
}

func TestOutcomesInWords(t *testing.T) {
	t.Parallel()
	for _, tc := range outcomes {
		b := newBench(t, aLedger{t: t, execute: func(ledger.Request) (ledger.Answer, error) { return tc.answer, nil }}, options(t))
		r := b.call(t.Context(), "refund", with("refund", nil), wholeIntent)
		if r.IsError != tc.isError {
			t.Errorf("%s: isError is %t", tc.name, r.IsError)
		}
		same(t, tc.name, tc.want, r)
		conforms(t, compiled(t, b.mcp.GetTool("refund").Tool.RawOutputSchema), r.Raw)
	}
}

// same compares structured content, and holds the texts to it: a client that knows
// no structure reads the same.
func same(t *testing.T, name, want string, r reply) {
	t.Helper()
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := cmp.Diff(wanted, r.structured); diff != "" {
		t.Errorf("%s: structured content (-want +got):\n%s", name, diff)
	}
	if len(r.Content) != 2 {
		t.Fatalf("%s: %d texts", name, len(r.Content))
	}
	first := r.Content[0].Text
	for _, part := range []string{"message", "status", "operation_id"} {
		if s, _ := r.get(part).(string); !strings.Contains(first, s) {
			t.Errorf("%s: the first text doesn't have %s: %q", name, part, first)
		}
	}
	var repeated map[string]any
	if err := json.Unmarshal([]byte(r.Content[1].Text), &repeated); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := cmp.Diff(wanted, repeated); diff != "" {
		t.Errorf("%s: the second text (-want +got):\n%s", name, diff)
	}
}

// TestRefusalsInWords: every code, what helps, and that nothing was done.
func TestRefusalsInWords(t *testing.T) {
	t.Parallel()
	for code, want := range map[ledger.RefusalCode]struct{ next, says string }{
		ledger.IntentMissing:     {"fix_configuration", "operator"},
		ledger.IntentInvalid:     {"fix_configuration", "operator"},
		ledger.IntentConflict:    {"fix_configuration", "operator"},
		ledger.OperationConflict: {"none", "with other values of amount, and that first call stands"},
		ledger.InvalidArguments:  {"fix_arguments", "Correct them"},
		ledger.LimitExceeded:     {"none", "limit"},
		ledger.NotFound:          {"fix_arguments", "no operation"},
		ledger.LedgerUnavailable: {"none", "again in 5 seconds"},
		ledger.ShuttingDown:      {"none", "again"},
		ledger.Busy:              {"none", "again in 5 seconds"},
	} {
		b := newBench(t, aLedger{t: t, execute: func(ledger.Request) (ledger.Answer, error) {
			return ledger.Answer{}, &ledger.Refusal{Code: code, Message: "So it is.", OperationID: "op_7", Fields: []string{"amount", "note"}, RetryAfter: 4001 * time.Millisecond, Cause: errors.New("the disk is full")}
		}}, options(t))
		r := b.call(t.Context(), "refund", with("refund", nil), wholeIntent)
		message, _ := r.get("message").(string)
		if !r.IsError || r.get("status") != "refused" || r.get("code") != string(code) || r.get("next") != want.next ||
			r.get("operation_id") != "op_7" || r.get("action_type") != "refund" || r.get("retry_after") != 5.0 || !strings.Contains(message, want.says) {
			t.Errorf("%s: %s", code, r.text())
		}
		if code != ledger.NotFound && !strings.HasPrefix(message, "This call did nothing") {
			t.Errorf("%s doesn't say that nothing was done: %s", code, message)
		}
		if strings.Contains(r.all, "disk") || !strings.Contains(b.log.String(), "the disk is full") {
			t.Errorf("%s: the cause belongs into the log, and there only", code)
		}
		wantFields := []string{"amount", "note"}
		if code == ledger.OperationConflict {
			wantFields = []string{"amount"} // a note would have been ignored
		}
		if diff := cmp.Diff(wantFields, r.fields()); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", code, diff)
		}
		conforms(t, compiled(t, b.mcp.GetTool("refund").Tool.RawOutputSchema), r.Raw)
	}
}

// TestBugsStayHere: an error that isn't a refusal, or a panic, tells a client nothing
// but that.
func TestBugsStayHere(t *testing.T) {
	t.Parallel()
	for name, execute := range map[string]func(ledger.Request) (ledger.Answer, error){
		"error": func(ledger.Request) (ledger.Answer, error) { return ledger.Answer{}, errors.New("private") },
		"panic": func(ledger.Request) (ledger.Answer, error) { panic("private") },
	} {
		b := newBench(t, aLedger{t: t, execute: execute}, options(t))
		r := b.call(t.Context(), "refund", with("refund", nil), wholeIntent)
		if !r.IsError || r.structured != nil || strings.Contains(r.all, "private") || !strings.Contains(r.text(), "acts at most once") {
			t.Errorf("%s: %s", name, r.all)
		}
		if !strings.Contains(b.log.String(), `"level":"ERROR"`) {
			t.Errorf("%s: not in the log: %s", name, b.log)
		}
		if name == "panic" && strings.Contains(b.log.String(), "private") {
			t.Errorf("a panic's text, which may quote anything, is in the log")
		}
	}
}

// TestReadingIsNoFailure: operation_get shows the same object, and reading that
// something failed is no error. operation_list shows them all, without words.
func TestReadingIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, tc := range outcomes {
		b := newBench(t, aLedger{t: t,
			get:  func(string, string) (ledger.Answer, error) { return tc.answer, nil },
			list: func(ledger.Filter) ([]ledger.Operation, error) { return []ledger.Operation{stored(tc.answer)}, nil },
		}, options(t))
		r := b.call(t.Context(), "operation_get", with("operation_get", nil), `{}`)
		if r.IsError || r.get("status") != string(tc.answer.Status) || r.get("replayed") == false {
			t.Errorf("%s: %s", tc.name, r.text())
		}
		if message, _ := r.get("message").(string); strings.Contains(message, "sent again") || strings.Contains(message, "What you changed") {
			t.Errorf("%s: read as if the action had been called for: %s", tc.name, message)
		}
		conforms(t, compiled(t, b.mcp.GetTool("operation_get").Tool.RawOutputSchema), r.Raw)

		l := b.call(t.Context(), "operation_list", `{}`, wholeIntent)
		conforms(t, compiled(t, b.mcp.GetTool("operation_list").Tool.RawOutputSchema), l.Raw)
		items, _ := l.get("operations").([]any)
		if l.IsError || len(items) != 1 {
			t.Fatalf("%s: %s", tc.name, l.text())
		}
		item, _ := items[0].(map[string]any)
		want := map[string]any{}
		if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
			t.Fatal(err)
		}
		delete(want, "message")
		delete(want, "retry_after")
		delete(want, "ignored_changes")
		if _, ok := want["replayed"]; ok {
			want["replayed"] = true
		}
		if diff := cmp.Diff(want, item); diff != "" {
			t.Errorf("%s: in the list (-want +got):\n%s", tc.name, diff)
		}
	}
}

// stored is the operation as the ledger keeps it for an answer.
func stored(a ledger.Answer) ledger.Operation {
	op := a.Operation
	op.Status = map[ledger.AnswerStatus]ledger.Status{
		ledger.AnswerSucceeded: ledger.Succeeded, ledger.AnswerInProgress: ledger.Executing, ledger.AnswerUnknown: ledger.Unknown,
		ledger.AnswerAwaitingApproval: ledger.Planned, ledger.AnswerFailedRetryable: ledger.FailedRetryable, ledger.AnswerFailedFinal: ledger.FailedFinal,
	}[a.Status]
	return op
}

// TestListRefusalConforms: what a refused list has fits its schema too.
func TestListRefusalConforms(t *testing.T) {
	t.Parallel()
	b := newBench(t, aLedger{t: t, list: func(ledger.Filter) ([]ledger.Operation, error) {
		return nil, &ledger.Refusal{Code: ledger.LedgerUnavailable, RetryAfter: time.Second}
	}}, options(t))
	for _, meta := range []string{`{}`, wholeIntent} {
		r := b.call(t.Context(), "operation_list", `{}`, meta)
		if !r.IsError {
			t.Errorf("not refused: %s", r.text())
		}
		conforms(t, compiled(t, b.mcp.GetTool("operation_list").Tool.RawOutputSchema), r.Raw)
	}
}

// TestSentences: what must never be said, over every sentence for every action.
func TestSentences(t *testing.T) {
	t.Parallel()
	words := map[string]string{"email.send": "This email was already sent.", "payment_order.create": "This payment order was already created.", "refund": "This refund was already made."}
	names := map[string]string{"email.send": "email_send", "payment_order.create": "payment_order_create", "refund": "refund"}
	for action, begins := range words {
		for _, tc := range outcomes {
			a := tc.answer
			a.Operation.Action = action
			b := newBench(t, aLedger{t: t, execute: func(ledger.Request) (ledger.Answer, error) { return a, nil }}, options(t))
			r := b.call(t.Context(), names[action], with(names[action], nil), wholeIntent)
			message, _ := r.get("message").(string)
			if strings.ContainsAny(message, "{}") {
				t.Errorf("%s, %s: an unfilled sentence: %s", action, tc.name, message)
			}
			lower := strings.ToLower(message)
			for _, bad := range []string{"fail", "error", "not sent", "nothing happened", "was not"} {
				if a.Status == ledger.AnswerUnknown && strings.Contains(lower, bad) {
					t.Errorf("%s, %s: unknown is worded as a failure (%q): %s", action, tc.name, bad, message)
				}
			}
			if a.Status == ledger.AnswerSucceeded && a.Replayed && !strings.HasPrefix(message, begins) {
				t.Errorf("%s, %s: %s", action, tc.name, message)
			}
		}
	}
}

// TestSpecialFailures: the endings that a person or time brought about.
func TestSpecialFailures(t *testing.T) {
	t.Parallel()
	for code, says := range map[string]string{
		"retry_expired":        "could not be sent in time, and nothing happened",
		"approval_denied":      "a person denied it, and nothing was sent",
		"approval_expired":     "nobody approved it in time, and nothing was sent",
		"dropped":              "a person decided so",
		"rejected_by_provider": "the provider took it on and then rejected it",
	} {
		b := newBench(t, aLedger{t: t, execute: func(ledger.Request) (ledger.Answer, error) {
			return ledger.Answer{Status: ledger.AnswerFailedFinal, Operation: refundOperation(func(op *ledger.Operation) { op.ErrorCode = code })}, nil
		}}, options(t))
		r := b.call(t.Context(), "refund", with("refund", nil), wholeIntent)
		if !r.IsError || r.get("code") != code || !strings.Contains(r.text(), says) {
			t.Errorf("%s: %s", code, r.text())
		}
	}
}

// TestTenant: the tenant is the caller's, whatever the call says.
func TestTenant(t *testing.T) {
	t.Parallel()
	var tenants []string
	b := newBench(t, aLedger{t: t, execute: func(r ledger.Request) (ledger.Answer, error) {
		tenants = append(tenants, r.Tenant)
		return ledger.Answer{Status: ledger.AnswerSucceeded, Operation: refundOperation(nil)}, nil
	}}, options(t))
	b.call(tools.WithCaller(t.Context(), tools.Caller{Tenant: "acme"}), "refund", with("refund", nil), wholeIntent)
	b.call(t.Context(), "refund", with("refund", nil), wholeIntent)
	if diff := cmp.Diff([]string{"acme", ""}, tenants); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
}
