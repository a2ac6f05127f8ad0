package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/increase"
	"github.com/onceward/onceward/providers/moderntreasury"
	"github.com/onceward/onceward/providers/resend"
	"github.com/onceward/onceward/providers/sandbox"
	"github.com/onceward/onceward/providers/smtp"
	"github.com/onceward/onceward/providers/stripe"
	"github.com/onceward/onceward/providers/tbank"
	"github.com/onceward/onceward/providers/webhook"
	"github.com/onceward/onceward/providers/yookassa"
	"github.com/onceward/onceward/statement"
)

// configFlags name the configuration file.
type configFlags struct {
	Config string `env:"ONCEWARD_CONFIG" placeholder:"FILE" help:"Which provider serves which tool, and how (YAML). Without it the sandbox serves all."`
}

// A configuration is what the file says. It is strict: an unknown key is an error with
// its line. Secrets are named in it (environment variables, files) and never stand in it.
type configuration struct {
	Tools      map[string]toolConfig `yaml:"tools"` // by action type
	Providers  providerConfigs       `yaml:"providers"`
	Statements statementConfigs      `yaml:"statements"`

	file string
	tree *ast.File
}

type toolConfig struct {
	Provider  string   `yaml:"provider"`
	Templates []string `yaml:"templates"` // email.send: what a mail may be for
	// AcceptUnverifiable says that the user knows: the provider has neither keys nor
	// look-ups, so every lost answer is a person's to settle.
	AcceptUnverifiable bool `yaml:"accept_unverifiable"`
}

type providerConfigs struct {
	SMTP           *smtp.Config           `yaml:"smtp"`
	Resend         *resend.Config         `yaml:"resend"`
	Stripe         *stripe.Config         `yaml:"stripe"`
	YooKassa       *yookassa.Config       `yaml:"yookassa"`
	Increase       *increase.Config       `yaml:"increase"`
	ModernTreasury *moderntreasury.Config `yaml:"moderntreasury"`
	TBank          *tbank.Config          `yaml:"tbank"`
	Webhook        *webhook.Config        `yaml:"webhook"`
}

type statementConfigs struct {
	CSV *statement.CSVConfig `yaml:"csv"`
}

// A realProvider is one that isn't the sandbox. Its identity (endpoint, account, mode,
// credential) is hashed into the scope of what it does, and kept nowhere else.
type realProvider interface {
	providers.Provider
	Identity() []string
}

var actions = []string{providers.EmailSend, providers.PaymentOrderCreate, providers.RefundCreate}

// read reads the file, if one is named.
func (f configFlags) read() (*configuration, error) {
	c := &configuration{file: f.Config}
	if f.Config == "" {
		return c, nil
	}
	text, err := os.ReadFile(f.Config)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if c.tree, err = parser.ParseBytes(text, 0); err != nil {
		return nil, fmt.Errorf("%s: %s", f.Config, yaml.FormatError(err, false, true))
	}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", f.Config, yaml.FormatError(err, false, true))
	}
	for action := range c.Tools {
		if !slices.Contains(actions, action) {
			return nil, c.wrong("$.tools.'"+action+"'", fmt.Errorf("there is no such tool; the tools are %v", actions))
		}
	}
	for _, action := range actions {
		if t := c.Tools[action]; len(t.Templates) > 0 && action != providers.EmailSend {
			return nil, c.wrong("$.tools.'"+action+"'.templates", errors.New("only email.send has templates"))
		}
	}
	return c, nil
}

// provider makes the provider that serves an action type; nil stands for the sandbox.
func (c *configuration) provider(action string, made map[string]realProvider) (name string, p realProvider, err error) {
	tool := c.Tools[action]
	if tool.Provider == "" || tool.Provider == sandbox.Name {
		return sandbox.Name, nil, nil
	}
	at := "$.tools.'" + action + "'.provider"
	if p = made[tool.Provider]; p == nil {
		if p, err = c.make(tool.Provider, at); err != nil {
			return "", nil, err
		}
		made[tool.Provider] = p
	}
	traits, ok := p.Traits(action)
	if !ok {
		return "", nil, c.wrong(at, fmt.Errorf("%s doesn't serve %s", tool.Provider, action))
	}
	if traits.Key == providers.NoKey && traits.Lookup == providers.NoLookup && !tool.AcceptUnverifiable {
		return "", nil, c.wrong(at, fmt.Errorf("%s knows neither keys nor look-ups, so after a lost answer only a person can find out what it did; "+
			"write accept_unverifiable: true beside it if that is what you want", tool.Provider))
	}
	return tool.Provider, p, nil
}

// make makes a provider from its section.
func (c *configuration) make(name, at string) (realProvider, error) {
	section := "$.providers." + name
	switch s := c.Providers; name {
	case smtp.Name:
		return made(c, section, s.SMTP, smtp.New)
	case resend.Name:
		return made(c, section, s.Resend, resend.New)
	case stripe.Name:
		return made(c, section, s.Stripe, stripe.New)
	case yookassa.Name:
		return made(c, section, s.YooKassa, yookassa.New)
	case increase.Name:
		return made(c, section, s.Increase, increase.New)
	case moderntreasury.Name:
		return made(c, section, s.ModernTreasury, moderntreasury.New)
	case tbank.Name:
		return made(c, section, s.TBank, tbank.New)
	case webhook.Name:
		return made(c, section, s.Webhook, webhook.New)
	}
	known := []string{sandbox.Name, smtp.Name, resend.Name, stripe.Name, yookassa.Name, increase.Name, moderntreasury.Name, tbank.Name, webhook.Name}
	return nil, c.wrong(at, fmt.Errorf("there is no provider %q; the providers are %v", name, known))
}

func made[C any, P realProvider](c *configuration, section string, config *C, create func(C) (P, error)) (realProvider, error) {
	if config == nil {
		return nil, c.wrong("$.tools", fmt.Errorf("%s is named, but there is no section %s", section[len("$.providers."):], section[2:]))
	}
	p, err := create(*config)
	if err != nil {
		return nil, c.wrong(section, err)
	}
	return p, nil
}

// wrong says where in the file something is wrong.
func (c *configuration) wrong(path string, problem error) error {
	if p, err := yaml.PathString(path); err == nil && c.tree != nil {
		if node, err := p.FilterFile(c.tree); err == nil {
			return fmt.Errorf("%s:%d: %s: %w", c.file, node.GetToken().Position.Line, path[2:], problem)
		}
	}
	return fmt.Errorf("%s: %s: %w", c.file, path[2:], problem)
}
