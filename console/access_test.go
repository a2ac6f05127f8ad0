package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Whoever has not logged in sees nothing, whatever else they carry.
func TestStrangersSeeNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op := d.planned("notice")
	v := d.visitor()
	for _, path := range []string{"/console", "/console/", "/console/operations", "/console/operations?name=" + op.ID, of(op, ""), "/console/limits", "/console/outcomes", "/console/nothing"} {
		for name, header := range map[string][2]string{
			"nothing":        {},
			"bearer token":   {"Authorization", "Bearer " + d.owc["anna"]},
			"made-up cookie": {"Cookie", "onceward_console=" + random()},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if header[0] != "" {
				r.Header.Set(header[0], header[1])
			}
			page := v.do(r)
			if !strings.Contains(page, `name="credential"`) || strings.Contains(page, "case-1842") || strings.Contains(page, "Waits for approval") {
				t.Errorf("%s with %s: got %d and\n%s", path, name, v.status, page)
			}
		}
	}
	for _, d := range decisions {
		v.post(of(op, d.path), "moves", "1", "fingerprint", op.Fingerprint.String())
		v.wants(http.StatusUnauthorized, "Nothing was done")
	}
	v.post(of(op, "arguments"))
	v.wants(http.StatusUnauthorized, "Nothing was done")
	d.unchanged(op)
}

func TestRoles(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	planned, open := d.planned("notice"), d.inReview("lost")
	final := d.call(loosely("loose", theArguments))
	for name, may := range map[string]map[string]bool{
		"vera": {},
		"otto": {"resolve": true},
		"anna": {"resolve": true, "arguments": true, "deny": true, "repeat": true},
	} {
		v := d.as(name)
		for path, op := range map[string]string{"deny": planned.ID, "resolve": open.ID, "repeat": final.ID, "arguments": planned.ID} {
			address := "/console/operations/" + op
			v.get(address)
			if has := v.form(address+"/"+path) != nil; has != may[path] {
				t.Errorf("%s has the form %s: %v, want %v", name, path, has, may[path])
			}
			// A form that wasn't shown can still be sent.
			v.post(address+"/"+path, "csrf", sessionOf(d, name).csrf(), "moves", "x")
			if refused := v.status == http.StatusForbidden; refused == may[path] {
				t.Errorf("%s sends %s: %d", name, path, v.status)
			}
		}
		v.post(of(planned, "approve"), "csrf", sessionOf(d, name).csrf(), "moves", "x")
		if refused := v.status == http.StatusForbidden; refused != (name != "anna") {
			t.Errorf("%s sends approve: %d", name, v.status)
		}
	}
	d.unchanged(planned)
	d.unchanged(open)
}

func sessionOf(d *desk, name string) *session {
	d.console.sessions.mu.Lock()
	defer d.console.sessions.mu.Unlock()
	for _, s := range d.console.sessions.open {
		if s.person.Name == name {
			return s
		}
	}
	d.Fatalf("%s has no session", name)
	return nil
}

