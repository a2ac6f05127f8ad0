package console

import (
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// comeBack is where a log-in may lead on to: an operation, and nowhere else.
var comeBack = regexp.MustCompile(`^/console/operations/[A-Za-z0-9_:-]{1,80}$`)

// A loginForm is what the page for logging in shows.
type loginForm struct {
	Next    string
	Problem string
	// Linked is set where a link on another site led here: browsers keep the cookie back
	// then, so the visitor may well be logged in.
	Linked bool
}

func (c *Console) askToLogIn(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !comeBack.MatchString(r.URL.Path) {
		redirect(w, r, "/console/login")
		return
	}
	c.showLoginForm(w, r, http.StatusUnauthorized, loginForm{Next: r.URL.Path, Linked: r.Header.Get("Sec-Fetch-Site") == "cross-site"})
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	if c.sessions.of(r) != nil {
		redirect(w, r, "/console/")
		return
	}
	c.showLoginForm(w, r, http.StatusOK, loginForm{})
}

func (c *Console) showLoginForm(w http.ResponseWriter, r *http.Request, status int, form loginForm) {
	c.render(w, r, nil, status, "login", view{Title: "Log in", Data: form})
}

func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	form := loginForm{Next: r.PostForm.Get("next")}
	if !comeBack.MatchString(form.Next) {
		form.Next = ""
	}
	if wait := c.throttle.wait(r.RemoteAddr); wait > 0 {
		seconds := int((wait + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		form.Problem = "Too many log-ins failed from your address. Try again in " + strconv.Itoa(seconds) + " seconds."
		c.showLoginForm(w, r, http.StatusTooManyRequests, form)
		return
	}
	person, ok := c.o.Approvers.Who(r.PostForm.Get("credential"))
	if !ok {
		c.throttle.failed(r.RemoteAddr)
		c.o.Log.Warn("a log-in to the console failed")
		form.Problem = "This credential is not known here. An agent's bearer token is none."
		c.showLoginForm(w, r, http.StatusUnauthorized, form)
		return
	}
	c.welcome(w, r, person, "credential")
	if form.Next == "" {
		form.Next = "/console/"
	}
	redirect(w, r, form.Next)
}

func (c *Console) welcome(w http.ResponseWriter, r *http.Request, p Person, by string) {
	c.sessions.drop(r)
	c.sessions.begin(w, p)
	c.o.Log.Info("somebody logged in to the console", "by", p.Name, "role", p.Role.String(), "with", by)
}

// showEnter spends nothing: a browser, or a program that looks at links, may fetch an address
// before its reader does.
func (c *Console) showEnter(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, nil, http.StatusOK, "enter", view{Title: "Open the console", Data: r.URL.Query().Get("ticket")})
}

func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	person, ok := c.tickets.spend(r.PostForm.Get("ticket"))
	if !ok {
		c.fail(w, r, nil, &failure{http.StatusUnauthorized, "This link is used up", "It is good once, and for two minutes. Ask for a new one where you got it, or log in."})
		return
	}
	c.welcome(w, r, person, "ticket")
	redirect(w, r, "/console/")
}

// logout needs no token: whoever could forge it could only log somebody out, and other sites
// were turned away before.
func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	c.sessions.end(w, r)
	redirect(w, r, "/console/login")
}
