package transport

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/onceward/onceward/tools"
)

// Tokens knows the bearer tokens by their SHA-256 and the tenant of each. A nil
// Tokens knows none.
type Tokens struct {
	entries []tokenEntry
	heirs   string
	equal   func(a, b []byte) int // subtle.ConstantTimeCompare
}

type tokenEntry struct {
	hash   [sha256.Size]byte
	tenant string
}

// Hashes are the tokens' SHA-256, in hexadecimal.
func (t *Tokens) Hashes() []string {
	if t == nil {
		return nil
	}
	hashes := make([]string, len(t.entries))
	for i, e := range t.entries {
		hashes[i] = hex.EncodeToString(e.hash[:])
	}
	return hashes
}

var tenantName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// ReadTokens reads a tokens file: one `tenant sha256-hex-of-token` a line, a *
// before one tenant marks the heir, # begins a comment. A tenant may have
// several tokens. A file that others than its owner may write is refused: they
// could give themselves a tenant. Reading it is harmless, it holds no token.
// Errors name the file and the line, never a hash.
func ReadTokens(path string) (*Tokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokens file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("tokens file: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("tokens file %s: its group or everyone may write it (mode %#o); run chmod go-w on it", path, info.Mode().Perm())
	}
	return parseTokens(path, f)
}

// parseTokens reads what [ReadTokens] describes; name is the file's, for errors.
func parseTokens(name string, r io.Reader) (*Tokens, error) {
	t := &Tokens{equal: subtle.ConstantTimeCompare}
	seen := make(map[[sha256.Size]byte]int)
	lines := bufio.NewScanner(r)
	line := 0
	for lines.Scan() {
		line++
		text, _, _ := strings.Cut(lines.Text(), "#")
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		e, heir, problem := parseToken(text)
		if problem != "" {
			return nil, fmt.Errorf("tokens file %s, line %d: %s", name, line, problem)
		}
		if first, ok := seen[e.hash]; ok {
			return nil, fmt.Errorf("tokens file %s, line %d: the token of line %d again; every line needs a token of its own", name, line, first)
		}
		seen[e.hash] = line
		if heir && t.heirs != "" && t.heirs != e.tenant {
			return nil, fmt.Errorf("tokens file %s, line %d: a second heir; only one tenant may be marked with *", name, line)
		}
		if heir {
			t.heirs = e.tenant
		}
		t.entries = append(t.entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("tokens file %s, line %d: %w", name, line+1, err)
	}
	if len(t.entries) == 0 {
		return nil, fmt.Errorf("tokens file %s: it holds no token; write lines of `tenant sha256-hex-of-token`", name)
	}
	return t, nil
}

// parseToken reads one line. problem is "" or says what is wrong with it.
func parseToken(text string) (e tokenEntry, heir bool, problem string) {
	text, heir = strings.CutPrefix(text, "*")
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return e, heir, "want two words, the tenant and the SHA-256 of its token in hex"
	}
	if !tenantName.MatchString(fields[0]) {
		return e, heir, "the tenant's name must be 1 to 64 of A-Z a-z 0-9 . _ -"
	}
	hash, err := hex.DecodeString(fields[1])
	if err != nil || len(hash) != sha256.Size {
		return e, heir, "the second word must be a SHA-256 in hex, 64 digits; never the token itself"
	}
	e.tenant = fields[0]
	copy(e.hash[:], hash)
	if e.hash == sha256.Sum256(nil) || e.hash == sha256.Sum256([]byte("\n")) {
		return e, heir, "this is the hash of an empty token"
	}
	return e, heir, ""
}

// tenant returns whose token bearer is. It compares with every hash, so that
// how long it takes tells nothing. The heir has no tenant in its caller: its
// operations are those made before there were tenants.
func (t *Tokens) tenant(bearer string) (tools.Caller, bool) {
	if t == nil || bearer == "" {
		return tools.Caller{}, false
	}
	sum := sha256.Sum256([]byte(bearer))
	found := -1
	for i := range t.entries {
		found = subtle.ConstantTimeSelect(t.equal(sum[:], t.entries[i].hash[:]), i, found)
	}
	if found < 0 {
		return tools.Caller{}, false
	}
	tenant := t.entries[found].tenant
	if tenant == t.heirs {
		return tools.Caller{}, true
	}
	return tools.Caller{Tenant: tenant}, true
}

// heir is the tenant marked with *, or "".
func (t *Tokens) Heir() string {
	if t == nil {
		return ""
	}
	return t.heirs
}

// count is the number of tokens.
func (t *Tokens) count() int {
	if t == nil {
		return 0
	}
	return len(t.entries)
}

// RequireAuth refuses an address that others than this machine may reach when
// there are no tokens.
func RequireAuth(addr string, t *Tokens) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("the address must be HOST:PORT, such as 127.0.0.1:8931: %w", err)
	}
	if t.count() > 0 || isLoopback(host) {
		return nil
	}
	return fmt.Errorf("%s can be reached from other machines, and without tokens everyone there could send mail and move money: give a tokens file (--tokens FILE or ONCEWARD_TOKENS), or listen on 127.0.0.1", addr)
}

// OnLoopback reports whether an address, HOST:PORT, can be reached from this machine only.
func OnLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLoopback(host)
}

// isLoopback reports whether host, without a port, is this machine's name for
// itself.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}