// A form counts only from a page of the same session on the same site.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op := d.planned("notice")
	anna, ada := d.as("anna"), d.as("ada")
	ada.get(of(op, ""))
	foreign := ada.form(of(op, "deny"))
	anna.get(of(op, ""))
	good := anna.form(of(op, "deny"))
	if good == nil || foreign == nil || good.Get("csrf") == foreign.Get("csrf") {
		t.Fatal("two sessions share what their forms carry")
	}
	without := url.Values{"moves": good["moves"], "fingerprint": good["fingerprint"]}
	for name, c := range map[string]struct {
		form   url.Values
		header map[string]string
		want   int
	}{
		"no token":           {without, nil, http.StatusForbidden},
		"another's token":    {foreign, nil, http.StatusForbidden},
		"another origin":     {good, map[string]string{"Origin": "https://evil.example.com"}, http.StatusForbidden},
		"the null origin":    {good, map[string]string{"Origin": "null"}, http.StatusForbidden},
		"a cross-site fetch": {good, map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": ""}, http.StatusForbidden},
		"a same-site fetch":  {good, map[string]string{"Sec-Fetch-Site": "same-site", "Origin": ""}, http.StatusForbidden},
		"as JSON":            {good, map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
		"multipart":          {good, map[string]string{"Content-Type": "multipart/form-data; boundary=x"}, http.StatusUnsupportedMediaType},
		"too long":           {url.Values{"reason": {strings.Repeat("x", maxForm)}}, nil, http.StatusRequestEntityTooLarge},
		"broken":             {nil, map[string]string{"broken": "%zz"}, http.StatusBadRequest},
	} {
		body := c.form.Encode()
		if c.header["broken"] != "" {
			body = c.header["broken"]
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.server.URL+of(op, "deny"), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", d.server.URL)
		for key, value := range c.header {
			if r.Header.Set(key, value); value == "" {
				r.Header.Del(key)
			}
		}
		if anna.do(r); anna.status != c.want {
			t.Errorf("%s: got %d, want %d", name, anna.status, c.want)
		}
		d.unchanged(op)
	}
	// In an address, a token is worth nothing.
	anna.send(of(op, "deny")+"?"+good.Encode(), url.Values{})
	anna.wants(http.StatusForbidden, "not from your session")
	d.unchanged(op)
	// And the same form is good where it belongs.
	anna.send(of(op, "deny"), good)
	anna.wants(http.StatusOK, "You denied it")
}

func TestMethods(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op := d.planned("notice")
	v := d.as("anna")
	for _, path := range []string{"approve", "deny", "resolve", "repeat", "arguments"} {
		v.get(of(op, path))
		if v.status == http.StatusOK {
			t.Errorf("GET %s: %d", path, v.status)
		}
	}
	for _, path := range []string{"/console/", "/console/operations", of(op, ""), "/console/limits"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, d.server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.do(r); v.status == http.StatusOK {
			t.Errorf("DELETE %s: %d", path, v.status)
		}
	}
	d.unchanged(op)
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op := d.planned("notice")
	v := d.as("anna")
	check := func(path string) {
		t.Helper()
		got := map[string]string{}
		want := map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		}
		for name := range want {
			got[name] = v.header.Get(name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		for _, inline := range []string{"<script", "<style", " style=", " onclick=", "javascript:"} {
			if strings.Contains(v.page, inline) {
				t.Errorf("%s has %q, which its own policy forbids", path, inline)
			}
		}
	}
	for _, path := range []string{"/console/", "/console/operations", of(op, ""), "/console/limits", "/console/outcomes", "/console/nothing", "/console/enter"} {
		v.get(path)
		check(path)
	}
	v.get(of(op, ""))
	v.submit(op, "arguments")
	check("arguments")
	d.visitor().get("/console/login")
	check("login")

	v.get("/console/style.css?v=" + styleVersion)
	if got := v.header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" || v.header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("the style sheet: %q, %q", got, v.header.Get("Content-Type"))
	}
	v.get("/console/style.css?v=other")
	if got := v.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("another version of the style sheet may be kept: %q", got)
	}
}

func TestCookie(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		d := newDesk(t, func(o *Options) { o.Secure = secure })
		v := d.visitor()
		v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		v.post("/console/login", "credential", d.owc["anna"])
		cookie, err := http.ParseSetCookie(v.header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err)
		}
		if len(cookie.Value) != 43 {
			t.Errorf("the session's id has %d characters, want 43 for 256 bits", len(cookie.Value))
		}
		want := &http.Cookie{Name: "onceward_console", Path: "/console", MaxAge: 8 * 3600, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure}
		if secure {
			want.Name = "__Secure-onceward_console"
		}
		cookie.Value, cookie.Raw = "", ""
		if diff := cmp.Diff(want, cookie); diff != "" {
			t.Errorf("secure %v (-want +got):\n%s", secure, diff)
		}
		if location := v.header.Get("Location"); location != "/console/" || v.status != http.StatusSeeOther {
			t.Errorf("after the log-in: %d to %q", v.status, location)
		}
	}
}

