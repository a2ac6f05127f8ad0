package transport

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/tools"
)

// InFlight counts what must finish before the process may end: tool calls, and
// on HTTP the requests and answers around them. mcp-go runs SSE calls apart from
// their request and doesn't wait for them. The zero value is ready.
type InFlight struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // made by wait, closed when n falls to zero
}

// enter counts one more and reports true, or, after close, reports false.
// Everyone who entered must leave.
func (f *InFlight) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.n++
	return true
}

func (f *InFlight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.n == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

// close lets nobody else enter.
func (f *InFlight) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// wait returns nil when all have left, or [ErrDrain] when ctx ends before.
// One goroutine waits at a time.
func (f *InFlight) wait(ctx context.Context) error {
	f.mu.Lock()
	if f.n == 0 {
		f.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	f.idle = idle
	f.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ErrDrain
	}
}

// wrap counts every call of a tool. A call that comes after close is turned
// away: a guarded tool answers shutting_down and does nothing.
func (f *InFlight) Wrap(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if !f.enter() {
			return next(tools.TurnAway(ctx), r)
		}
		defer f.leave()
		return next(ctx, r)
	}
}
