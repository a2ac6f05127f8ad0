package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/tools"
)

// How long, by the real clock, a call waits for its own result, and how long where it is to find
// another one's attempt under way.
const (
	patient   = 30 * time.Second
	impatient = 100 * time.Millisecond
)

// A server is one process: the real tools and the real ledger on a line of its own.
type server struct {
	line   *line
	ledger *ledger.Ledger
	handle Handler
}

// A call is what a model and its orchestrator say.
type call struct {
	order    order
	workflow string
	run      string
	object   string // names the action in its workflow
}

// An answer is what the model reads.
type answer struct {
	OperationID         string   `json:"operation_id"`
	Status              string   `json:"status"`
	Replayed            bool     `json:"replayed"`
	ProviderOperationID string   `json:"provider_operation_id"`
	IgnoredChanges      []string `json:"ignored_changes"`
	Review              bool     `json:"review"`
	Code                string   `json:"code"`
	Fields              []string `json:"fields"`
}

func (a answer) String() string {
	text := a.Status
	if a.Code != "" {
		text += ": " + a.Code
	}
	if len(a.Fields) > 0 {
		text += " (" + strings.Join(a.Fields, ", ") + ")"
	}
	return text
}

const (
	succeeded   = string(ledger.AnswerSucceeded)
	inProgress  = string(ledger.AnswerInProgress)
	unknown     = string(ledger.AnswerUnknown)
	awaiting    = string(ledger.AnswerAwaitingApproval)
	failedFinal = string(ledger.AnswerFailedFinal)
	refused     = "refused"
)

// start starts a server. scope is the provider's, which changes with a credential.
func (st *stage) start(ctx context.Context, scope string, answerWithin time.Duration) (*server, error) {
	s, store := st.subject, st.store
	if len(st.servers) > 0 { // the first one has the handle that is open already
		var err error
		if store, err = st.world.Open(ctx, s.Action); err != nil {
			return nil, err
		}
	}
	v := &server{line: &line{Store: store}}
	st.servers = append(st.servers, v)
	actor, ok := providers.Actor(s.Provider, scope, s.Action, st.outside)
	if !ok {
		return nil, fmt.Errorf("%s doesn't serve %s", s.Provider, s.Action)
	}
	actor.Promise = s.Policy.Promise(actor.Promise)
	rules := st.rules
	rules.AnswerWithin = 0 // that is real time, and a slow machine is no failure
	v.ledger = &ledger.Ledger{
		Store: v.line, Sealer: st.sealer, Audit: ledger.NewAuditor(st.secret), Now: st.clock.Now,
		Actors: map[string]ledger.Actor{s.Action: actor}, Rules: map[string]ledger.Rules{s.Action: rules},
		Policy: ledger.Policy{AnswerWithin: answerWithin},
		Log:    slog.New(slog.DiscardHandler), Alarm: st.hear,
	}
	v.ledger.Owner = fmt.Sprintf("drill-%d", len(st.servers))
	serving := map[string]providers.Provider{}
	for _, action := range []string{providers.EmailSend, providers.PaymentOrderCreate, providers.RefundCreate} {
		serving[action] = st.outside
	}
	set, err := tools.New(v.ledger, tools.Options{
		Mode: intent.Strict, Secret: st.secret, Providers: serving, Templates: s.Templates, Now: st.clock.Now,
		Approval:   func(_ string, args providers.Arguments) string { return s.Policy.NeedsApproval(args) },
		LookAlikes: map[string]bool{s.Action: s.Policy.LookAlikes()},
	})
	if err != nil {
		return nil, err
	}
	v.handle, err = st.world.Serve(set)
	return v, err
}

// another starts one more server on the same ledger, like the first.
func (st *stage) another(ctx context.Context) (*server, error) {
	return st.start(ctx, st.outside.box.Scope(), patient)
}

// call makes a call as a client of the newest protocol does.
func (st *stage) call(ctx context.Context, v *server, c call) (answer, error) {
	st.mu.Lock()
	st.calls++
	if st.begun.IsZero() {
		st.begun = st.clock.Now()
	}
	st.mu.Unlock()
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": c.order.action, "arguments": c.order.arguments(), "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"onceward/operation": map[string]any{
				"workflow_id": c.workflow, "step": "act", "business_object": c.object, "run_id": c.run,
			},
		},
	}})
	if err != nil {
		return answer{}, err
	}
	said, err := v.handle(ctx, message)
	if err != nil {
		return answer{}, err
	}
	var reply struct {
		Error  json.RawMessage `json:"error"`
		Result struct {
			StructuredContent json.RawMessage `json:"structuredContent"`
		} `json:"result"`
	}
	var a answer
	if err := json.Unmarshal(said, &reply); err != nil {
		return a, fmt.Errorf("the server's answer can't be read: %w", err)
	}
	if len(reply.Error) > 0 {
		return a, fmt.Errorf("the server answered with an error: %s", reply.Error)
	}
	if err := json.Unmarshal(reply.Result.StructuredContent, &a); err != nil {
		return a, errors.Join(errors.New("the server's answer has no readable content"), err)
	}
	return a, nil
}
