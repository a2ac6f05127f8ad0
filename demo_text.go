package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/onceward/onceward/providers/sandbox"
)

// effectText names an effect and the argument that tells what it is.
func effectText(e sandbox.Effect, proof string) string {
	var arguments map[string]any
	if err := json.Unmarshal(e.Arguments, &arguments); err != nil || arguments[proof] == nil {
		return e.ProviderOperationID
	}
	return e.ProviderOperationID + " with " + proof + "=" + shellQuoted(fmt.Sprint(arguments[proof]))
}

// shown is what a call holds, for people.
func shown(pairs []member) string {
	var parts []string
	for _, p := range pairs {
		if p.quiet {
			continue
		}
		text := fmt.Sprint(p.value)
		if list, ok := p.value.([]string); ok {
			text = strings.Join(list, ",")
		}
		parts = append(parts, p.name+"="+shellQuoted(text))
	}
	return strings.Join(parts, " ")
}

// shellQuoted is a word that a shell takes as one. The demo's own words have no quotes,
// dollars or backslashes.
func shellQuoted(s string) string {
	if strings.ContainsAny(s, " '") {
		return `"` + s + `"`
	}
	return s
}

// wrapText breaks a text at its spaces into lines of at most width characters; a longer word
// has a line of its own.
func wrapText(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Split(text, " ") {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, strings.TrimRight(line, " ")), ""
		} else if line != "" {
			word = " " + word
		}
		line += word
	}
	return append(lines, line)
}
