package compare_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/webhook"
	"github.com/onceward/onceward/tools"
)

// A guarded server is Onceward itself: the tools on a real MCP server, the ledger on its
// SQLite store, and the webhook provider. It has no means at the bank that the others lack:
// an Idempotency-Key, and no look-up.
type guarded struct {
	mcp    *server.MCPServer
	ledger *ledger.Ledger
	store  ledger.Store
}

// openGuarded opens the ledger in a folder. rules are those of refunds.
func openGuarded(t testing.TB, folder string, w world, rules ledger.Rules) *guarded {
	t.Helper()
	secret, err := ledger.NewSecret([]byte("a secret for comparing"))
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := ledger.NewSealer([]byte("a seal key for comparing"))
	if err != nil {
		t.Fatal(err)
	}
	provider, err := webhook.New(gateway(w.bank.server.URL))
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(folder, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	g := &guarded{store: store, ledger: &ledger.Ledger{
		Store: store, Sealer: sealer, Actors: map[string]ledger.Actor{}, Now: w.clock.Now, Log: quiet,
		Rules: map[string]ledger.Rules{providers.RefundCreate: rules},
	}}
	served := map[string]providers.Provider{}
	for _, action := range []string{providers.RefundCreate, providers.PaymentOrderCreate, providers.EmailSend} {
		served[action] = provider
		g.ledger.Actors[action], _ = providers.Actor(webhook.Name, "compared", action, provider)
	}
	set, err := tools.New(g.ledger, tools.Options{
		Mode: intent.Strict, Secret: secret, Providers: served, Now: w.clock.Now,
		LookAlikes: map[string]bool{providers.RefundCreate: rules.SecondIntent != ledger.SecondIntentOff},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.mcp = server.NewMCPServer("onceward", "compared")
	if err := set.Register(g.mcp); err != nil {
		t.Fatal(err)
	}
	return g
}

// gateway describes the bank. Only refunds are asked for; the tools want all three served.
func gateway(endpoint string) webhook.Config {
	action := func(path string) webhook.Action {
		return webhook.Action{
			Create: webhook.Create{Path: path},
			Key:    webhook.Key{Header: "Idempotency-Key", Reuse: "refused", ForEver: true},
			Answer: webhook.Answer{ID: "id", Error: "error.code"},
			Errors: []webhook.ErrorRule{{Status: 422, Code: "idempotency_key_reused", Means: "key_reused"}},
			Lookup: webhook.Lookup{None: true},
		}
	}
	return webhook.Config{Endpoint: endpoint, Timing: providers.Timing{Deadline: 30 * time.Second, Lease: claimFor}, Actions: map[string]webhook.Action{
		providers.RefundCreate: action("/v1/refunds"), providers.PaymentOrderCreate: action("/v1/payment-orders"), providers.EmailSend: action("/v1/mails"),
	}}
}

// refund is the tool call of a client whose orchestrator says what it is for.
func (g *guarded) refund(ctx context.Context, c call) (told, error) {
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"refund","arguments":%s,"_meta":{%q:{"business_operation_id":%q,"workflow_id":%q}}}}`,
		c.arguments, intent.MetaKey, c.operation, c.workflow)
	response, err := json.Marshal(g.mcp.HandleMessage(ctx, json.RawMessage(message)))
	if err != nil {
		return "", err
	}
	var answer struct {
		Result struct {
			StructuredContent struct{ Status, Code string }
		}
	}
	if err := json.Unmarshal(response, &answer); err != nil {
		return "", err
	}
	said := answer.Result.StructuredContent
	if said.Status == "" {
		return "", errors.New("no status in " + string(response))
	}
	if said.Code != "" {
		return told(said.Code), nil
	}
	return told(said.Status), nil
}

// close ends the server. One that was taken for dead may still have a call under way, whose
// connection has ended by now.
func (g *guarded) close(t testing.TB) {
	if err := g.ledger.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	if err := g.store.Close(); err != nil {
		t.Error(err)
	}
}
