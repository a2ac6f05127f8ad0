package console

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/onceward/onceward/ledger"
)

const (
	maxForm  = 16 << 10 // bytes
	maxQuery = 4 << 10
)

// contentPolicy allows what the pages use and nothing else: no script at all.
const contentPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP puts before every page what all of them need: headers that keep browsers from
// running, framing or keeping anything.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil { // its text may quote anything
			c.o.Log.Error("the console panicked", slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
			panic(http.ErrAbortHandler)
		}
	}()
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not "no-referrer": with that a browser names the origin of its own forms "null", which
	// is what a page of nobody knows whom has, too.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if len(r.URL.RawQuery) > maxQuery {
		http.Error(w, "the address is too long", http.StatusRequestURITooLong)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// A failure is a page that says why there is no other one.
type failure struct {
	status      int
	title, text string
}

func (f *failure) Error() string { return f.title }

// A handler serves somebody who has logged in.
type handler func(w http.ResponseWriter, r *http.Request, s *session) error

// read lets everybody who has logged in see a page.
func (c *Console) read(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := c.sessions.of(r)
		if s == nil {
			c.askToLogIn(w, r)
			return
		}
		if err := h(w, r, s); err != nil {
			c.fail(w, r, s, err)
		}
	}
}

// act lets those who have a role do something, from a form of their own session only.
func (c *Console) act(role Role, h handler) http.HandlerFunc {
	return c.form(func(w http.ResponseWriter, r *http.Request) {
		s := c.sessions.of(r)
		switch {
		case s == nil:
			c.fail(w, r, nil, &failure{http.StatusUnauthorized, "Your session is over", "Nothing was done. Log in again, look at the operation again, and decide then."})
			return
		case !equal(r.PostForm.Get("csrf"), s.csrf()):
			c.fail(w, r, s, &failure{http.StatusForbidden, "This form is not from your session", "Nothing was done. Open the page again and decide there."})
			return
		case s.person.Role < role:
			c.fail(w, r, s, &failure{http.StatusForbidden, "Your role does not allow this", "Nothing was done. This takes the role " + role.String() + "; yours is " + s.person.Role.String() + "."})
			return
		}
		if err := h(w, r, s); err != nil {
			c.fail(w, r, s, err)
		}
	})
}

// form lets through what a form of the console's own pages sends, and no other site's.
func (c *Console) form(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := c.origin.Check(r); err != nil {
			c.fail(w, r, nil, &failure{http.StatusForbidden, "This form is from another site", "Nothing was done. Open the console itself and decide there."})
			return
		}
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
			c.fail(w, r, nil, &failure{http.StatusUnsupportedMediaType, "This is not a form of the console", "Nothing was done."})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			status := http.StatusBadRequest
			if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
				status = http.StatusRequestEntityTooLarge
			}
			c.fail(w, r, nil, &failure{status, "This form can't be read", "Nothing was done. It may be too long, or broken on the way."})
			return
		}
		h(w, r)
	}
}

// fail shows why there is no page. s is nil for who has not logged in.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, s *session, err error) {
	f, ok := errors.AsType[*failure](err)
	if refusal, refused := errors.AsType[*ledger.Refusal](err); !ok && refused {
		ok = true
		switch refusal.Code {
		case ledger.NotFound:
			f = &failure{http.StatusNotFound, "There is no such operation", "It may be mistyped, or belong to another ledger."}
		default:
			c.o.Log.Warn("the console can't reach the ledger", "code", refusal.Code, "cause", refusal.Cause)
			f = &failure{http.StatusServiceUnavailable, "The ledger can't be reached", "Try again in a moment. If you were deciding, look at the operation first: it shows whether your decision arrived."}
		}
	}
	if !ok {
		c.o.Log.Error("the console failed", "method", r.Method, "error", err)
		f = &failure{http.StatusInternalServerError, "Something went wrong here", "The server's log says what. If you were deciding, look at the operation first: it shows whether your decision arrived."}
	}
	c.render(w, r, s, f.status, "failure", view{Title: f.title, Data: f.text})
}

func redirect(w http.ResponseWriter, r *http.Request, to string) {
	http.Redirect(w, r, to, http.StatusSeeOther)
}
