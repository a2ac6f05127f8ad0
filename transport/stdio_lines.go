package transport

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
)

// An inputLine is one line of the input: its bytes without the line break, or
// the fact that it was longer than the limit. err ends the input; the last line
// may come with it.
type inputLine struct {
	data    []byte
	tooLong bool
	err     error
}

// readLines reads in on a goroutine of its own, because a read of standard
// input can't be interrupted. The goroutine ends after the line with an error,
// or, once quit is closed, as soon as its read returns.
func readLines(in io.Reader, limit int, quit <-chan struct{}) <-chan inputLine {
	lines := make(chan inputLine)
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			line := nextLine(r, limit)
			select {
			case lines <- line:
			case <-quit:
				return
			}
			if line.err != nil {
				return
			}
		}
	}()
	return lines
}

// nextLine reads up to the next line break and keeps at most limit bytes.
func nextLine(r *bufio.Reader, limit int) inputLine {
	var line inputLine
	for {
		part, err := r.ReadSlice('\n')
		part = bytes.TrimSuffix(part, []byte{'\n'})
		if len(line.data)+len(part) > limit {
			line.data, line.tooLong = nil, true
		}
		if !line.tooLong {
			line.data = append(line.data, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line.err = err
		return line
	}
}

// A lineWriter writes messages, one JSON object a line, whole and one after the
// other. After close, or after an error, it writes nothing more.
type lineWriter struct {
	log *slog.Logger

	// done isn't under mu: a write to a client that doesn't read never returns,
	// and close must.
	done atomic.Bool
	mu   sync.Mutex
	w    io.Writer
}

// write writes m; nil is nothing to say.
func (w *lineWriter) write(m mcp.JSONRPCMessage) {
	if m == nil {
		return
	}
	line, err := json.Marshal(m)
	if err != nil {
		// The error's text may quote a value.
		w.log.Error("an answer couldn't be encoded", "message", fmt.Sprintf("%T", m), "error", fmt.Sprintf("%T", err))
		var id any
		if response, ok := m.(mcp.JSONRPCResponse); ok {
			id = response.ID.Value()
		}
		if line, err = json.Marshal(rpcError(id, mcp.INTERNAL_ERROR, panicText)); err != nil {
			return
		}
	}
	line = append(line, '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done.Load() {
		return
	}
	if _, err := w.w.Write(line); err != nil {
		// The client has gone; its calls still finish.
		w.done.Store(true)
		w.log.Warn("the client no longer reads its answers", "error", err)
	}
}

func (w *lineWriter) close() { w.done.Store(true) }
