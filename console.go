package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/bojanz/currency"

	"github.com/onceward/onceward/console"
	"github.com/onceward/onceward/transport"
)

// page makes the web page on which people see and decide. secure says that it is reached by TLS
// only: others than this machine reach it through a proxy that speaks it.
func (o *office) page(approvers *console.Approvers, alarms *console.Alarms, secure bool) (*console.Console, error) {
	return console.New(console.Options{
		Ledger: o.ledger, Approvers: approvers, Unseal: console.Unsealing(o.ledger), Limits: o.fills, Alarms: alarms,
		Actions: actions, Secure: secure, Log: o.log,
	})
}

// fills are the limits as the page shows them.
func (o *office) fills(ctx context.Context) ([]console.Limit, error) {
	fills, err := o.ledger.Fills(ctx)
	var shown []console.Limit
	for _, f := range fills {
		digits, _ := currency.GetDigits(f.Limit.Currency)
		name := "per " + string(f.Limit.Scope) + " " + f.Of
		if f.Tenant != "" {
			name += ", tenant " + f.Tenant
		}
		shown = append(shown, console.Limit{
			Name: name, Action: f.Action, Used: f.Used, Bound: f.Limit.Max,
			Currency: f.Limit.Currency, Digits: int(digits), FreesAt: f.FreesAt,
		})
	}
	return shown, err
}

// checkApprovers refuses a server whose agents could approve what they ask for.
func checkApprovers(approvers *console.Approvers, tokens *transport.Tokens) error {
	if os.Getenv(credentialVariable) != "" {
		return fmt.Errorf("%s is in the server's environment, where an agent may read it; take it out: a credential is its person's alone", credentialVariable)
	}
	for _, hash := range tokens.Hashes() {
		if approvers.Holds(hash) {
			return errors.New("a bearer token of an agent is an approver's credential too; whoever asks can't approve: make another credential with onceward approvers add")
		}
	}
	return nil
}

type consoleCommand struct {
	deskFlags
	byFlags
	Addr string `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Where to listen, on loopback. Port 0 takes a free one."`
}

// Run serves the page until it is interrupted. Whoever gives a credential gets a link that lets
// them in once; else the page asks for it.
func (c consoleCommand) Run(ctx context.Context, s streams) error {
	if err := transport.RequireAuth(c.Addr, nil); err != nil {
		return errors.New("--addr is on loopback: this page is for whoever sits here; serve it to others with onceward serve --transport http")
	}
	return c.with(ctx, s, func(o *office) error {
		approvers, err := c.read(o.dir)
		if err != nil {
			return err
		}
		page, err := o.page(approvers, nil, false)
		if err != nil {
			return err
		}
		path, note := "/console/", "Log in with your credential. (There is one for each person: onceward approvers add NAME.)"
		credential, err := c.credential(s.in)
		if err == nil {
			person, ok := approvers.Who(credential)
			if !ok {
				return fmt.Errorf("%w: the credential isn't one of %s", errCredential, c.path(o.dir))
			}
			path, note = "/console/enter?ticket="+page.Ticket(person), "The link lets "+person.Name+" in, once, within two minutes."
		} else if !errors.Is(err, errCredential) {
			return err
		}
		front := transport.FrontOptions{Console: page, Log: o.log}
		return transport.ListenAndServePage(ctx, c.Addr, front, func(address string) {
			fmt.Fprintf(s.out, "http://%s%s\n", address, path)
			fmt.Fprintln(s.err, note+" Interrupt to end.")
		})
	})
}
