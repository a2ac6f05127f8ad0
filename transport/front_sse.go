package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/tools"
)

// noOrigin is an origin that no page has. mcp-go's SSE server lets every page
// read its stream unless it is told one that may; which may, the front says.
const noOrigin = "https://onceward.invalid"

// NewSSEHandler serves the older HTTP+SSE transport at /sse and /message, and
// /healthz.
func NewSSEHandler(s *server.MCPServer, o FrontOptions) http.Handler {
	o = o.withDefaults()
	streams := &sseStreams{ids: newSessionIDs("sse-"), calls: o.Calls, open: make(map[string]*sseStream)}
	sse := server.NewSSEServer(s,
		server.WithSessionIDGenerator(streams.opened),
		server.WithSSECORS(server.WithCORSAllowedOrigins(noOrigin)),
		server.WithSSEDisableLocalhostProtection(true), // the front's check comes first
	)
	return newMessageFront(o, func(w http.ResponseWriter, r *http.Request, m message) {
		switch {
		case r.URL.Path == "/sse" && r.Method == http.MethodGet:
			streams.listen(w, r, sse)
		case r.URL.Path == "/message" && r.Method == http.MethodPost:
			streams.post(w, r, m, sse)
		default:
			sse.ServeHTTP(w, r)
		}
	})
}

// sseStreams knows the open streams, for two things that mcp-go leaves out: only
// the tenant that opened a stream may post into it, and the process doesn't end
// before the answers of its calls are written.
type sseStreams struct {
	ids   *sessionIDs
	calls *InFlight

	mu   sync.Mutex
	open map[string]*sseStream
}

type sseStreamKey struct{}

// listen serves one stream until its client has gone.
func (s *sseStreams) listen(w http.ResponseWriter, r *http.Request, sse http.Handler) {
	stream := &sseStream{ResponseWriter: w, calls: s.calls}
	defer func() {
		s.mu.Lock()
		delete(s.open, stream.id)
		s.mu.Unlock()
		stream.end()
	}()
	sse.ServeHTTP(stream, r.WithContext(context.WithValue(r.Context(), sseStreamKey{}, stream)))
}

// opened makes the id of a new stream, for the tenant that opened it.
func (s *sseStreams) opened(ctx context.Context, _ *http.Request) (string, error) {
	stream, ok := ctx.Value(sseStreamKey{}).(*sseStream)
	if !ok {
		return "", errors.New("the request didn't come through the front")
	}
	stream.id = s.ids.mint(tools.CallerFrom(ctx).Tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[stream.id] = stream
	return stream.id, nil
}

// post takes a message for a stream of the caller's.
func (s *sseStreams) post(w http.ResponseWriter, r *http.Request, m message, sse http.Handler) {
	id := r.URL.Query().Get("sessionId")
	s.mu.Lock()
	stream := s.open[id]
	s.mu.Unlock()
	if !s.ids.owns(id, tools.CallerFrom(r.Context()).Tenant) || stream == nil || (m.wantsAnswer() && !stream.expect()) {
		http.Error(w, "no such session; open a new stream with GET /sse", http.StatusNotFound)
		return
	}
	sse.ServeHTTP(w, r)
}

// An sseStream is the response on which a session's answers go out. It counts
// the requests that wait for theirs.
type sseStream struct {
	http.ResponseWriter
	id    string
	calls *InFlight

	mu      sync.Mutex
	waiting int
	ended   bool
}

// expect counts a request, unless the stream has ended or the server is ending.
func (s *sseStream) expect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !s.calls.enter() {
		return false
	}
	s.waiting++
	return true
}

// Write writes what mcp-go sends, one event at a time.
func (s *sseStream) Write(event []byte) (int, error) {
	n, err := s.ResponseWriter.Write(event)
	if isAnswer(event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting > 0 {
			s.waiting--
			s.calls.leave()
		}
	}
	return n, err
}

// Flush implements [http.Flusher], which mcp-go demands.
func (s *sseStream) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// end forgets the answers that nobody will read. Their calls, if they are
// tools, are counted where they run.
func (s *sseStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for ; s.waiting > 0; s.waiting-- {
		s.calls.leave()
	}
}

// isAnswer tells an event with an answer from the endpoint's and from
// notifications.
func isAnswer(event []byte) bool {
	data, ok := bytes.CutPrefix(event, []byte("event: message\ndata: "))
	if !ok {
		return false
	}
	var m struct {
		Method string          `json:"method"`
		ID     json.RawMessage `json:"id"`
	}
	return json.Unmarshal(data, &m) == nil && m.Method == "" && m.ID != nil
}
