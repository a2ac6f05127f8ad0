package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode"

	"github.com/onceward/onceward/ledger"
)

var functions = template.FuncMap{
	"ago": ago, "clock": clock, "rfc": rfc, "shorten": shorten, "visible": visible, "label": label,
	"badge": badge, "facts": facts, "named": named, "whyReview": whyReview, "whyApproval": whyApproval, "action": action, "waiting": waiting, "number": number, "words": words,
}

// labels say in a few words where an operation stands.
var labels = map[ledger.Status]string{
	ledger.Planned:         "Planned",
	ledger.Executing:       "Under way",
	ledger.Succeeded:       "Succeeded",
	ledger.FailedRetryable: "Not sent yet",
	ledger.FailedFinal:     "Did not happen",
	ledger.Unknown:         "Unknown",
}

func label(s ledger.Status) string {
	if text, ok := labels[s]; ok {
		return text
	}
	return string(s)
}

// A mark is a status as people see it: a word, and a class for its colour.
type mark struct{ Class, Text string }

// badge says more than the status where that matters for people.
func badge(op ledger.Operation) mark {
	m := mark{string(op.Status), label(op.Status)}
	switch {
	case op.Review.Open():
		m = mark{"review", m.Text + ", needs a person"}
	case waiting(op):
		m = mark{"waiting", "Waits for approval"}
	case op.Status == ledger.Planned && op.Approval.State == ledger.Approved:
		m.Text = "Approved, not run yet"
	}
	return m
}

// waiting reports whether somebody has to approve or deny op.
func waiting(op ledger.Operation) bool {
	return op.Status == ledger.Planned && op.Approval.State == ledger.Waiting
}

// named is what an operation is about, as its orchestrator said it.
func named(op ledger.Operation) string {
	var parts []string
	for _, part := range []string{op.Intent.Step, op.Intent.BusinessObject, op.Intent.BusinessOperationID} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 && op.Intent.WorkflowID != "" {
		parts = append(parts, op.Intent.WorkflowID)
	}
	if op.Intent.Revision > 1 {
		parts = append(parts, fmt.Sprintf("revision %d", op.Intent.Revision))
	}
	return strings.Join(parts, " · ")
}

// actions are what people call the action types.
var actions = map[string]string{"email.send": "Email", "payment_order.create": "Payment order", "refund": "Refund"}

func action(name string) string {
	if text, ok := actions[name]; ok {
		return text
	}
	return visible(name)
}

// reviews say in a sentence why a person is asked to find something out.
var reviews = map[string]string{
	ledger.ReviewUnverifiable:  "The provider's answer was lost, it can't be asked what became of the request, and repeating it could do it twice.",
	ledger.ReviewAttemptsUsed:  "Every attempt that is safe was made, and the outcome is still open.",
	ledger.ReviewErrorKept:     "The provider keeps an error under this operation's key, so the same request can't succeed any more.",
	ledger.ReviewScopeChanged:  "It was begun with another endpoint, account or mode of the provider than is configured now.",
	ledger.ReviewContradiction: "What the provider shows contradicts what was asked of it.",
	ledger.ReviewUnreadable:    "The sealed request can't be opened with the seal keys that are here.",
	ledger.ReviewNoProvider:    "Nobody here serves this type of action.",
}

// approvals say in a sentence why a person has to agree first.
var approvals = map[string]string{
	"always":                    "Every action of this type needs an approval.",
	"above":                     "Its amount is above what is allowed without an approval.",
	"recipients":                "It goes to recipients outside the domains that need no approval.",
	"unverifiable":              "After a lost answer nobody could ask this provider what it did, so each action needs an approval.",
	ledger.ApprovalAlike:        "Something with the same critical arguments was just asked for under another name.",
	ledger.ApprovalSecondIntent: "Something with the same critical arguments was just asked for under another key: it may be the same action, named anew.",
	ledger.ApprovalLateChange:   "It looks like a repeat of an older operation, with other content.",
	ledger.ApprovalNewArguments: "It was denied or had lapsed before, and was asked for again with other arguments.",
}

func whyReview(reason string) string   { return sentence(reviews, reason) }
func whyApproval(reason string) string { return sentence(approvals, reason) }

// sentence gives the sentence for a reason, or the reason where it has none.
func sentence(known map[string]string, reason string) string {
	if text, ok := known[reason]; ok {
		return text
	}
	return "Reason: " + visible(reason) + "."
}

// words makes reading matter of a word_with_lines.
func words(s string) string {
	s = strings.ReplaceAll(s, "_", " ")
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return visible(s)
}

func rfc(t time.Time) string   { return t.UTC().Format(time.RFC3339Nano) }
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// ago says how far t is from now, roughly.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	text := roughly(max(d, -d))
	switch {
	case text == "":
		return "now"
	case d < 0:
		return "in " + text
	}
	return text + " ago"
}

func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return ""
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// shorten keeps what tells a long hexadecimal text from others at sight.
func shorten(hex string) string {
	if len(hex) <= 12 {
		return hex
	}
	return hex[:4] + " " + hex[4:8] + " " + hex[8:12]
}

// number groups an integer's digits by thin spaces.
func number(n int64) string {
	text := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return sign + text
}

// visible writes out the characters that aren't seen, or that change how others are seen:
// whoever decides must see what is there. Lines stay lines, and so do an emoji's two looks.
func visible(s string) string {
	hidden := func(r rune) bool {
		return r != '\n' && r != '\uFE0E' && r != '\uFE0F' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Co, r) ||
			unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) || r == unicode.ReplacementChar)
	}
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// A fact is a name and its values: of evidence, of a reference, of an argument.
type fact struct {
	Name   string
	Values []string
	Long   bool // a text of several lines, or a very long one
}

// facts reads a JSON object in its own order. What isn't one is a single fact without a name.
func facts(raw json.RawMessage) []fact {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return []fact{newFact("", raw)}
	}
	var list []fact
	for d.More() {
		name, err := d.Token()
		text, ok := name.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return []fact{newFact("", raw)}
		}
		list = append(list, newFact(text, value))
	}
	return list
}

func newFact(name string, raw json.RawMessage) fact {
	f := fact{Name: visible(name)}
	var text string
	var several []string
	switch {
	case json.Unmarshal(raw, &text) == nil && raw[0] == '"':
		f.Values = []string{visible(text)}
		f.Long = strings.Contains(text, "\n") || len(text) > 200
	case json.Unmarshal(raw, &several) == nil && raw[0] == '[':
		for _, one := range several {
			f.Values = append(f.Values, visible(one))
		}
	default:
		f.Values = []string{visible(string(raw))}
	}
	return f
}
