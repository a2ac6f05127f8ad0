// Package console is the web page on which people see what the ledger holds, approve
// what waits for them, and settle what automation can't. Pages are rendered on the server and
// need no script. Nothing personal is shown, but the arguments of an open operation that an
// approver asks to see.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A Ledger is what the console needs of one; a *[ledger.Ledger] is one.
type Ledger interface {
	// List returns the operations that match a filter.
	List(ctx context.Context, f ledger.Filter) ([]ledger.Operation, error)
	// History returns an operation, by id or key, with its transitions, oldest first.
	History(ctx context.Context, name string) (ledger.Operation, []ledger.Transition, error)
	// Approve lets a planned operation go.
	Approve(ctx context.Context, name string, who ledger.Person) (ledger.Operation, error)
	// Deny ends a planned operation.
	Deny(ctx context.Context, name string, who ledger.Person) (ledger.Operation, error)
	// Resolve settles an operation whose outcome a person found out; attempt is the number
	// of attempts that the person saw.
	Resolve(ctx context.Context, name string, what ledger.Resolution, providerOperationID string, attempt int, who ledger.Person) (ledger.Operation, error)
	// AllowRepeat permits one more action with the same name.
	AllowRepeat(ctx context.Context, name string, sameContent bool, who ledger.Person) (ledger.Operation, error)
}

// Options say what a console shows, and to whom.
type Options struct {
	Ledger    Ledger
	Approvers *Approvers // nil: nobody logs in but by a ticket; see [Console.Ticket]
	// Unseal opens the arguments of an open operation; see [Unsealing]. It returns nil
	// where there are none any more. nil: arguments can't be shown, so nothing can be approved here.
	Unseal  func(ctx context.Context, op ledger.Operation) (json.RawMessage, error)
	Limits  func(ctx context.Context) ([]Limit, error) // nil: there are none
	Alarms  *Alarms                                    // nil: none are shown
	Actions []string                                   // the action types to choose from when searching
	Secure  bool                                       // the console is reached by TLS only: cookies say so
	Now     func() time.Time                           // nil: time.Now
	Log     *slog.Logger                               // nil: slog.Default
}

// A Console is the handler of everything at /console. It trusts that the Host of a request
// was checked before. A bearer token means nothing to it.
type Console struct {
	o        Options
	mux      *http.ServeMux
	pages    map[string]*template.Template
	sessions sessions
	tickets  tickets
	throttle throttle
	origin   *http.CrossOriginProtection
}

// New makes a console.
func New(o Options) (*Console, error) {
	if o.Ledger == nil {
		return nil, errors.New("console: it needs a ledger")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	c := &Console{
		o: o, mux: http.NewServeMux(), pages: pages, origin: http.NewCrossOriginProtection(),
		sessions: sessions{now: o.Now, secure: o.Secure}, tickets: tickets{now: o.Now}, throttle: throttle{now: o.Now},
	}
	c.routes()
	return c, nil
}

// Ticket makes what lets somebody in once within two minutes, without a credential: open
// /console/enter?ticket=TICKET in a browser. Give it only to whoever may do what p may.
func (c *Console) Ticket(p Person) string { return c.tickets.issue(p) }

// Unsealing opens arguments with the store and the seal keys of a ledger.
func Unsealing(l *ledger.Ledger) func(context.Context, ledger.Operation) (json.RawMessage, error) {
	return func(ctx context.Context, op ledger.Operation) (json.RawMessage, error) {
		sealed, err := l.Store.Sealed(ctx, op.ID)
		if err != nil || sealed == nil {
			return nil, err
		}
		payload, err := l.Sealer.Open(op.Key, sealed)
		return payload.Arguments, err
	}
}

func (c *Console) routes() {
	c.mux.HandleFunc("GET /console", func(w http.ResponseWriter, r *http.Request) { redirect(w, r, "/console/") })
	c.mux.HandleFunc("GET /console/style.css", serveAsset("text/css; charset=utf-8", style))
	c.mux.HandleFunc("GET /console/icon.svg", serveAsset("image/svg+xml", icon))

	c.mux.HandleFunc("GET /console/login", c.showLogin)
	c.mux.HandleFunc("POST /console/login", c.form(c.login))
	c.mux.HandleFunc("GET /console/enter", c.showEnter)
	c.mux.HandleFunc("POST /console/enter", c.form(c.enter))
	c.mux.HandleFunc("POST /console/logout", c.form(c.logout))

	c.mux.HandleFunc("GET /console/{$}", c.read(c.showNow))
	c.mux.HandleFunc("GET /console/operations", c.read(c.showOperations))
	c.mux.HandleFunc("GET /console/operations/{id}", c.read(c.showOperation))
	c.mux.HandleFunc("GET /console/limits", c.read(c.showLimits))
	c.mux.HandleFunc("GET /console/outcomes", c.read(c.showOutcomes))

	c.mux.HandleFunc("POST /console/operations/{id}/arguments", c.act(Approver, c.showArguments))
	for _, d := range decisions {
		c.mux.HandleFunc("POST /console/operations/{id}/"+d.path, c.act(d.role, func(w http.ResponseWriter, r *http.Request, s *session) error {
			return c.decide(w, r, s, d)
		}))
	}
	c.mux.HandleFunc("/console/", c.read(func(http.ResponseWriter, *http.Request, *session) error {
		return &failure{http.StatusNotFound, "There is no such page", "The address may be mistyped. Everything there is can be reached from the links above."}
	}))
}
