package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// A scene is one way to lose track of an action.
type scene struct {
	title   string
	trouble string
	proof   string // the argument that tells in the journal what was done
	calls   int    // that the story makes
	play    func(context.Context, *act) error
}

// An act is a scene while it is played: it starts the servers, makes the calls, shows
// and counts.
type act struct {
	*stage
	out     *narrator
	servers []*demoClient
	calls   int
	last    demoReply
	broken  []string
}

// play plays one scene. Its servers have ended when it returns.
func (st *stage) play(ctx context.Context, out *narrator, number int, sc scene) (_ tally, err error) {
	out.scene(number, sc)
	a := &act{stage: st, out: out}
	err = sc.play(ctx, a)
	for _, server := range a.servers {
		if closeErr := server.close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return tally{}, err
	}
	effects, err := st.effects(ctx)
	if err != nil {
		return tally{}, err
	}
	st.seen += len(effects)
	out.world(a.calls, effects, sc.proof)
	if len(effects) == 1 && a.last.ProviderOperationID != effects[0].ProviderOperationID {
		a.broken = append(a.broken, fmt.Sprintf("the last answer names %q, the journal has %q", a.last.ProviderOperationID, effects[0].ProviderOperationID))
	}
	return tally{title: sc.title, calls: a.calls, planned: sc.calls, effects: len(effects), broken: a.broken}, nil
}

// server starts a server that the scene's end ends.
func (a *act) server(ctx context.Context, flags ...string) (*demoClient, error) {
	c, err := a.serve(ctx, flags...)
	if err != nil {
		return nil, err
	}
	a.servers = append(a.servers, c)
	return c, nil
}

// call makes a call, and shows it with its answer.
func (a *act) call(ctx context.Context, c *demoClient, call demoCall, promised told) error {
	a.out.call("call", call)
	a.calls++
	reply, err := c.call(ctx, call)
	if err != nil {
		return err
	}
	a.heard("reads", reply, promised)
	return nil
}

// heard shows an answer and compares it with what was promised.
func (a *act) heard(label string, reply demoReply, promised told) {
	a.out.reply(label, reply)
	if !reflect.DeepEqual(reply.told, promised) {
		a.broken = append(a.broken, fmt.Sprintf("the answer to call %d is %+v, promised is %+v", a.calls, reply.told, promised))
	}
	if reply.Status == "succeeded" {
		a.last = reply
	}
}

// lose makes a call whose server dies before it answers.
func (a *act) lose(ctx context.Context, c *demoClient, call demoCall) error {
	a.out.call("call", call)
	a.calls++
	switch _, err := c.call(ctx, call); {
	case err == nil:
		a.broken = append(a.broken, "the server answered, and should have been killed")
	case !errors.Is(err, errServerGone):
		return err
	}
	a.out.nothing("reads", "nothing: the connection is gone, the server was killed")
	c.killed = true
	return c.close()
}
