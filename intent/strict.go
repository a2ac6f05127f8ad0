package intent

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxDepth is how deep arrays and objects may be nested.
const maxDepth = 64

const (
	problemDepth     = "nested more than 64 deep"
	problemUTF8      = "not valid UTF-8"
	problemSurrogate = `a \u escape of one half of a surrogate pair`
	problemTwice     = "a member given twice (names that differ only in case count as one)"
	problemTrailing  = "something follows the end of the JSON text"
)

// A JSONError says where a JSON text, or a value to be printed as JSON, was
// refused and why. It shows names of members, never a value.
type JSONError struct {
	// Path leads to the place, like params.arguments.to[2]. It is empty for the
	// whole text.
	Path string
	// Problem is what is wrong there.
	Problem string
}

func (e *JSONError) Error() string {
	if e.Path == "" {
		return e.Problem
	}
	return e.Path + ": " + e.Problem
}

// fields is the path as an Error has it.
func (e *JSONError) fields() []string {
	if e.Path == "" {
		return nil
	}
	return []string{e.Path}
}

// under puts element before the error's path.
func (e *JSONError) under(element string) *JSONError {
	return &JSONError{Path: joinPath(element, e.Path), Problem: e.Problem}
}

func joinPath(a, b string) string {
	if a == "" || b == "" || strings.HasPrefix(b, "[") {
		return a + b
	}
	return a + "." + b
}

// CheckJSON reads raw once and refuses what two readers could take for two
// different things: malformed JSON, invalid UTF-8, half a surrogate pair,
// anything after the value, nesting above 64, an object at any depth that has
// a member twice or two members that differ only in case (under Unicode's
// simple folding), and a member that equals one of names only when case is
// ignored. Names are compared as they read after unescaping.
//
// encoding/json accepts all but the first: it replaces what it can't read,
// takes the last of two members, and ignores case. The error is a [*JSONError].
func CheckJSON(raw []byte, names Names) error {
	if err := checkJSON(raw, names); err != nil {
		return err
	}
	return nil
}

// CheckMessage is [CheckJSON] for a whole JSON-RPC message, but for one thing: text that
// is broken inside a tool's arguments is left to the tool, which can say in its answer
// which argument it is. Names of members, and everything outside, are checked here.
func CheckMessage(raw []byte, names Names) error {
	var s scanner
	s.src, s.names, s.leavesArguments = raw, names, true
	if err := s.document(); err != nil {
		return err
	}
	return nil
}

func checkJSON(raw []byte, names Names) *JSONError {
	s := scanners.Get().(*scanner)
	defer s.release()
	s.src, s.names, s.pos, s.depth = raw, names, 0, 0
	return s.document()
}

// scanners are reused. On the stack, where one would fit, it makes the goroutine of every
// new call grow its stack, which takes far longer than the scan.
var scanners = sync.Pool{New: func() any {
	return &scanner{folds: make([]byte, 0, 512), members: make([]span, 0, 48)}
}}

// release gives a scanner back without what it has read. One that a strange text made
// large isn't kept.
func (s *scanner) release() {
	if cap(s.folds) > 8<<10 || cap(s.members) > 512 {
		return
	}
	clear(s.frames[:])
	s.src, s.names, s.folds, s.members, s.scratch = nil, Names{}, s.folds[:0], s.members[:0], nil
	scanners.Put(s)
}

// maxPath bounds how many elements of a path are shown.
const maxPath = 12

// fail makes the error for the place where the scanner stands.
func (s *scanner) fail(problem string) *JSONError {
	var elements []string
	for i := range s.depth {
		switch f := &s.frames[i]; {
		case !f.object:
			elements = append(elements, fmt.Sprintf("[%d]", f.index))
		case f.named:
			elements = append(elements, shown(string(unescape(nil, f.name.of(s.src)))))
		}
	}
	if n := len(elements) - maxPath; n > 0 {
		elements = slices.Replace(elements, maxPath/2, maxPath/2+n, fmt.Sprintf("(%d more)", n))
	}
	path := ""
	for _, e := range elements {
		path = joinPath(path, e)
	}
	return &JSONError{Path: path, Problem: problem}
}

func (s *scanner) malformed() *JSONError {
	if s.pos >= len(s.src) {
		return s.fail("malformed JSON: it ends too early")
	}
	return s.fail(fmt.Sprintf("malformed JSON at byte %d", s.pos))
}
