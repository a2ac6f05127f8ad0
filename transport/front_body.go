package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// readMessage checks the content type, reads the body within its limits, puts it
// back for mcp-go, and returns the message in it. When it reports false it has
// answered.
func (f *front) readMessage(w http.ResponseWriter, r *http.Request) (message, bool) {
	// A page may send text/plain elsewhere without asking; JSON it may not.
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		f.refuse(w, r, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return message{}, false
	}
	body, err := f.readBody(w, r)
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		w.Header().Set("Connection", "close")
		f.refuse(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", f.o.bodyLimit))
		return message{}, false
	case err != nil:
		f.refuse(w, r, http.StatusBadRequest, "the body couldn't be read to its end")
		return message{}, false
	}
	m, refusal := parseMessage(body)
	if refusal != nil {
		writeRPCError(w, http.StatusBadRequest, m.id, refusal)
		return message{}, false
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return m, true
}

// readBody reads the whole body, in bounded time: the server has no time limit
// of its own for it, as that would end the streams too.
func (f *front) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// A writer that has no deadlines, as in tests, can't be slow either.
	_ = connection.SetReadDeadline(time.Now().Add(f.o.bodyTime))
	defer func() { _ = connection.SetReadDeadline(time.Time{}) }()
	return io.ReadAll(http.MaxBytesReader(w, r.Body, f.o.bodyLimit))
}

// writeRPCError answers a POST with a JSON-RPC error.
func writeRPCError(w http.ResponseWriter, status int, id any, e *refusal) {
	body, err := json.Marshal(rpcError(id, e.code, e.text))
	if err != nil {
		body, _ = json.Marshal(rpcError(nil, mcp.INTERNAL_ERROR, panicText))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
