package console

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// People are all who may use the console, in the file's order.
func (a *Approvers) People() []Person {
	if a == nil {
		return nil
	}
	var all []Person
	for _, e := range a.entries {
		all = append(all, e.person)
	}
	return all
}

// Holds reports whether one of the hashes (SHA-256, hexadecimal) is an approver's credential: an
// agent's token must not be.
func (a *Approvers) Holds(sha256hex string) bool {
	if a == nil {
		return false
	}
	return slices.ContainsFunc(a.entries, func(e approverEntry) bool { return fmt.Sprintf("%x", e.hash) == strings.ToLower(sha256hex) })
}

// AddApprover adds a line to an approvers file, and makes the file if there is none. A name or
// role that isn't one, and a name that is there already, are errors; the file then stays as
// it was.
func AddApprover(path, role, name, sha256hex string) error {
	if _, err := ReadApprovers(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	kept, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("approvers file: %w", err)
	}
	text := string(kept)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += role + " " + name + " " + sha256hex + "\n"
	if _, err := parseApprovers(path, strings.NewReader(text)); err != nil {
		return err
	}
	// A reader sees the old file or the new one, never half of it.
	fresh, err := os.CreateTemp(filepath.Dir(path), ".approvers-*") // mode 0600
	if err != nil {
		return fmt.Errorf("approvers file: %w", err)
	}
	_, err = fresh.WriteString(text)
	if err = errors.Join(err, fresh.Sync(), fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("approvers file: %w", err), os.Remove(fresh.Name()))
	}
	return nil
}
