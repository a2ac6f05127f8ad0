package providers

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// A Credential is a secret that a provider wants to see. It never shows itself in a
// log or an error.
type Credential struct {
	text *string // a pointer, so that not even %+v of what holds a Credential shows it
}

// ReadCredential takes a credential from the environment variable or the file that a
// configuration names, exactly one of them. name is the setting's, for the error.
func ReadCredential(name, variable, file string) (Credential, error) {
	switch {
	case variable == "" && file == "":
		return Credential{}, fmt.Errorf("%s is missing: name an environment variable with %s_env, or a file with %s_file", name, name, name)
	case variable != "" && file != "":
		return Credential{}, fmt.Errorf("%s is given twice: keep %s_env or %s_file", name, name, name)
	case variable != "":
		text := os.Getenv(variable)
		if text == "" {
			return Credential{}, fmt.Errorf("%s_env names the environment variable %s, and that is empty", name, variable)
		}
		return NewCredential(text), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return Credential{}, fmt.Errorf("%s_file: %w", name, err)
	}
	text := strings.TrimRight(string(b), "\r\n")
	if text == "" {
		return Credential{}, fmt.Errorf("%s_file: %w", name, errors.New("the file is empty"))
	}
	return NewCredential(text), nil
}

// NewCredential is for tests.
func NewCredential(text string) Credential { return Credential{&text} }

// Reveal is the secret itself, for the one place that sends it.
func (c Credential) Reveal() string {
	if c.text == nil {
		return ""
	}
	return *c.text
}

// IsZero reports whether there is none.
func (c Credential) IsZero() bool { return c.Reveal() == "" }

// String never shows the secret.
func (Credential) String() string { return "[credential]" }

// GoString never shows the secret.
func (Credential) GoString() string { return "[credential]" }

// LogValue never shows the secret.
func (Credential) LogValue() slog.Value { return slog.StringValue("[credential]") }
