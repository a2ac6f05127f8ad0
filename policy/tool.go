// Package policy is what a user lays down for each action type: who has to agree first, how much
// may happen, what follows from a look-alike, and how long things take. It reads that part of the
// configuration, refuses what doesn't fit together, and makes of it what the ledger decides by.
package policy

import (
	"fmt"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// A Tool is what the configuration says of one action type, but for who serves it. Everything is
// optional; what isn't said has a safe default (see [Compile]).
type Tool struct {
	// AcceptUnverifiable says that the user knows: the provider has neither keys nor
	// look-ups, so every lost answer is a person's to settle.
	AcceptUnverifiable bool     `yaml:"accept_unverifiable"`
	Approval           Approval `yaml:"approval"`
	ApprovalExpires    Duration `yaml:"approval_expires"` // of the wait for a person, and of what that person allowed. 24 h
	RunOnApproval      bool     `yaml:"run_on_approval"`  // at once, not at the next call
	Elicit             bool     `yaml:"elicit"`           // the client's own user may agree; never to money
	Limits             Limits   `yaml:"limits"`

	SecondIntent       string   `yaml:"second_intent"`        // approve, warn (default) or off
	SecondIntentWithin Duration `yaml:"second_intent_within"` // how far back a look-alike counts. 24 h

	Deadline     Duration `yaml:"deadline"`      // of one attempt; the provider's by default
	Lease        Duration `yaml:"lease"`         // how long its worker is presumed alive; the provider's by default
	AnswerWithin Duration `yaml:"answer_within"` // how long a call waits for its own result; the server's by default
	RetryFor     Duration `yaml:"retry_for"`     // how long after the first call a new attempt may be made. 24 h
	Retention    Duration `yaml:"retention"`     // how long results and histories are kept; for ever by default
}

// An Approval says when a person has to agree first: never, always, or where any of its
// conditions holds. The zero value leaves it to the default.
type Approval struct {
	Mode string `yaml:"-"` // "never" or "always"; empty where there are conditions, or nothing was said

	Above             map[string]Decimal `yaml:"above"`              // by currency: more than that
	RecipientsOutside []string           `yaml:"recipients_outside"` // domains: a mail to anybody else
	conditional       bool
}

// UnmarshalYAML implements [yaml.NodeUnmarshaler]: a word, or a map of conditions.
func (a *Approval) UnmarshalYAML(node ast.Node) error {
	switch node := node.(type) {
	case *ast.NullNode:
		return nil
	case *ast.StringNode:
		if node.Value != never && node.Value != always {
			return wrong(node, "approval is never, always, or conditions such as {above: {USD: \"100.00\"}}")
		}
		a.Mode = node.Value
		return nil
	case *ast.MappingNode, *ast.MappingValueNode:
		type conditions Approval // without this method
		a.conditional = true
		return yaml.NodeToValue(node, (*conditions)(a), yaml.Strict())
	}
	return wrong(node, "approval is never, always, or conditions such as {above: {USD: \"100.00\"}}; write it out here")
}

const (
	never  = "never"
	always = "always"
)

// Limits bound how much of the action type may happen, each over another span.
type Limits struct {
	PerRun      *Bounds `yaml:"per_run"`
	PerWorkflow *Bounds `yaml:"per_workflow"`
	PerTenant   *Bounds `yaml:"per_tenant"` // one tenant's day
	PerDay      *Bounds `yaml:"per_day"`    // all tenants' day
}

// Bounds are a limit's number of actions, and its amounts by currency.
type Bounds struct {
	Count  *Count             `yaml:"count"`
	Amount map[string]Decimal `yaml:"amount"`
}

// A Count is a whole number, written with plain digits.
type Count int64

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (c *Count) UnmarshalYAML(node ast.Node) error {
	if _, ok := node.(*ast.IntegerNode); ok {
		text := node.GetToken().Value
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && strconv.FormatInt(n, 10) == text { // neither octal nor separated
			*c = Count(n)
			return nil
		}
	}
	return wrong(node, "a count is a whole number such as 20, without quotes")
}

// A Duration is longer than nothing, and written with its unit, such as "90s" or "24h"; zero
// means that it isn't given.
type Duration time.Duration

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	switch node := node.(type) {
	case *ast.NullNode:
		return nil
	case *ast.StringNode:
		parsed, err := time.ParseDuration(node.Value)
		if err == nil && parsed <= 0 {
			return wrong(node, "a duration is longer than nothing")
		}
		if err == nil {
			*d = Duration(parsed)
			return nil
		}
	}
	return wrong(node, "a duration is a number and its unit, such as 90s, 15m or 24h")
}

// A Decimal is an amount of money as it is written. It has to be a string: an unquoted number
// would be read as a float, which has no cents.
type Decimal string

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (d *Decimal) UnmarshalYAML(node ast.Node) error {
	switch node := node.(type) {
	case *ast.StringNode:
		*d = Decimal(node.Value)
		return nil
	case *ast.IntegerNode, *ast.FloatNode:
		return wrong(node, fmt.Sprintf("an amount of money is a string: write it in quotes, \"%s\"", node.GetToken().Value))
	}
	return wrong(node, "an amount of money is a string such as \"100.00\"")
}

// wrong is an error that knows its line.
func wrong(node ast.Node, problem string) error {
	return &yaml.SyntaxError{Message: problem, Token: node.GetToken()}
}
