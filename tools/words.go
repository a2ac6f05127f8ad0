package tools

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// advice ends the description of every tool that acts.
const advice = "The answer's status and next say how it stands and what helps. If the outcome isn't known yet, or waits for a person, don't do it another way."

// An actionWords are what the sentences say for one action type.
type actionWords struct{ this, done string }

var actions = map[string]actionWords{
	providers.EmailSend:          {"this email", "sent"},
	providers.PaymentOrderCreate: {"this payment order", "created"},
	providers.RefundCreate:       {"this refund", "made"},
	"":                           {"this action", "done"}, // of a later version's ledger
}

// sentences are what a model reads, by status and, where that isn't enough, what makes
// the difference. Three rules: what is not known is never called a failure; a
// "no" says exactly what did not happen; and nothing invites a model to get the
// same effect another way.
//
// {This} and {done} are the action's words, {wait} a time, {code}, {until} and {word}
// short texts from the ledger.
var sentences = map[string]string{
	"succeeded":          "{This} was {done}.",
	"succeeded replayed": "{This} was already {done}. Nothing was sent again.",
	"succeeded asked":    "{This} was {done}.",

	"in_progress": "{This} is being {done} right now, and how it ends isn't known yet. Don't do it another way. Make the same call again in {wait}, or read the operation with operation_get.",

	"unknown":        "It isn't known yet whether {this} was {done}: the provider's answer didn't arrive. It may well have been, so don't do it another way. The provider is being asked. Make the same call again in {wait}, or read the operation with operation_get.",
	"unknown review": "It isn't known whether {this} was {done}, and nothing automatic can find it out. It may well have been, so don't do it another way. A person is asked to look into it: tell the user. operation_get shows what they find.",

	"awaiting_approval":          "{This} waits for a person's approval{until}. Nothing was sent yet. Tell the user, and don't do it another way. Once it is approved, make the same call again.",
	"awaiting_approval approved": "{This} was approved by a person and is not {done} yet. Make the same call again to carry it out.",

	"failed_retryable":        "{This} was not {done}: the request could not be sent ({code}), and nothing happened. Make the same call again in {wait}. Doing it another way is not needed.",
	"failed_retryable review": "{This} was not {done}: the request could not be sent ({code}), and nothing happened. A person is asked to look into it before it is tried again: tell the user.",

	"failed_final":                      "{This} was not {done}, and nothing happened ({code}). Making the same call again gives the same answer. Tell the user. If it is still wanted, the orchestrator has to start it as a new action.",
	"failed_final approval_denied":      "{This} was not {done}: a person denied it, and nothing was sent. Don't do it another way. Tell the user.",
	"failed_final approval_expired":     "{This} was not {done}: nobody approved it in time, and nothing was sent. Tell the user. If it is still wanted, the orchestrator has to start it as a new action.",
	"failed_final retry_expired":        "{This} was not {done}: the request could not be sent in time, and nothing happened. Tell the user. If it is still wanted, the orchestrator has to start it as a new action.",
	"failed_final dropped":              "{This} won't be {done}: a person decided so. Don't do it another way. Tell the user.",
	"failed_final rejected_by_provider": "{This} had no effect: the provider took it on and then rejected it. Making the same call again gives the same answer. Tell the user. If it is still wanted, the orchestrator has to start it as a new action.",
}

// spoken are the sentences in each action's words, by action type.
var spoken = func() map[string]map[string]string {
	all := make(map[string]map[string]string, len(actions))
	for action, words := range actions {
		all[action] = make(map[string]string, len(sentences))
		fill := strings.NewReplacer("{This}", capital(words.this), "{this}", words.this, "{done}", words.done)
		for key, text := range sentences {
			all[action][key] = fill.Replace(text)
		}
	}
	return all
}()

// sentence words where an operation stands.
func sentence(said answer, op ledger.Operation, u use) string {
	words, ok := spoken[said.ActionType]
	if !ok {
		words = spoken[""]
	}
	text := words[key(said, op, u)]
	if strings.Contains(text, "{") {
		until := ""
		if said.ExpiresAt != "" {
			until = ", at the latest until " + said.ExpiresAt
		}
		text = strings.NewReplacer("{wait}", inWords(said.RetryAfter), "{code}", word(said.Code, "no code"), "{until}", until).Replace(text)
	}
	if status := word(said.ProviderStatus, ""); said.Status == string(ledger.AnswerSucceeded) && status != "" && status != string(ledger.Accepted) {
		text += ` The provider's own status for it is "` + status + `".`
	}
	if len(said.IgnoredChanges) > 0 && u == called {
		text += " What you changed (" + strings.Join(said.IgnoredChanges, ", ") + ") was ignored: the first call's values stand."
	}
	return text
}

// key chooses the sentence.
func key(said answer, op ledger.Operation, u use) string {
	detail := ""
	switch ledger.AnswerStatus(said.Status) {
	case ledger.AnswerSucceeded:
		switch {
		case u == asked:
			detail = "asked"
		case *said.Replayed:
			detail = "replayed"
		}
	case ledger.AnswerAwaitingApproval:
		if op.Approval.State == ledger.Approved {
			detail = "approved"
		}
	case ledger.AnswerFailedFinal:
		detail = said.Code
	case ledger.AnswerUnknown, ledger.AnswerFailedRetryable:
		if said.Review {
			detail = "review"
		}
	case ledger.AnswerInProgress:
	}
	if _, ok := sentences[said.Status+" "+detail]; ok {
		return said.Status + " " + detail
	}
	return said.Status
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// word lets a code or status of the provider's into a sentence if it is one.
func word(s, otherwise string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return otherwise
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func inWords(seconds int64) string {
	switch {
	case seconds <= 0:
		return "a moment"
	case seconds == 1:
		return "1 second"
	case seconds < 120:
		return strconv.FormatInt(seconds, 10) + " seconds"
	}
	return strconv.FormatInt((seconds+59)/60, 10) + " minutes"
}
