package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/onceward/onceward/ledger"
)

// longest bounds how long a process stands still: long past every lease.
const longest = 3 * time.Minute

var anna = ledger.Person{By: "anna", Reason: "looked"}

// alive is a server that lives: who died is started again.
func (w *world) alive(n int) *server {
	if w.servers[n].dead.Load() {
		w.servers[n] = w.launch(n, nil)
		w.lookAtClock(w.servers[n])
	}
	return w.servers[n]
}

// take does one step.
func (w *world) take(e event) {
	srv := w.alive(e.On)
	switch e.Do {
	case "call":
		w.wait(func() { w.hear(srv, e.Op, false, false) })
	case "call-behind":
		w.time.run(func() { w.hear(srv, e.Op, false, false) })
	case "reworded-call":
		w.wait(func() { w.hear(srv, e.Op, false, true) })
	case "changed-call":
		w.wait(func() { w.hear(srv, e.Op, true, false) })
	case "rush":
		w.rush()
	case "sweep":
		w.wait(func() { w.sweep(srv) })
	case "sweep-behind":
		w.time.run(func() { w.sweep(srv) })
	case "reconcile":
		if op := w.find(e.Op); op != nil {
			w.wait(func() { _, _ = srv.Reconcile(w.t.Context(), op.ID) }) // what it did is judged by the journal
		}
	case "crash":
		srv.die()
	case "pass":
		w.time.pass(e.D)
	case "look":
		w.look(srv, e.Op, ledger.Drop)
	case "look-retry":
		w.look(srv, e.Op, ledger.Retry)
	case "approve":
		w.approve(srv, e.Op, false)
	case "mistaken-approve":
		w.approve(srv, e.Op, true)
	case "deny":
		if op := w.find(e.Op); op != nil {
			w.wait(func() { _, _ = srv.Deny(w.t.Context(), op.ID, anna) }) // it may be too late
		}
	case "freeze":
		srv.freeze(min(e.D, longest))
	case "cut":
		srv.cut.Store(w.now().Add(min(e.D, longest)).UnixNano())
		w.tally.cuts.Add(1)
	case "hesitate":
		srv.hesitate.Store(int64(min(e.D, time.Minute)))
	case "vain":
		w.model.mu.Lock()
		w.model.vain++
		w.model.mu.Unlock()
	case "clock":
		w.setClock(e)
	default:
		srv.breakNext(e.Do, min(e.D, longest))
	}
}

// rush has every server make every call at once, some of them between their decision and its
// write for long.
func (w *world) rush() {
	for n := range w.servers {
		srv := w.alive(n)
		for op := range w.plot.Ops {
			srv.hesitate.Store(int64(time.Duration(1+(n+op)%3) * time.Second))
			w.time.run(func() { w.hear(srv, op, false, false) })
		}
	}
}

// wait does something and waits for it.
func (w *world) wait(do func()) {
	done := make(chan struct{})
	w.time.run(func() {
		defer close(done)
		do()
	})
	w.time.await(done)
}

// sweep is one turn of a server's own loop.
func (w *world) sweep(srv *server) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	_ = srv.Sweep(ctx) // it may fail, when the store does
	_ = srv.Seal(ctx)
}

// lookAtClock is what a server does at its start and with every sweep, where the store can
// tell. It isn't exported by itself: the loop is run until it waits.
func (w *world) lookAtClock(srv *server) {
	if !w.plot.Clocked {
		return
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	w.time.run(func() { srv.Run(ctx, 1000*time.Hour) })
	w.time.pass(0)
	cancel()
	w.time.pass(0)
}

// setClock makes a server's clock wrong: by little, or by much where the store can tell.
func (w *world) setClock(e event) {
	if !w.plot.Clocked {
		return
	}
	srv := w.servers[e.On]
	off := []time.Duration{0, time.Second, -time.Second, 2 * time.Second, time.Hour}[int(e.D/time.Second)%5]
	w.offsets[e.On] = off
	srv.off.Store(int64(off))
	w.tally.jumps.Add(1)
	w.lookAtClock(srv)
}

// look is a person who tells the truth as far as it can be seen: what is there happened, and
// what isn't didn't, or may be tried again.
func (w *world) look(srv *server, i int, otherwise ledger.Resolution) {
	op := w.find(i)
	if op == nil || !op.Review.Open() {
		return
	}
	w.wait(func() {
		srv.stand()
		what, id := otherwise, ""
		for _, e := range w.model.done(i) {
			switch {
			case e.at.After(w.now()):
			case e.rejected:
				what = ledger.Drop // it is there, and came to nothing
			default:
				what, id = ledger.Happened, e.id
			}
		}
		if _, err := srv.Resolve(w.t.Context(), op.ID, what, id, op.Attempts, anna); err == nil { // it may be too early
			w.tally.resolved.Add(1)
			w.trace("a person: %s", what)
		}
	})
}

// approve lets an operation go. A mistaken person looked at what it was before.
func (w *world) approve(srv *server, i int, mistaken bool) {
	op := w.find(i)
	if op == nil {
		return
	}
	who := anna
	who.Saw = op.Moves
	if mistaken {
		who.Saw = max(1, op.Moves-1)
	}
	w.mu.Lock()
	w.lettingGo[i] = true
	w.mu.Unlock()
	w.wait(func() {
		if _, err := srv.Approve(w.t.Context(), op.ID, who); err == nil && who.Saw != op.Moves {
			w.fail("a decision about what has changed since was accepted")
		}
	})
	w.mu.Lock()
	w.lettingGo[i] = false
	w.mu.Unlock()
}

func approval(op int, fingerprint ledger.Hash) string { return fmt.Sprint(op, fingerprint) }
