package intent

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The codes of an [Error].
const (
	CodeMissing  = "intent_missing"  // nothing says what the call is for
	CodeInvalid  = "intent_invalid"  // what says it can't be read
	CodeConflict = "intent_conflict" // two carriers say different things
)

// An Error refuses a call because of its intent. Nothing in it is a value that
// a caller sent.
type Error struct {
	// Code is one of CodeMissing, CodeInvalid and CodeConflict.
	Code string
	// Fields names the members or headers at fault.
	Fields []string
	// Message tells the model and the operator what is wrong, where, and what
	// to do. It is whole sentences.
	Message string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// maxFaults bounds how many faults one error lists.
const maxFaults = 8

// faults collects what is wrong with one carrier, so that an operator reads
// all of it at once.
type faults struct{ fields, texts []string }

func (f *faults) add(field, problem string) {
	f.fields = append(f.fields, field)
	f.texts = append(f.texts, field+" "+problem)
}

func (f *faults) check(field, value string) {
	if p := checkID(value); p != "" {
		f.add(field, p)
	}
}

// err is nil when there is no fault.
func (f *faults) err(carrier, advice string) error {
	if len(f.texts) == 0 {
		return nil
	}
	texts, fields, more := f.texts, f.fields, ""
	if n := len(texts) - maxFaults; n > 0 {
		texts, fields, more = texts[:maxFaults], fields[:maxFaults], fmt.Sprintf("; and %d more", n)
	}
	return &Error{Code: CodeInvalid, Fields: fields,
		Message: fmt.Sprintf("%s is not valid: %s%s. %s", carrier, strings.Join(texts, "; "), more, advice)}
}

// maxNameRunes bounds how much of a name from the input is shown.
const maxNameRunes = 64

// shown is a member's name as it may stand in an error: cut, and quoted in
// ASCII unless it is plain, so that a look-alike letter can be seen.
func shown(name string) string {
	cut := name
	if utf8.RuneCountInString(name) > maxNameRunes {
		cut = string([]rune(name)[:maxNameRunes])
	}
	switch {
	case cut != name:
		return strconv.QuoteToASCII(cut) + "..."
	case name == "" || strings.ContainsFunc(name, notPlain):
		return strconv.QuoteToASCII(name)
	}
	return name
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '/'
}