// A session's id is the server's: one that the browser brings is never taken over, and is
// worth nothing after a log-out.
func TestSessionsAreFresh(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	v := d.as("vera")
	cookies := func() string {
		u, err := url.Parse(d.server.URL + "/console/")
		if err != nil {
			t.Fatal(err)
		}
		return v.client.Jar.Cookies(u)[0].Value
	}
	first := cookies()
	v.post("/console/login", "credential", d.owc["anna"])
	if cookies() == first {
		t.Fatal("a second log-in kept the session's id")
	}
	second := cookies()
	v.post("/console/logout")
	for _, old := range []string{first, second} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.server.URL+"/console/operations", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", "onceward_console="+old)
		if page := d.visitor().do(r); !strings.Contains(page, `name="credential"`) {
			t.Error("a session that was left still opens the console")
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps []time.Duration
		in    bool
	}{
		"in use":              {[]time.Duration{29 * time.Minute, 29 * time.Minute, 29 * time.Minute}, true},
		"idle":                {[]time.Duration{30 * time.Minute}, false},
		"a whole working day": {slices16(29 * time.Minute), true},
		"eight hours":         {append(slices16(29*time.Minute), 17*time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			op := d.planned("notice")
			v := d.as("anna")
			v.get(of(op, ""))
			form := v.form(of(op, "deny"))
			for _, step := range c.steps {
				d.pass(step)
				v.get("/console/")
			}
			if in := strings.Contains(v.page, "What needs me now"); in != c.in {
				t.Fatalf("logged in: %v, want %v", in, c.in)
			}
			if !c.in {
				v.send(of(op, "deny"), form)
				v.wants(http.StatusUnauthorized, "Your session is over")
				d.unchanged(op)
			}
		})
	}
}

func slices16(d time.Duration) []time.Duration {
	steps := make([]time.Duration, 16)
	for i := range steps {
		steps[i] = d
	}
	return steps
}

func TestLogIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	v := d.visitor()
	for _, wrong := range []string{"", "hunter2", d.owc["anna"][4:], "owc_" + random()} {
		v.post("/console/login", "credential", wrong)
		v.wants(http.StatusUnauthorized, "not known here")
	}
	// It comes in the form's body only.
	v.post("/console/login?credential=" + d.owc["anna"])
	v.wants(http.StatusUnauthorized, "not known here")
	v.post("/console/login", "credential", d.owc["anna"])
	v.wants(http.StatusTooManyRequests, "Try again in 10 seconds")
	if v.header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After is %q", v.header.Get("Retry-After"))
	}
	d.pass(10 * time.Second)
	v.post("/console/login", "credential", d.owc["anna"])
	v.wants(http.StatusOK, "What needs me now")
	if log := d.logged(); strings.Contains(log, "hunter2") || strings.Contains(log, "owc_") || strings.Contains(log, "127.0.0.1") {
		t.Errorf("the log shows what it must not:\n%s", log)
	}
}

func (d *desk) logged() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.String()
}

// After the log-in a link goes on to its operation, and nowhere else.
func TestLogInLeadsOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	op := d.planned("notice")
	v := d.visitor()
	v.get(of(op, ""))
	v.wants(http.StatusUnauthorized, `name="next" value="`+of(op, "")+`"`)
	v.post("/console/login", "credential", d.owc["anna"], "next", of(op, ""))
	v.wants(http.StatusOK, op.ID)
	for _, next := range []string{"https://evil.example.com", "//evil.example.com/console/operations/x", "/console/operations/../../mcp", "/console/operations/x?y", "/mcp", "/console/operations/x\r\nSet-Cookie: a=b"} {
		v.post("/console/login", "credential", d.owc["anna"], "next", next)
		v.wants(http.StatusOK, "What needs me now")
	}
}

func TestTicket(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	ticket := d.console.Ticket(Person{"carl", Approver})
	v := d.visitor()
	for range 2 { // looking at the link spends nothing
		v.get("/console/enter?ticket=" + url.QueryEscape(ticket))
		v.wants(http.StatusOK, "Open the console")
	}
	form := v.form("/console/enter")
	v.send("/console/enter", form)
	v.wants(http.StatusOK, "<b>carl</b>")
	again := d.visitor()
	again.send("/console/enter", form)
	again.wants(http.StatusUnauthorized, "This link is used up")

	late := d.console.Ticket(Person{"carl", Approver})
	d.pass(ticketAge)
	again.post("/console/enter", "ticket", late)
	again.wants(http.StatusUnauthorized, "This link is used up")
	again.post("/console/enter", "ticket", "")
	again.wants(http.StatusUnauthorized, "This link is used up")
}

func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	v := d.as("anna")
	for i := range maxSessions {
		d.pass(time.Millisecond)
		if i%100 == 0 {
			v.get("/console/limits") // in use, so it is not the one that gives way
		}
		d.console.sessions.begin(discard{}, Person{"vera", Viewer})
	}
	if n := len(d.console.sessions.open); n != maxSessions {
		t.Errorf("%d sessions are kept, want %d", n, maxSessions)
	}
	v.get("/console/")
	v.wants(http.StatusOK, "What needs me now")
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
