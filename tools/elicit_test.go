package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/tools"
)

const (
	modern       = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	canAsk       = modern + `,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`
	cannotAsk    = modern + `,"io.modelcontextprotocol/clientCapabilities":{}`
	canAskByLink = modern + `,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}`
)

// An eliciting bench has a real ledger whose mails all need an approval.
type eliciting struct {
	bench
	ledger *ledger.Ledger
	sent   atomic.Int32
	now    time.Time
}

func newEliciting(t *testing.T) *eliciting {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	sealer, err := ledger.NewSealer([]byte("a seal key for tests"))
	if err != nil {
		t.Fatal(err)
	}
	e := &eliciting{now: called}
	e.ledger = &ledger.Ledger{Store: store, Sealer: sealer, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return e.now },
		Actors: map[string]ledger.Actor{providers.EmailSend: {Provider: "sandbox", Promise: ledger.Promise{Deadline: time.Second, Lease: time.Minute},
			Apply: func(context.Context, ledger.Attempt) ledger.Finding {
				e.sent.Add(1)
				return ledger.Finding{Verdict: ledger.Done, Receipt: ledger.Receipt{State: ledger.Settled, ProviderOperationID: "m_1", Evidence: json.RawMessage(`{"id":"m_1"}`)}}
			}}}}
	o := options(t)
	o.Now = func() time.Time { return e.now }
	o.Approval = func(string, providers.Arguments) string { return "always" }
	o.Elicit = map[string]bool{providers.EmailSend: true}
	e.bench = newBench(t, e.ledger, o)
	return e
}

// mail calls email_send as a client with these capabilities, with what it brings back.
func (e *eliciting) mail(id int, client, args, more string) map[string]any {
	e.t.Helper()
	meta := fmt.Sprintf(`{"onceward/operation":{"business_operation_id":"mail-%d"},%s}`, id, client)
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"email_send","arguments":%s,"_meta":%s%s}}`, args, meta, more)
	text, err := json.Marshal(e.mcp.HandleMessage(e.t.Context(), json.RawMessage(message)))
	if err != nil {
		e.t.Fatal(err)
	}
	var got struct{ Result map[string]any }
	if err := json.Unmarshal(text, &got); err != nil || got.Result == nil {
		e.t.Fatalf("%s, %v", text, err)
	}
	return got.Result
}

func question(result map[string]any) (state string, asked bool) {
	state, _ = result["requestState"].(string)
	return state, result["resultType"] == "input_required" && state != ""
}

func status(result map[string]any) any {
	structured, _ := result["structuredContent"].(map[string]any)
	return structured["status"]
}

func brings(state, action, content string) string {
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approve":{"action":%q,"content":%s}}`, state, action, content)
}

var mail, otherMail = with("email_send", nil), with("email_send", map[string]string{"to": `["eve@example.com"]`})

func TestElicitation(t *testing.T) {
	t.Parallel()
	e := newEliciting(t)
	first := e.mail(1, canAsk, mail, "")
	state, asked := question(first)
	if text := fmt.Sprint(first["inputRequests"]); !asked || !strings.Contains(text, "ann@example.com") {
		t.Fatalf("the client's user isn't asked about the mail: %v", first)
	}
	if got := e.mail(1, canAsk, mail, brings(state, "accept", `{"approve":true}`)); status(got) != "succeeded" || e.sent.Load() != 1 {
		t.Fatalf("after the acceptance: %v, and %d mails", got, e.sent.Load())
	}
	op, history, err := e.ledger.History(t.Context(), firstOperation(t, e))
	if err != nil || op.Approval.State != ledger.Spent || history[1].Reason != "approved" || history[1].Actor != "person:the client's user" {
		t.Errorf("history %+v, approval %q, %v; want who approved", history, op.Approval.State, err)
	}
	if got := e.mail(1, canAsk, mail, brings(state, "accept", `{"approve":true}`)); status(got) != "succeeded" || e.sent.Load() != 1 {
		t.Errorf("the same acceptance again: %v, and %d mails; want a replay", got, e.sent.Load())
	}
}

