package console

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// A Role says what a person may do. Each one may also do what the ones before it may.
type Role int

const (
	// Nobody may do nothing. It is the zero value, so that a forgotten role opens no door.
	Nobody Role = iota
	// Viewer sees operations, limits and alarms.
	Viewer
	// Operator also settles reviews.
	Operator
	// Approver also approves, denies, allows a repeat, and sees what will be sent.
	Approver
)

var roleNames = map[Role]string{Viewer: "viewer", Operator: "operator", Approver: "approver"}

// String is the word for r in an approvers file.
func (r Role) String() string {
	if name, ok := roleNames[r]; ok {
		return name
	}
	return "nobody"
}

func parseRole(word string) (Role, bool) {
	for role, name := range roleNames {
		if word == name {
			return role, true
		}
	}
	return Nobody, false
}

// A Person is somebody who may use the console. The name goes into the history of what
// they decide about.
type Person struct {
	Name string
	Role Role
}

// Approvers knows people by the SHA-256 of their credentials. A nil Approvers knows
// nobody.
type Approvers struct{ entries []approverEntry }

type approverEntry struct {
	person Person
	hash   [sha256.Size]byte
}

// credentialPrefix tells a credential of the console from an agent's bearer token at sight.
const credentialPrefix = "owc_"

var (
	personName     = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	credentialForm = regexp.MustCompile(`^` + credentialPrefix + `[A-Za-z0-9_-]{43}$`)
)

// NewCredential makes a credential of 256 random bits, and the SHA-256 that stands for it
// in an approvers file. The credential itself is shown once and kept nowhere.
func NewCredential() (credential, sha256hex string) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails (crypto/rand, Go 1.24)
	credential = credentialPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(credential))
	return credential, hex.EncodeToString(sum[:])
}

// ReadApprovers reads an approvers file: one `role name sha256-hex-of-credential` a line,
// the role viewer, operator or approver; # begins a comment. A file that others than its
// owner may write is refused: they could make themselves approvers. Errors name the
// file and the line, never a hash.
func ReadApprovers(path string) (*Approvers, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("approvers file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("approvers file: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("approvers file %s: its group or everyone may write it (mode %#o); run chmod go-w on it", path, info.Mode().Perm())
	}
	return parseApprovers(path, f)
}

// parseApprovers reads what [ReadApprovers] describes; name is the file's, for errors.
func parseApprovers(name string, r io.Reader) (*Approvers, error) {
	a := &Approvers{}
	names, hashes := map[string]int{}, map[[sha256.Size]byte]int{}
	lines := bufio.NewScanner(r)
	line := 0
	for lines.Scan() {
		line++
		text, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		e, problem := parseApprover(strings.Fields(text))
		if first, ok := names[e.person.Name]; ok && problem == "" {
			problem = fmt.Sprintf("the name of line %d again; one line for each person", first)
		}
		if first, ok := hashes[e.hash]; ok && problem == "" {
			problem = fmt.Sprintf("the credential of line %d again; every person needs their own", first)
		}
		if problem != "" {
			return nil, fmt.Errorf("approvers file %s, line %d: %s", name, line, problem)
		}
		names[e.person.Name], hashes[e.hash] = line, line
		a.entries = append(a.entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("approvers file %s, line %d: %w", name, line+1, err)
	}
	if len(a.entries) == 0 {
		return nil, fmt.Errorf("approvers file %s: it names nobody; write lines of `role name sha256-hex-of-credential`", name)
	}
	return a, nil
}

// parseApprover reads one line's words. problem is "" or says what is wrong with them.
func parseApprover(words []string) (e approverEntry, problem string) {
	if len(words) != 3 {
		return e, "want three words: the role, the name, and the SHA-256 of the credential in hex"
	}
	role, ok := parseRole(words[0])
	if !ok {
		return e, "the role is viewer, operator or approver"
	}
	if !personName.MatchString(words[1]) {
		return e, "the name must be 1 to 64 of A-Z a-z 0-9 . _ -"
	}
	hash, err := hex.DecodeString(words[2])
	if err != nil || len(hash) != sha256.Size {
		return e, "the third word must be a SHA-256 in hex, 64 digits; never the credential itself"
	}
	return approverEntry{Person{words[1], role}, [sha256.Size]byte(hash)}, ""
}

// Who returns whose credential it is. It compares with every hash, so that how long it
// takes tells nothing. Only what has the form of [NewCredential]'s is one: a hash of less
// than 256 random bits could be guessed from the file, and an agent's token is no login.
func (a *Approvers) Who(credential string) (Person, bool) {
	if a == nil || !credentialForm.MatchString(credential) {
		return Person{}, false
	}
	sum := sha256.Sum256([]byte(credential))
	found := -1
	for i := range a.entries {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], a.entries[i].hash[:]), i, found)
	}
	if found < 0 {
		return Person{}, false
	}
	return a.entries[found].person, true
}
