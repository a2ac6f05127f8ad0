package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/tools"
)

// ErrDrain says that calls were still running when the time to finish them was
// over. What they do is in the ledger; the next start settles it.
var ErrDrain = errors.New("calls were still running when the time to finish them was over; their operations are in the ledger and are settled after the next start")

// StdioOptions bounds what one client may ask of the process. A zero field
// takes the default named beside it.
type StdioOptions struct {
	slots     int           // tool calls that run at once: 64
	queue     int           // tool calls that wait for a slot: 10,000
	held      int           // bytes of those that wait: 64 MiB
	lineLimit int           // bytes of one message, without its line break: 1 MiB
	Drain     time.Duration // time that calls in flight get to finish: 60 s
	Log       *slog.Logger  // slog.Default()
}

func (o StdioOptions) withDefaults() StdioOptions {
	if o.slots <= 0 {
		o.slots = 64
	}
	if o.queue <= 0 {
		o.queue = 10_000
	}
	if o.held <= 0 {
		o.held = 64 << 20
	}
	if o.lineLimit <= 0 {
		o.lineLimit = maxMessage
	}
	if o.Drain <= 0 {
		o.Drain = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// ServeStdio serves the one client at the other end of in and out, one JSON
// object a line, until in ends or ctx does. Then calls that hold a slot finish,
// calls that wait for one are turned away, and every request gets its answer.
// It returns nil after that, [ErrDrain] when o.Drain wasn't enough, or the error
// of reading in.
//
// It replaces mcp-go's StdioServer, which at the end of its input cancels the
// calls that run, starts queued ones with a dead context and leaves others
// without an answer, and which runs calls on its read loop when its queue is
// full, so that a cancellation waits behind them.
func ServeStdio(ctx context.Context, s *server.MCPServer, in io.Reader, out io.Writer, o StdioOptions) error {
	o = o.withDefaults()
	session := newStdioSession()
	// Neither the end of the input nor a signal may reach a handler: between
	// claim and outcome there is no good moment to stop.
	base, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	if err := s.RegisterSession(base, session); err != nil {
		return fmt.Errorf("register the stdio session: %w", err)
	}
	defer s.UnregisterSession(base, session.SessionID())
	base = s.WithContext(base, session)

	l := &stdioLoop{
		o: o, server: s, base: base, out: &lineWriter{w: out, log: o.Log},
		places: make(chan struct{}, o.queue), known: make(map[string]*stdioCall),
	}
	l.other, l.endOther = context.WithCancel(base)
	defer l.endOther()
	defer l.out.close()
	stopNotifying := session.forward(l.out)

	quit := make(chan struct{})
	defer close(quit)
	err := l.read(ctx, readLines(in, o.lineLimit, quit))
	if !l.finish(stopNotifying) {
		return errors.Join(err, ErrDrain)
	}
	return err
}

// A stdioCall is one tools/call that runs or waits for its slot.
type stdioCall struct {
	id      any
	message json.RawMessage
	ctx     context.Context
	cancel  context.CancelFunc
}

type stdioLoop struct {
	o        StdioOptions
	server   *server.MCPServer
	base     context.Context
	other    context.Context // of requests that aren't tool calls
	endOther context.CancelFunc
	out      *lineWriter

	answering sync.WaitGroup // answers outside slots
	places    chan struct{}  // bounds them

	calls   sync.WaitGroup // one for each taken slot
	mu      sync.Mutex
	running int
	waiting []*stdioCall
	held    int                   // bytes of waiting
	known   map[string]*stdioCall // by request id, for cancellation
	ending  bool
}

// read takes lines until there are no more or ctx ends.
func (l *stdioLoop) read(ctx context.Context, lines <-chan inputLine) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-lines:
			switch {
			case line.tooLong:
				l.refuse(ctx, nil, mcp.INVALID_REQUEST, fmt.Sprintf("the message is longer than %d bytes; it was skipped", l.o.lineLimit))
			case len(bytes.TrimSpace(line.data)) > 0:
				l.accept(ctx, line.data)
			}
			if errors.Is(line.err, io.EOF) {
				return nil
			}
			if line.err != nil {
				return fmt.Errorf("read standard input: %w", line.err)
			}
		}
	}
}

