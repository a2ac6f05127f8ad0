// Package tools is what the model sees: one file per tool, one wrapper that all of
// them pass (guard.go), and one place where outcomes become words (answer.go).
package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A Ledger is what the tools need of a *[ledger.Ledger].
type Ledger interface {
	// Execute lets the action happen at most once. Its error is a *ledger.Refusal;
	// anything else is a bug.
	Execute(ctx context.Context, r ledger.Request) (ledger.Answer, error)
	// Get returns an operation of the tenant, or a *ledger.Refusal.
	Get(ctx context.Context, tenant, operationID string) (ledger.Answer, error)
	// Approve lets a waiting operation go.
	Approve(ctx context.Context, name string, who ledger.Person) (ledger.Operation, error)
	// List returns the operations that match f, or a *ledger.Refusal.
	List(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error)
}

// Options say how the tools are offered.
type Options struct {
	Mode      intent.Mode
	Secret    ledger.Secret
	Scope     intent.Scope                  // of the process
	Providers map[string]providers.Provider // by action type, all three
	Templates []string                      // what a mail may be for; empty: not listed
	// DottedNames lists the tools as "email.send" rather than "email_send". Some
	// clients drop a server's whole tool list for one name with a dot.
	DottedNames bool
	// Approval says why a person has to agree first to an action with these arguments, "" if nobody
	// has to. It is a pure function of the policy. nil: nobody has to.
	Approval func(action string, args providers.Arguments) string
	// LookAlikes are the action types for which another operation with the same critical
	// arguments matters.
	LookAlikes map[string]bool
	// Elicit are the action types whose approval the client's own user may give, where the
	// client can ask. Never money.
	Elicit map[string]bool
	Now    func() time.Time // nil: time.Now
	Log    *slog.Logger     // nil: nothing is logged
}

// A Set is the tools of one server.
type Set struct {
	ledger Ledger
	opts   Options
	log    *slog.Logger
	tools  []*tool
}

// New makes the tools. A schema that doesn't compile is an error: a client would be
// shown rules that nothing enforces.
func New(l Ledger, o Options) (*Set, error) {
	if l == nil {
		return nil, errors.New("tools: no ledger")
	}
	if o.Mode != intent.Strict && o.Mode != intent.Workflow {
		return nil, fmt.Errorf("tools: the identity mode %q is neither %q nor %q", o.Mode, intent.Strict, intent.Workflow)
	}
	if err := o.Scope.Validate(); err != nil {
		return nil, err
	}
	for _, money := range []string{providers.PaymentOrderCreate, providers.RefundCreate} {
		if o.Elicit[money] {
			return nil, fmt.Errorf("tools: %s moves money; its approval isn't the client's to give", money)
		}
	}
	if err := checkTemplates(o.Templates); err != nil {
		return nil, err
	}
	for _, action := range []string{providers.EmailSend, providers.PaymentOrderCreate, providers.RefundCreate} {
		p := o.Providers[action]
		if p == nil {
			return nil, fmt.Errorf("tools: no provider for %s", action)
		}
		if _, ok := p.Traits(action); !ok {
			return nil, fmt.Errorf("tools: the provider for %s doesn't serve it", action)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Set{ledger: l, opts: o, log: o.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.tools = []*tool{s.emailSend(), s.paymentOrderCreate(), s.refund(), s.operationGet(), s.operationList()}
	if err := compile(s.tools); err != nil {
		return nil, err
	}
	return s, nil
}

// Register offers the tools on a server.
func (s *Set) Register(m *server.MCPServer) error {
	entries := make([]server.ServerTool, 0, len(s.tools))
	for _, t := range s.tools {
		listed := s.listed(t)
		if m.GetTool(listed) != nil {
			return fmt.Errorf("tools: there is a tool named %s already", listed)
		}
		entries = append(entries, server.ServerTool{Tool: t.definition(listed), Handler: s.wrap(t)})
	}
	m.AddTools(entries...)
	return nil
}

// Names leads from every name a call may use, dotted ("email.send") or not
// ("email_send"), to the one under which the tool is listed.
func (s *Set) Names() map[string]string {
	names := make(map[string]string, 2*len(s.tools))
	for _, t := range s.tools {
		names[t.name], names[undotted(t.name)] = s.listed(t), s.listed(t)
	}
	return names
}

func (s *Set) listed(t *tool) string {
	if s.opts.DottedNames {
		return t.name
	}
	return undotted(t.name)
}

func undotted(name string) string { return strings.ReplaceAll(name, ".", "_") }

func checkTemplates(templates []string) error {
	for i, t := range templates {
		if t == "" || len(t) > maxText || !utf8.ValidString(t) || strings.ContainsFunc(t, unicode.IsControl) {
			return fmt.Errorf("tools: template %d of %d isn't a plain name", i+1, len(templates))
		}
		if slices.Contains(templates[:i], t) {
			return fmt.Errorf("tools: template %d of %d is listed twice", i+1, len(templates))
		}
	}
	return nil
}

// Unguarded names the tools of a server that can be called past the wrapper. It is
// for tests: handlers that aren't guarded are run, with a context that is over
// and no arguments.
func Unguarded(m *server.MCPServer) []string {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var names []string
	for name, t := range m.ListTools() {
		var request mcp.CallToolRequest
		request.Params.Name = name
		if !probed(ctx, t.Handler, request) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
