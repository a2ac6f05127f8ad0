package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time_zone means the same on a machine that has no zones of its own

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/onceward/onceward/policy"
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
	Config string `env:"ONCEWARD_CONFIG" placeholder:"FILE" help:"Who serves which tool, and what is laid down for it: approvals, limits, times (YAML). Without it the sandbox serves all."`
}

// A configuration is what the file says. It is strict: an unknown key is an error with
// its line. Secrets are named in it (environment variables, files) and never stand in it.
type configuration struct {
	Tools      map[string]toolConfig `yaml:"tools"` // by action type
	Providers  providerConfigs       `yaml:"providers"`
	Statements statementConfigs      `yaml:"statements"`
	Alarms     alarmConfigs          `yaml:"alarms"`

	TimeZone      string          `yaml:"time_zone"`      // in which days begin, such as Europe/Berlin; UTC
	ReviewOverdue policy.Duration `yaml:"review_overdue"` // after which an open review raises its alarm again; 24 h

	file string
	tree *ast.File
	zone *time.Location
}

type toolConfig struct {
	Provider  string   `yaml:"provider"`
	Templates []string `yaml:"templates"` // email.send: what a mail may be for

	policy.Tool `yaml:",inline"`
}

type alarmConfigs struct {
	Webhook *alarmWebhookConfig `yaml:"webhook"`
}

// An alarmWebhookConfig says where alarms are posted, and what signs them.
type alarmWebhookConfig struct {
	URL        string `yaml:"url"`
	SecretEnv  string `yaml:"secret_env"`
	SecretFile string `yaml:"secret_file"`
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

var providerNames = []string{
	sandbox.Name, smtp.Name, resend.Name, stripe.Name, yookassa.Name, increase.Name, moderntreasury.Name, tbank.Name, webhook.Name,
}

// read reads the file, if one is named.
func (f configFlags) read() (*configuration, error) {
	c := &configuration{file: f.Config, zone: time.UTC}
	if f.Config == "" {
		return c, nil
	}
	text, err := os.ReadFile(f.Config)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if c.tree, err = parser.ParseBytes(text, 0); err != nil {
		return nil, c.unreadable(err)
	}
	if len(c.tree.Docs) > 1 {
		return nil, fmt.Errorf("%s: it has %d YAML documents, and only the first would count; keep one (no line of three hyphens)", c.file, len(c.tree.Docs))
	}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil {
		return nil, c.unreadable(err)
	}
	return c, c.check()
}

// unreadable says where YAML and types go wrong. It quotes no line of the file: somebody
// may have written a secret where none belongs.
func (c *configuration) unreadable(err error) error {
	if bad, ok := errors.AsType[*yaml.TypeError](err); ok && bad.DstType.Kind() == reflect.Bool {
		return fmt.Errorf("%s:%d: it is true or false, without quotes", c.file, bad.GetToken().Position.Line)
	}
	if bad, ok := errors.AsType[yaml.Error](err); ok && bad.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", c.file, bad.GetToken().Position.Line, bad.GetMessage())
	}
	return fmt.Errorf("%s: %w", c.file, err)
}

// check refuses what concerns no provider.
func (c *configuration) check() (err error) {
	for _, action := range slices.Sorted(maps.Keys(c.Tools)) {
		if !slices.Contains(actions, action) {
			return c.wrong("$.tools.'"+action+"'", fmt.Errorf("there is no such tool; the tools are %v", actions))
		}
		if len(c.Tools[action].Templates) > 0 && action != providers.EmailSend {
			return c.wrong("$.tools.'"+action+"'.templates", errors.New("only email.send has templates"))
		}
	}
	for i, template := range c.Tools[providers.EmailSend].Templates {
		if template == "" || slices.Contains(c.Tools[providers.EmailSend].Templates[:i], template) {
			return c.wrong(fmt.Sprintf("$.tools.'%s'.templates[%d]", providers.EmailSend, i), errors.New("it is empty, or stands there twice"))
		}
	}
	if c.zone, err = time.LoadLocation(c.TimeZone); err != nil || c.TimeZone == "Local" {
		return c.wrong("$.time_zone", errors.New("there is no such time zone; write an IANA name, such as Europe/Berlin or UTC"))
	}
	if hook := c.Alarms.Webhook; hook != nil {
		return c.checkWebhook(*hook)
	}
	return nil
}

func (c *configuration) checkWebhook(hook alarmWebhookConfig) error {
	u, err := url.Parse(hook.URL)
	loopback := err == nil && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || (u.Scheme != "https" && (u.Scheme != "http" || !loopback)):
		return c.wrong("$.alarms.webhook.url", errors.New("it begins with https:// (http:// on this machine only), and has no user name in it"))
	case (hook.SecretEnv == "") == (hook.SecretFile == ""):
		return c.wrong("$.alarms.webhook", errors.New("the secret that signs alarms has one place: name an environment variable with secret_env, or a file with secret_file"))
	}
	return nil
}

// alarmSecret reads the secret that signs alarms; it is zero if they are posted nowhere.
func (c *configuration) alarmSecret() (providers.Credential, error) {
	hook := c.Alarms.Webhook
	if hook == nil {
		return providers.Credential{}, nil
	}
	secret, err := providers.ReadCredential("secret", hook.SecretEnv, hook.SecretFile)
	if err != nil {
		return secret, c.wrong("$.alarms.webhook", err)
	}
	return secret, nil
}

// policy is what is laid down for an action type; traits are those of the provider that
// serves it.
func (c *configuration) policy(action string, traits providers.Traits) (*policy.Policy, error) {
	tool, named := c.Tools[action]
	if !named {
		return policy.Unruled(action, traits), nil
	}
	p, err := policy.Compile(action, tool.Tool, traits, c.zone)
	if bad, ok := errors.AsType[*policy.Error](err); ok {
		return nil, c.wrong("$.tools.'"+action+"'."+bad.Path, errors.New(bad.Problem))
	}
	return p, err
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
	if _, ok := p.Traits(action); !ok {
		return "", nil, c.wrong(at, fmt.Errorf("%s doesn't serve %s", tool.Provider, action))
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
	return nil, c.wrong(at, fmt.Errorf("there is no provider %q; the providers are %v", name, providerNames))
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

// wrong says where in the file something is wrong. What isn't written has the line of what it
// would stand in.
func (c *configuration) wrong(path string, problem error) error {
	if line := c.line(path); line > 0 {
		return fmt.Errorf("%s:%d: %s: %w", c.file, line, path[2:], problem)
	}
	return fmt.Errorf("%s: %s: %w", c.file, path[2:], problem)
}

// line is where a path of the file stands, or the nearest thing above it; 0 if nowhere.
func (c *configuration) line(path string) int {
	for c.tree != nil && len(path) > 1 {
		if p, err := yaml.PathString(path); err == nil {
			if node, err := p.FilterFile(c.tree); err == nil && node.GetToken() != nil {
				return node.GetToken().Position.Line
			}
		}
		path = above(path)
	}
	return 0
}

// above is a path without its last step. A tool's name has dots, and is quoted.
func above(path string) string {
	if strings.HasSuffix(path, "'") {
		return "$.tools"
	}
	return path[:max(strings.LastIndexAny(path, ".["), 1)]
}
