package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strings"

	"github.com/onceward/onceward/providers"
)

// A header is one that is always sent.
type header struct {
	name   string
	prefix string
	plain  string
	secret providers.Credential
}

func (h header) value() string { return h.prefix + h.plain + h.secret.Reveal() }

// ours are the headers that a configuration can't set.
var ours = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Date", "Expect", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func readHeaders(configured map[string]Header) ([]header, error) {
	var headers []header
	seen := map[string]bool{}
	for _, written := range slices.Sorted(maps.Keys(configured)) {
		c := configured[written]
		name, err := headerName(written)
		if err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
		if seen[name] {
			return nil, fmt.Errorf("headers: %s is given twice: letter case doesn't count", name)
		}
		seen[name] = true
		h := header{name: name, prefix: c.Prefix, plain: c.Value}
		switch {
		case c.Value != "" && (c.Env != "" || c.File != ""):
			return nil, fmt.Errorf("headers: %s: keep one of value, env and file", name)
		case c.Value != "" && secretive(name):
			return nil, fmt.Errorf("headers: %s: a secret doesn't stand in the configuration: name an environment variable with env, or a file with file", name)
		case c.Value == "" && c.Env == "" && c.File == "":
			return nil, fmt.Errorf("headers: %s has no value: write value, env or file", name)
		case c.Value == "":
			if h.secret, err = readSecret(name, c); err != nil {
				return nil, err
			}
		}
		if !sendable(h.value()) {
			return nil, fmt.Errorf("headers: the value of %s can't be sent: it has a control character or a space at an end", name)
		}
		headers = append(headers, h)
	}
	return headers, nil
}

func readSecret(name string, c Header) (providers.Credential, error) {
	switch {
	case c.Env != "" && c.File != "":
		return providers.Credential{}, fmt.Errorf("headers: %s: keep one of value, env and file", name)
	case c.Env != "" && os.Getenv(c.Env) == "":
		return providers.Credential{}, fmt.Errorf("headers: %s: env names the environment variable %s, and that is empty", name, c.Env)
	}
	secret, err := providers.ReadCredential("file", c.Env, c.File)
	if err != nil {
		return providers.Credential{}, fmt.Errorf("headers: %s: file: %w", name, errors.Unwrap(err))
	}
	return secret, nil
}

// headerName checks a name and writes it as it is usual.
func headerName(s string) (string, error) {
	name := textproto.CanonicalMIMEHeaderKey(s)
	if s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) {
		return "", fmt.Errorf("%q is no header: a name has letters, digits, - and _", s)
	}
	if slices.Contains(ours, name) {
		return "", fmt.Errorf("%s is set by Onceward itself: leave it out", name)
	}
	return name, nil
}

// secretive reports whether a header of that name usually carries a secret.
func secretive(name string) bool {
	small := strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "cookie", "key", "token", "secret", "password", "signature"}, func(word string) bool {
		return strings.Contains(small, word)
	})
}

func sendable(value string) bool {
	return value == strings.TrimSpace(value) && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// header are the headers of every request.
func (p *Provider) header() http.Header {
	all := http.Header{"Accept": {"application/json"}}
	for _, h := range p.headers {
		all.Set(h.name, h.value())
	}
	return all
}
