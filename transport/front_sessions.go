package transport

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/tools"
)

const headerSession = server.HeaderKeySessionID

// sessionIDs makes ids that say for which tenant they were made, to this process
// only: a random part and a keyed hash of it and the tenant. A session id isn't
// secret enough to be the only thing between two tenants: it stands in URLs and
// logs. The key lives as long as the process, so a client meets 404 after a
// restart and begins a new session, as it must.
type sessionIDs struct {
	prefix string
	key    []byte
}

const sessionPartLength = 32 // hex digits of each part: 128 bits

func newSessionIDs(prefix string) *sessionIDs {
	s := &sessionIDs{prefix: prefix, key: make([]byte, sha256.Size)}
	_, _ = rand.Read(s.key) // never fails
	return s
}

// mint makes an id for a tenant.
func (s *sessionIDs) mint(tenant string) string {
	part := make([]byte, sessionPartLength/2)
	_, _ = rand.Read(part) // never fails
	id := s.prefix + hex.EncodeToString(part)
	return id + "-" + s.tag(id, tenant)
}

// owns reports whether id was made for tenant.
func (s *sessionIDs) owns(id, tenant string) bool {
	n := len(s.prefix) + sessionPartLength
	if len(id) != n+1+sessionPartLength || id[n] != '-' || !strings.HasPrefix(id, s.prefix) {
		return false
	}
	return hmac.Equal([]byte(id[n+1:]), []byte(s.tag(id[:n], tenant)))
}

// tag is unambiguous because id has a fixed length.
func (s *sessionIDs) tag(id, tenant string) string {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(id))
	h.Write([]byte(tenant))
	return hex.EncodeToString(h.Sum(nil))[:sessionPartLength]
}

// tenantSessions hands mcp-go's streamable HTTP the sessions of the tenant that
// asks.
type tenantSessions struct {
	ids *sessionIDs
}

// ResolveSessionIdManager implements [server.SessionIdManagerResolver]. The
// sweeper of idle sessions asks without a request; it only ends sessions.
func (t tenantSessions) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	if r == nil {
		return sessionManager{ids: t.ids}
	}
	return sessionManager{ids: t.ids, tenant: tools.CallerFrom(r.Context()).Tenant}
}

type sessionManager struct {
	ids    *sessionIDs
	tenant string
}

var errForeignSession = errors.New("no session of this caller")

func (m sessionManager) Generate() string { return m.ids.mint(m.tenant) }

func (m sessionManager) Validate(id string) (terminated bool, err error) {
	if !m.ids.owns(id, m.tenant) {
		return false, errForeignSession
	}
	return false, nil
}

// Terminate allows all: the front let no other tenant's id come this far.
func (m sessionManager) Terminate(string) (notAllowed bool, err error) { return false, nil }
