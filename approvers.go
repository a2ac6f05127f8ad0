package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/onceward/onceward/console"
	"github.com/onceward/onceward/ledger"
)

// credentialVariable may hold an approver's credential: a person's own, in their own
// environment. A server that finds it in its environment refuses to start.
const credentialVariable = "ONCEWARD_CREDENTIAL"

// approverFlags say who may decide.
type approverFlags struct {
	Approvers string `env:"ONCEWARD_APPROVERS" placeholder:"FILE" help:"Who may decide: lines of a role, a name and a credential's SHA-256. Default: approvers in the data directory."`
}

// path is the approvers file.
func (f approverFlags) path(dir string) string {
	if f.Approvers != "" {
		return f.Approvers
	}
	return filepath.Join(dir, "approvers")
}

// read reads the approvers file; nil where there is none and none was named.
func (f approverFlags) read(dir string) (*console.Approvers, error) {
	approvers, err := console.ReadApprovers(f.path(dir))
	if errors.Is(err, os.ErrNotExist) && f.Approvers == "" {
		return nil, nil
	}
	return approvers, err
}

// byFlags say who decides. Where there are approvers, their credential says so; it stands in
// neither the agent's nor the server's environment, or an agent with a shell could approve
// itself.
type byFlags struct {
	approverFlags
	By             string `placeholder:"WHO" help:"Who decides. With a credential, its name is used."`
	CredentialFile string `env:"ONCEWARD_CREDENTIAL_FILE" placeholder:"FILE" help:"Your credential's file; - reads it from the standard input. Or the variable ONCEWARD_CREDENTIAL."`
}

// errCredential is a decision without the right to make it.
var errCredential = fmt.Errorf("%w: only an approver decides this", errRefused)

// who is the person who decides, who needs at least a role. where the policy asked for
// an approver (demanded), there has to be one; else a ledger without approvers takes the
// word of whoever can open it.
func (f byFlags) who(dir string, in io.Reader, reason string, least console.Role, demanded bool) (ledger.Person, error) {
	approvers, err := f.read(dir)
	if err != nil {
		return ledger.Person{}, err
	}
	if approvers == nil {
		switch {
		case demanded:
			return ledger.Person{}, fmt.Errorf("%w, and there is none yet: make one with onceward approvers add NAME, where the agent can't reach it", errCredential)
		case f.By == "":
			return ledger.Person{}, errors.New("--by says who decides")
		}
		return ledger.Person{By: f.By, Reason: reason}, nil
	}
	credential, err := f.credential(in)
	if err != nil {
		return ledger.Person{}, err
	}
	person, ok := approvers.Who(credential)
	switch {
	case !ok:
		return ledger.Person{}, fmt.Errorf("%w: the credential isn't one of %s", errCredential, f.path(dir))
	case person.Role < least:
		return ledger.Person{}, fmt.Errorf("%w: %s is a %s, and this takes a %s", errCredential, person.Name, person.Role, least)
	case f.By != "" && f.By != person.Name:
		return ledger.Person{}, fmt.Errorf("%w: the credential is %s's, not %s's", errCredential, person.Name, f.By)
	}
	return ledger.Person{By: person.Name, Reason: reason}, nil
}

func (f byFlags) credential(in io.Reader) (string, error) {
	switch {
	case f.CredentialFile == "-":
		text, err := io.ReadAll(io.LimitReader(in, 4096))
		return strings.TrimSpace(string(text)), err
	case f.CredentialFile != "":
		text, err := os.ReadFile(f.CredentialFile)
		return strings.TrimSpace(string(text)), err
	case os.Getenv(credentialVariable) != "":
		return os.Getenv(credentialVariable), nil
	}
	return "", fmt.Errorf("%w: give your credential with --credential-file, or in %s", errCredential, credentialVariable)
}

type approversCommand struct {
	Add  approversAddCommand  `cmd:"" help:"Make a credential for a person. It is shown once."`
	List approversListCommand `cmd:"" help:"List who may decide."`
}

type approversAddCommand struct {
	dataFlags
	approverFlags
	Name string `arg:"" help:"The person's name, as it will stand in the history."`
	Role string `enum:"viewer,operator,approver" default:"approver" help:"What they may do: ${enum}. An operator also settles reviews; an approver does all."`
}

// Run adds a line to the file. The credential goes to the standard output alone, and is kept
// nowhere.
func (c approversAddCommand) Run(s streams) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	path := c.path(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	credential, hash := console.NewCredential()
	if err := console.AddApprover(path, c.Role, c.Name, hash); err != nil {
		return err
	}
	fmt.Fprintln(s.err, "Give this to "+c.Name+", and to nobody else. It is shown once. Keep it away from the agent and from the server's environment:")
	fmt.Fprintln(s.out, credential)
	return nil
}

type approversListCommand struct {
	dataFlags
	approverFlags
}

func (c approversListCommand) Run(s streams) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	approvers, err := c.read(dir)
	if err != nil {
		return err
	}
	for _, person := range approvers.People() {
		fmt.Fprintf(s.out, "%-10s %s\n", person.Role, person.Name)
	}
	return nil
}