// TestNoElicitation: a client that doesn't say that it can ask, in this very request, gets the
// plain answer.
func TestNoElicitation(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]string{"no capability": cannotAsk, "links only": canAskByLink, "an earlier revision": `"x":1`,
		"an earlier revision that names capabilities": strings.Replace(canAsk, "2026-07-28", "2025-11-25", 1),
	} {
		e := newEliciting(t)
		if got := e.mail(1, client, mail, ""); status(got) != "awaiting_approval" || got["inputRequests"] != nil {
			t.Errorf("%s: %v, want awaiting_approval and no question", name, got)
		}
	}
}

// TestElicitationLeavesPending: whatever isn't an acceptance of exactly this leaves it waiting, for
// the console or a better answer; never denied.
func TestElicitationLeavesPending(t *testing.T) {
	t.Parallel()
	yes := `{"approve":true}`
	for name, answer := range map[string]func(e *eliciting, state string) map[string]any{
		"declined": func(e *eliciting, s string) map[string]any {
			return e.mail(1, canAsk, mail, brings(s, "decline", "null"))
		},
		"cancelled": func(e *eliciting, s string) map[string]any {
			return e.mail(1, canAsk, mail, brings(s, "cancel", "null"))
		},
		"accepted without a yes": func(e *eliciting, s string) map[string]any { return e.mail(1, canAsk, mail, brings(s, "accept", `{}`)) },
		"accepted with a no": func(e *eliciting, s string) map[string]any {
			return e.mail(1, canAsk, mail, brings(s, "accept", `{"approve":false}`))
		},
		"no state": func(e *eliciting, _ string) map[string]any { return e.mail(1, canAsk, mail, brings("", "accept", yes)) },
		"made up": func(e *eliciting, s string) map[string]any {
			return e.mail(1, canAsk, mail, brings(strings.Repeat("A", len(s)), "accept", yes))
		},
		"tampered": func(e *eliciting, s string) map[string]any {
			return e.mail(1, canAsk, mail, brings("B"+s[1:], "accept", yes))
		},
		"too late": func(e *eliciting, s string) map[string]any {
			e.now = e.now.Add(11 * time.Minute)
			return e.mail(1, canAsk, mail, brings(s, "accept", yes))
		},
		"of another": func(e *eliciting, s string) map[string]any {
			e.mail(2, canAsk, mail, "")
			return e.mail(2, canAsk, mail, brings(s, "accept", yes))
		},
		"the client can't ask any more": func(e *eliciting, s string) map[string]any {
			return e.mail(1, cannotAsk, mail, brings(s, "accept", yes))
		},
	} {
		e := newEliciting(t)
		state, asked := question(e.mail(1, canAsk, mail, ""))
		if !asked {
			t.Fatal("not asked")
		}
		if got := answer(e, state); status(got) != "awaiting_approval" || e.sent.Load() != 0 {
			t.Errorf("%s: %v, and %d mails; want awaiting_approval and none", name, got, e.sent.Load())
		}
		e.now = called
		if _, asked := question(e.mail(1, canAsk, mail, "")); !asked {
			t.Errorf("%s: the next call isn't asked again", name)
		}
	}
}

// TestElicitationOfOtherArguments: an acceptance doesn't carry over to what the model wrote since.
func TestElicitationOfOtherArguments(t *testing.T) {
	t.Parallel()
	e := newEliciting(t)
	state, _ := question(e.mail(1, canAsk, mail, ""))
	got := e.mail(1, canAsk, otherMail, brings(state, "accept", `{"approve":true}`))
	if structured := got["structuredContent"].(map[string]any); structured["code"] != "operation_conflict" || e.sent.Load() != 0 {
		t.Errorf("%v, and %d mails; want a conflict and none", got, e.sent.Load())
	}
}

func TestElicitationIsNeverForMoney(t *testing.T) {
	t.Parallel()
	for _, action := range []string{providers.RefundCreate, providers.PaymentOrderCreate} {
		o := options(t)
		o.Elicit = map[string]bool{action: true}
		if _, err := tools.New(aLedger{t: t}, o); err == nil {
			t.Errorf("%s may be elicited", action)
		}
	}
}

func firstOperation(t *testing.T, e *eliciting) string {
	t.Helper()
	found, err := e.ledger.List(t.Context(), ledger.Filter{Limit: 1})
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0].ID
}
