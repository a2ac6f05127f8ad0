package transport

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// A hostList is the names under which the server answers, in lower case:
// "name" with any port, "name:port" with that one. Loopback names always are.
// Without it, a web page whose own name is made to resolve to 127.0.0.1 is of
// the same origin as this server for a browser.
type hostList map[string]bool

func newHostList(names []string) hostList {
	l := make(hostList, len(names))
	for _, name := range names {
		l[bareHost(strings.ToLower(strings.TrimSpace(name)))] = true
	}
	return l
}

func (l hostList) allow(host string) bool {
	host = bareHost(strings.ToLower(host))
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return isLoopback(name) || l[host] || l[name]
}

// bareHost takes the brackets off an IPv6 address without a port.
func bareHost(host string) string {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host[1 : len(host)-1]
	}
	return host
}

// An originList is the origins, scheme://host[:port] in lower case, whose web
// pages may use the server.
type originList map[string]bool

func newOriginList(origins []string) originList {
	l := make(originList, len(origins))
	for _, origin := range origins {
		l[strings.ToLower(strings.TrimSpace(origin))] = true
	}
	return l
}

// allow takes all the Origin headers of a request. Programs send none; every
// browser sends one with what isn't a plain GET, "null" from a sandboxed page
// or a file, and that could be anyone.
func (l originList) allow(headers []string) bool {
	for _, origin := range headers {
		if origin == "null" || !l[strings.ToLower(origin)] {
			return false
		}
	}
	return true
}

// CheckOrigins refuses what no browser would ever send as its origin, and so
// would never be let in.
func CheckOrigins(origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return fmt.Errorf("allowed origin %q: want scheme://host or scheme://host:port, such as https://app.example.com; there is no wildcard", origin)
		}
	}
	return nil
}

// corsHeaders are those that a client of any revision may send.
const corsHeaders = "Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, " +
	"Onceward-Operation, Onceward-Workflow-Id, Onceward-Run-Id"

// allowOrigin lets the page of an allowed origin read the answer. It reports
// true when r only asked for leave, which comes without a token, and is answered.
func allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", headerSession+", WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	w.WriteHeader(http.StatusNoContent)
	return true
}
