package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/onceward/onceward/providers/sandbox"
)

// How wide the demo prints, and its column of labels, in characters.
const (
	lineWidth  = 100
	labelWidth = 10
)

// A textStyle is how a line looks on a terminal.
type textStyle string

const (
	styleBold   textStyle = "1"
	styleDim    textStyle = "2"
	styleRed    textStyle = "31"
	styleGreen  textStyle = "32"
	styleYellow textStyle = "33"
	styleCyan   textStyle = "36"
)

// A narrator prints the stories.
type narrator struct {
	w      io.Writer
	colour bool
}

// colourful tells whether w is a terminal whose user has nothing against colour
// (https://no-color.org).
func colourful(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func (n *narrator) paint(s textStyle, text string) string {
	if !n.colour || s == "" || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// labelled prints a text beside a label, wrapped under itself.
func (n *narrator) labelled(label string, s textStyle, text string) {
	for i, line := range wrapText(text, lineWidth-3-labelWidth) {
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(n.w, "   %s%s\n", n.paint(styleDim, fmt.Sprintf("%-*s", labelWidth, label)), n.paint(s, line))
	}
}

func (n *narrator) say(label, text string)     { n.labelled(label, "", text) }
func (n *narrator) nothing(label, text string) { n.labelled(label, styleYellow, text) }
func (n *narrator) detail(text string)         { n.labelled("", "", text) }

func (n *narrator) opening(stories int) {
	fmt.Fprintln(n.w, n.paint(styleBold, "Onceward: one business action, one effect"))
	fmt.Fprintln(n.w)
	text := fmt.Sprintf("%d ways to lose track of an action, each on the real server over stdio with a real MCP client. "+
		"The provider is the sandbox: it keeps its own journal, and does wrong what it is told to.", stories)
	for _, line := range wrapText(text, lineWidth) {
		fmt.Fprintln(n.w, line)
	}
	fmt.Fprintln(n.w)
	n.say("intent", "what the orchestrator says the call is for; it is injected, the model can't write it")
	n.say("call", "what the model calls")
	n.say("reads", "what the model reads")
	n.say("world", "what really happened, counted in the sandbox's journal")
}

func (n *narrator) scene(number int, sc scene) {
	fmt.Fprintf(n.w, "\n%s\n", n.paint(styleBold, fmt.Sprintf("%d  %s", number, sc.title)))
	for _, line := range wrapText(sc.trouble, lineWidth-3) {
		fmt.Fprintln(n.w, "   "+line)
	}
	fmt.Fprintln(n.w)
}

func (n *narrator) intent(c demoCall) { n.labelled("intent", styleDim, shown(c.intent)) }

func (n *narrator) call(label string, c demoCall) {
	n.labelled(label, styleCyan, c.tool+"  "+shown(c.arguments))
}

func (n *narrator) reply(label string, r demoReply) {
	facts := []string{r.Status}
	if r.Code != "" {
		facts = append(facts, r.Code)
	}
	if len(r.Fields) > 0 {
		facts = append(facts, "fields: "+strings.Join(r.Fields, ", "))
	}
	if r.Status == "succeeded" {
		facts = append(facts, "replayed: "+strconv.FormatBool(r.Replayed))
	}
	if len(r.Ignored) > 0 {
		facts = append(facts, "ignored_changes: "+strings.Join(r.Ignored, ", "))
	}
	if r.Review {
		facts = append(facts, "review: true")
	}
	line := strings.Join(append(facts, "next: "+r.Next), "  ")
	if r.took >= worthTelling {
		line += fmt.Sprintf("  (after %.1f s)", r.took.Seconds())
	}
	n.labelled(label, statusStyle(r.Status), line)
	n.detail(r.Message)
}

func statusStyle(status string) textStyle {
	switch status {
	case "succeeded":
		return styleGreen
	case "refused", "failed_final", "failed_retryable":
		return styleRed
	}
	return styleYellow
}

// command shows what a person types.
func (n *narrator) command(args ...string) {
	typed := make([]string, len(args))
	for i, arg := range args {
		typed[i] = shellQuoted(arg)
	}
	n.labelled("person", styleCyan, "$ onceward "+strings.Join(typed, " "))
}

func (n *narrator) world(calls int, effects []sandbox.Effect, proof string) {
	looks := styleGreen
	if len(effects) != 1 {
		looks = styleRed
	}
	found := make([]string, len(effects))
	for i, effect := range effects {
		found[i] = effectText(effect, proof)
	}
	n.labelled("world", looks, fmt.Sprintf("%s, %s: %s", countOf(calls, "call"), countOf(len(effects), "effect"), strings.Join(found, "; ")))
}
