package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/onceward/onceward/policy"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
)

type configCommand struct {
	Check configCheckCommand `cmd:"" help:"Say in sentences what a configuration means, or what is wrong with it."`
}

// configCheckCommand opens no ledger, reaches nobody and needs no secrets: it can run where the
// file is written, not only where it is served.
type configCheckCommand struct {
	configFlags
	sandboxFlags
	JSON bool `name:"json" help:"One JSON object."`
}

// Run explains the file. A file that serve would refuse is refused with the same words.
func (c configCheckCommand) Run(ctx context.Context, s streams) (err error) {
	if c.Config == "" {
		return errors.New("name the file with --config")
	}
	config, err := c.read()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "onceward-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	e, err := c.explain(ctx, config, dir)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.out).Encode(e)
	}
	return explanationText.Execute(s.out, e)
}

// An explanation is what a configuration means.
type explanation struct {
	File      string            `json:"file"`
	Tools     []toolExplanation `json:"tools"`
	Sentences []string          `json:"sentences"` // about all tools
	Warnings  []remark          `json:"warnings"`
	Missing   []remark          `json:"missing"` // here; serve needs it
}

type toolExplanation struct {
	Action    string   `json:"action_type"`
	Provider  string   `json:"provider"`
	Named     bool     `json:"named"` // in the file
	Sentences []string `json:"sentences"`
}

// A remark is about one place of the file.
type remark struct {
	Line int    `json:"line"`
	Path string `json:"path"`
	Text string `json:"text"`
}

var explanationText = template.Must(template.New("").Parse(`{{.File}} is a configuration that can be served.
{{range .Tools}}
{{.Action}}, by {{.Provider}}{{if not .Named}} (the file doesn't name this tool){{end}}
{{range .Sentences}}  {{.}}
{{end}}{{end}}{{if .Sentences}}
All tools
{{range .Sentences}}  {{.}}
{{end}}{{end}}{{if .Warnings}}
Worth a second thought
{{range .Warnings}}  {{$.File}}:{{.Line}}: {{.Path}}: {{.Text}}
{{end}}{{end}}{{if .Missing}}
Missing here, and needed where it is served
{{range .Missing}}  {{$.File}}:{{.Line}}: {{.Path}}: {{.Text}}
{{end}}{{end}}`))

func (c configCheckCommand) explain(ctx context.Context, config *configuration, dir string) (*explanation, error) {
	e := &explanation{File: c.Config, Tools: []toolExplanation{}, Sentences: config.sentences(), Warnings: []remark{}, Missing: []remark{}}
	standIns := &standIns{config: config, dir: dir}
	if err := standIns.fill(); err != nil {
		return nil, err
	}
	made := map[string]realProvider{}
	for _, action := range actions {
		name, real, err := config.provider(action, made)
		if err != nil {
			return nil, err
		}
		traits, err := c.traits(ctx, action, real, dir)
		if err != nil {
			return nil, err
		}
		p, err := config.policy(action, traits)
		if err != nil {
			return nil, err
		}
		_, named := config.Tools[action]
		said := append([]string{proof(name, traits)}, p.Sentences()...)
		e.Tools = append(e.Tools, toolExplanation{action, name, named, said})
		for _, w := range p.Warnings() {
			if named {
				e.Warnings = append(e.Warnings, config.remark("$.tools.'"+action+"'."+w.Path, w.Text))
			}
		}
	}
	e.Warnings = append(e.Warnings, config.unused()...)
	e.Missing = append(e.Missing, standIns.missing...)
	slices.SortStableFunc(e.Missing, func(a, b remark) int { return a.Line - b.Line })
	return e, config.checkStatements()
}

// traits are those of the provider; where that is the sandbox, of one with a journal that
// is thrown away.
func (c configCheckCommand) traits(ctx context.Context, action string, real realProvider, dir string) (providers.Traits, error) {
	if real != nil {
		traits, _ := real.Traits(action)
		return traits, nil
	}
	box, err := c.open(ctx, dir)
	if err != nil {
		return providers.Traits{}, err
	}
	traits, _ := box.Traits(action)
	return traits, box.Close()
}

// proof says what can be known after a lost answer.
func proof(name string, t providers.Traits) string {
	if name == sandbox.Name {
		name = "The sandbox plays it, nothing real happens; it"
	}
	key := "knows no keys"
	if t.Key != providers.NoKey {
		key = "knows a key for ever"
		if t.Window > 0 {
			key = "knows a key for " + policy.Text(t.Window)
		}
	}
	switch {
	case t.Lookup == providers.NoLookup && t.Key == providers.NoKey:
		return name + " knows neither keys nor look-ups: it can't show afterwards what it did."
	case t.Lookup == providers.NoLookup:
		return name + " " + key + " and can't be asked."
	case t.ProvesAbsence:
		return name + " " + key + " and can be asked; what it doesn't find didn't happen."
	}
	return name + " " + key + " and can be asked; what it doesn't find may still have happened."
}

// sentences are about all tools.
func (c *configuration) sentences() []string {
	said := []string{fmt.Sprintf("Days begin at midnight in %s.", c.zone)}
	overdue := 24 * time.Hour
	if c.ReviewOverdue > 0 {
		overdue = time.Duration(c.ReviewOverdue)
	}
	said = append(said, fmt.Sprintf("A review that is open for %s raises its alarm again.", policy.Text(overdue)))
	if hook := c.Alarms.Webhook; hook != nil {
		host := ""
		if u, err := url.Parse(hook.URL); err == nil {
			host = u.Host // the path of such an address is often a secret
		}
		return append(said, fmt.Sprintf("Alarms are logged, and posted, signed, to %s.", host))
	}
	return append(said, "Alarms are logged, and posted nowhere.")
}

// unused are the sections of providers that serve no tool.
func (c *configuration) unused() []remark {
	var found []remark
	for name := range yamlFields(reflect.ValueOf(c.Providers)) {
		used := slices.ContainsFunc(actions, func(action string) bool { return c.Tools[action].Provider == name })
		if path := "$.providers." + name; !used && c.section(name).IsValid() {
			found = append(found, c.remark(path, "no tool is served by it"))
		}
	}
	slices.SortFunc(found, func(a, b remark) int { return a.Line - b.Line })
	return found
}

func (c *configuration) checkStatements() error {
	if c.Statements.CSV == nil {
		return nil
	}
	if err := c.Statements.CSV.Check(); err != nil {
		return c.wrong("$.statements.csv", err)
	}
	return nil
}

func (c *configuration) remark(path, text string) remark {
	path = strings.TrimSuffix(path, ".")
	return remark{c.line(path), path[2:], text}
}
