package tools

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Elicitation: where a policy allows it, the client's own user is asked, by a multi-round-trip
// request (MCP 2026-07-28): the call ends with a question and holds nothing open; the client makes
// it again with the answer. An acceptance is worth no more than the client that sends it, so this
// is never for money. Anything but an acceptance leaves the operation waiting: some
// clients answer "decline" to what they never drew.

const (
	elicitation = "approve" // the question's id
	elicitFor   = 10 * time.Minute
	elicitMAC   = 32
)

// elicits reports whether this client may be asked: it says in this very request that it can be.
// (Clients of earlier revisions would have the call held open.)
func (s *Set) elicits(ctx context.Context, a ledger.Answer) bool {
	if !s.opts.Elicit[a.Operation.Action] || a.Status != ledger.AnswerAwaitingApproval || a.Operation.Approval.State != ledger.Waiting {
		return false
	}
	info := server.RequestProtocolInfoFromContext(ctx)
	if info == nil || !info.Modern || info.ClientCapabilities == nil || info.ClientCapabilities.Elicitation == nil {
		return false
	}
	can := info.ClientCapabilities.Elicitation
	return can.Form != nil || can.URL == nil // an empty declaration means forms
}

// ask ends the call with the question.
func (s *Set) ask(a ledger.Answer, vals values) *mcp.CallToolResult {
	state := s.elicitState(a.Operation, s.opts.Now().Add(elicitFor))
	question := mcp.ElicitationParams{
		Mode:    mcp.ElicitationModeForm,
		Message: "An agent wants to " + describeForUser(a.Operation.Action, vals) + ". Do you approve? Without an answer it stays waiting.",
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"approve":{"type":"boolean","title":"Approve",` +
			`"description":"Yes lets exactly this action happen, once.","default":false}},"required":["approve"]}`),
	}
	return server.NewInputRequestBuilder(state).Elicit(elicitation, question).ToolResult()
}

// describeForUser names what matters; the arguments come from the caller, whose user is asked.
func describeForUser(action string, vals values) string {
	switch action {
	case providers.EmailSend:
		var all []string
		for _, field := range []string{"to", "cc", "bcc"} {
			list, _ := vals[field].([]string)
			all = append(all, list...)
		}
		subject, _ := vals["subject"].(string)
		return fmt.Sprintf("send an email to %s, with the subject %q", strings.Join(all, ", "), subject)
	default:
		return "do " + action
	}
}

// accepted reports whether the call brings the user's acceptance of exactly this
// operation as it is: same caller, same arguments, in time, and not used before (an
// approval moves the operation, and the state names the move it was made at).
func (s *Set) accepted(c call, op ledger.Operation) bool {
	said := server.ElicitationResponse(c.inputs, elicitation)
	if said == nil || said.Action != mcp.ElicitationResponseActionAccept {
		return false
	}
	content, _ := said.Content.(map[string]any)
	if yes, _ := content["approve"].(bool); !yes {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.state)
	if err != nil || len(raw) != 8+elicitMAC {
		return false
	}
	until := time.UnixMilli(int64(binary.BigEndian.Uint64(raw)))
	want := s.elicitState(op, until)
	return hmac.Equal([]byte(want), []byte(c.state)) && s.opts.Now().Before(until)
}

// elicitState is what the client brings back. It says nothing and can't be made without the
// secret: the time it ends, and a MAC over that, the operation, its fingerprint, its tenant
// and the number of its moves.
func (s *Set) elicitState(op ledger.Operation, until time.Time) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(until.UnixMilli()))
	b := append([]byte(nil), raw...)
	for _, part := range []string{op.ID, string(op.Fingerprint[:]), op.Tenant} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	b = binary.AppendVarint(b, int64(op.Moves))
	mac := s.opts.Secret.Hash("elicitation", b)
	return base64.RawURLEncoding.EncodeToString(append(raw, mac[:]...))
}

// settle asks the client's user about an operation that waits, or takes the answer that came with
// the call. It returns nil where the answer stands as it is.
func (s *Set) settle(ctx context.Context, c call, a ledger.Answer, vals values) (approved bool, question *mcp.CallToolResult) {
	if !s.elicits(ctx, a) {
		return false, nil
	}
	if len(c.inputs) == 0 {
		return false, s.ask(a, vals)
	}
	if !s.accepted(c, a.Operation) {
		return false, nil // a "no" to the question isn't a "no" to the action
	}
	by := ledger.Person{By: "the client's user", Reason: "accepted by elicitation", Saw: a.Operation.Moves}
	_, err := s.ledger.Approve(ctx, a.Operation.ID, by)
	return err == nil, nil
}
