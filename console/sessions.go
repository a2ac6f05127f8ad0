package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"sync"
	"time"
)

const (
	sessionIdle = 30 * time.Minute // without a request
	sessionAge  = 8 * time.Hour    // from the log-in
	maxSessions = 1000             // of all; the one that was idle longest gives way
)

// A session is one person's stay. It lives in memory only: it ends with the process.
type session struct {
	person Person
	secret [32]byte // of this session alone: keys its form tokens
	begun  time.Time
	seen   time.Time
}

// csrf is what every form of this session carries, and no other page can know.
func (s *session) csrf() string { return s.token("form") }

// token binds parts to this session.
func (s *session) token(parts ...string) string {
	mac := hmac.New(sha256.New, s.secret[:])
	for _, part := range parts {
		_, _ = mac.Write([]byte{byte(len(part) >> 8), byte(len(part))}) // a hash's Write never fails
		_, _ = mac.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// equal compares in a time that tells nothing about where they differ.
func equal(got, want string) bool { return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1 }

// sessions are kept under the hash of their id, so that a look into memory gives no cookie away.
type sessions struct {
	now    func() time.Time
	secure bool

	mu   sync.Mutex
	open map[[sha256.Size]byte]*session
}

// cookieName says to browsers, where the console is reached by TLS, that no other way may
// set the cookie.
func (ss *sessions) cookieName() string {
	if ss.secure {
		return "__Secure-onceward_console"
	}
	return "onceward_console"
}

func (ss *sessions) cookie(value string, age time.Duration) *http.Cookie {
	c := &http.Cookie{
		Name: ss.cookieName(), Value: value, Path: "/console", MaxAge: int(age / time.Second),
		HttpOnly: true, Secure: ss.secure, SameSite: http.SameSiteStrictMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// begin starts a session with an id of its own, whatever the browser sent.
func (ss *sessions) begin(w http.ResponseWriter, p Person) {
	id := random()
	now := ss.now()
	s := &session{person: p, begun: now, seen: now}
	rand.Read(s.secret[:]) // never fails (crypto/rand, Go 1.24)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open == nil {
		ss.open = map[[sha256.Size]byte]*session{}
	}
	ss.makeRoom(now)
	ss.open[sha256.Sum256([]byte(id))] = s
	http.SetCookie(w, ss.cookie(id, sessionAge))
}

// makeRoom drops what is over, and the longest idle one if that isn't enough.
func (ss *sessions) makeRoom(now time.Time) {
	var oldest [sha256.Size]byte
	for id, s := range ss.open {
		if s.over(now) {
			delete(ss.open, id)
		} else if o, ok := ss.open[oldest]; !ok || s.seen.Before(o.seen) {
			oldest = id
		}
	}
	if len(ss.open) >= maxSessions {
		delete(ss.open, oldest)
	}
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.seen) >= sessionIdle || now.Sub(s.begun) >= sessionAge
}

// of returns the session that a request belongs to, nil if there is none or it is over.
func (ss *sessions) of(r *http.Request) *session {
	cookie, err := r.Cookie(ss.cookieName())
	if err != nil {
		return nil
	}
	id := sha256.Sum256([]byte(cookie.Value))
	now := ss.now()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, ok := ss.open[id]
	if !ok {
		return nil
	}
	if s.over(now) {
		delete(ss.open, id)
		return nil
	}
	s.seen = now
	return s
}

// drop ends the session of a request.
func (ss *sessions) drop(r *http.Request) {
	if cookie, err := r.Cookie(ss.cookieName()); err == nil {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		delete(ss.open, sha256.Sum256([]byte(cookie.Value)))
	}
}

// end ends the session of a request, and takes the cookie off the browser.
func (ss *sessions) end(w http.ResponseWriter, r *http.Request) {
	ss.drop(r)
	http.SetCookie(w, ss.cookie("", 0))
}

func random() string {
	var id [32]byte
	rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	return base64.RawURLEncoding.EncodeToString(id[:])
}