// accept decides where a message is handled. It never handles a request itself:
// a cancellation or a ping must get past any number of calls.
func (l *stdioLoop) accept(ctx context.Context, raw json.RawMessage) {
	m, refusal := parseMessage(raw)
	if refusal != nil {
		l.refuse(ctx, m.id, refusal.code, refusal.text)
		return
	}
	switch {
	case m.isReply():
		// This server asks its client nothing.
	case m.id == nil:
		if m.method == methodCancelled {
			l.cancelCall(m.cancels)
		}
		if answer := l.handle(l.base, nil, raw); answer != nil { //nolint:contextcheck // the base outlives ctx on purpose: neither end of input nor signal may reach a handler
			l.aside(ctx, func() { l.out.write(answer) })
		}
	case m.method == string(mcp.MethodToolsCall):
		if !l.admit(m.id, raw) {
			l.refuse(ctx, m.id, mcp.INTERNAL_ERROR, "busy: too many calls are waiting; nothing was done, try again later")
		}
	default:
		l.aside(ctx, func() { l.out.write(l.handle(l.other, m.id, raw)) })
	}
}

// aside runs answer off the read loop. The loop waits only when o.queue answers
// are stuck already, which means that the client doesn't read.
func (l *stdioLoop) aside(ctx context.Context, answer func()) {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return
	}
	l.answering.Go(func() {
		defer func() { <-l.places }()
		answer()
	})
}

func (l *stdioLoop) refuse(ctx context.Context, id any, code int, text string) {
	l.aside(ctx, func() { l.out.write(rpcError(id, code, text)) })
}

// admit gives a call a slot or lets it wait for one, and reports whether either
// was possible. The slot is taken here, on the read loop: what came before the
// end of the input and found a slot free is in flight, however soon the end
// follows.
func (l *stdioLoop) admit(id any, raw json.RawMessage) bool {
	c := &stdioCall{id: id, message: raw}
	c.ctx, c.cancel = context.WithCancel(l.base)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.running < l.o.slots:
		l.running++
		l.known[requestKey(id)] = c
		l.calls.Go(func() { l.work(c) })
	case len(l.waiting) < l.o.queue && l.held+len(raw) <= l.o.held:
		l.known[requestKey(id)] = c
		l.waiting = append(l.waiting, c)
		l.held += len(raw)
	default:
		c.cancel()
		return false
	}
	return true
}

// work runs calls in one slot until none waits.
func (l *stdioLoop) work(c *stdioCall) {
	for c != nil {
		l.out.write(l.handle(c.ctx, c.id, c.message))
		c = l.next(c)
	}
}

// next forgets a call that is done, if any, and returns one that waited, or nil
// after giving the slot back.
func (l *stdioLoop) next(done *stdioCall) *stdioCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done != nil {
		done.cancel()
		if key := requestKey(done.id); l.known[key] == done {
			delete(l.known, key)
		}
	}
	if len(l.waiting) == 0 {
		l.running--
		return nil
	}
	c := l.waiting[0]
	l.waiting[0], l.waiting = nil, l.waiting[1:]
	l.held -= len(c.message)
	if l.ending {
		c.ctx = tools.TurnAway(c.ctx)
	}
	return c
}

// cancelCall tells a call that its client no longer wants it, also while it
// waits for its slot: mcp-go knows only those that have begun.
func (l *stdioLoop) cancelCall(id any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.known[requestKey(id)]; c != nil {
		c.cancel()
	}
}

// finish answers everything that was read and reports whether o.Drain was
// enough for it.
func (l *stdioLoop) finish(stopNotifying func()) bool {
	l.mu.Lock()
	l.ending = true
	// Those that hold a slot may take long; the others must not wait for them.
	for range min(len(l.waiting), l.o.slots) {
		l.running++
		l.calls.Go(func() { l.work(l.next(nil)) })
	}
	l.mu.Unlock()

	done := make(chan struct{})
	go func() {
		defer close(done)
		l.calls.Wait()
		l.endOther() // a subscription's stream ends only when it is told to
		l.answering.Wait()
		stopNotifying()
	}()
	timeout := time.NewTimer(l.o.Drain)
	defer timeout.Stop()
	select {
	case <-done:
		return true
	case <-timeout.C:
		return false
	}
}

// handle runs one message. A panic ends neither the process nor the stream, and
// its text, which may hold anything, goes nowhere.
func (l *stdioLoop) handle(ctx context.Context, id any, raw json.RawMessage) (answer mcp.JSONRPCMessage) {
	defer func() {
		if r := recover(); r != nil {
			logPanic(l.o.Log, r)
			answer = nil
			if id != nil {
				answer = rpcError(id, mcp.INTERNAL_ERROR, panicText)
			}
		}
	}()
	return l.server.HandleMessage(ctx, raw)
}

// requestKey tells ids apart as JSON does: 12 isn't "12".
func requestKey(id any) string {
	return fmt.Sprintf("%T:%v", id, id)
}
