package transport

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/tools"
)

// sessionIdle is how long mcp-go keeps what it knows of a silent session of the
// older protocol revisions. The session's id stays good.
const sessionIdle = time.Hour

// NewHTTPHandler serves MCP's streamable HTTP at /mcp, all protocol revisions,
// and /healthz.
func NewHTTPHandler(s *server.MCPServer, o FrontOptions) http.Handler {
	o = o.withDefaults()
	ids := newSessionIDs("mcp-session-")
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s,
		server.WithSessionIdManagerResolver(tenantSessions{ids}),
		server.WithSessionIdleTTL(sessionIdle),
		server.WithStreamableHTTPLogger(slog.New(warnings{o.Log.Handler()})),
		// Its own check knows no allowed hosts; the front's comes first.
		server.WithDisableLocalhostProtection(true),
	))
	return newMessageFront(o, func(w http.ResponseWriter, r *http.Request, m message) {
		if isStrayCancel(r, m) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		// mcp-go checks the id of a POST only, and none for a modern client.
		id := r.Header.Get(headerSession)
		if id != "" && !isModern(r, m) && !ids.owns(id, tools.CallerFrom(r.Context()).Tenant) {
			http.Error(w, "no such session; begin a new one with initialize", http.StatusNotFound)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// warnings keeps mcp-go's chatter, which names session ids, out of the log.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}
