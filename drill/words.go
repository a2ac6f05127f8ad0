package drill

import (
	"fmt"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/policy"
)

// text is a duration as people say it.
func text(d time.Duration) string {
	if d >= time.Second {
		d = d.Round(time.Second)
	}
	return policy.Text(d)
}

func sentence(parts []string) string { return strings.Join(parts, ", ") }

// reasons are the words of a history, as people say them. What isn't here isn't worth telling.
var reasons = map[string]string{
	"no_proof":             "the answer proved nothing",
	"not_sent":             "not sent",
	"lease_expired":        "the lease ran out",
	"looked_up":            "looked up in vain",
	"found":                "found by look-up",
	"found_rejected":       "found rejected",
	"sent_again_under_key": "sent again under the key",
	"absence_proven":       "absence proven, sent anew",
	"late_success":         "its worker's success came late",
	"conflict":             "a conflict noted",
	"approved":             "approved",
	"denied":               "denied",
	"expired":              "nobody decided",
	"retry_over":           "given up",
	"scope_changed":        "another account",
}

// steps are what a history tells, each once, with how often.
func steps(history []ledger.Transition) []string {
	var told []string
	times := map[string]int{}
	for _, t := range history {
		word, ok := reasons[t.Reason]
		if t.Reason == "provider_answered" && t.To == ledger.FailedFinal {
			word, ok = "refused by the provider", true
		}
		if ok && times[word] == 0 {
			told = append(told, word)
		}
		times[word]++
	}
	for i, word := range told {
		if n := times[word]; n > 1 {
			told[i] = fmt.Sprintf("%s (%d times)", word, n)
		}
	}
	return told
}

// ending is where an operation stands at last.
func ending(op ledger.Operation) string {
	switch {
	case op.Review.Open():
		return string(op.Status) + " and in review"
	case op.ErrorCode != "" && op.Status == ledger.FailedFinal:
		return string(op.Status) + " (" + op.ErrorCode + ")"
	}
	return string(op.Status)
}

// spare says which setting would have spared a person this review.
func (s Subject) spare(review string) string {
	a := s.Advice
	canBeAsked := s.Traits.Lookup != ""
	switch {
	case review == ledger.ReviewScopeChanged:
		return "None. Before you change a credential, let what is open settle."
	case review == ledger.ReviewAttemptsUsed:
		return "None: a request that runs on for so long is rare. When it must be over, operations resolve --retry allows one more repeat."
	case review == ledger.ReviewErrorKept && a.Errors != "":
		return a.Errors
	case review == ledger.ReviewErrorKept:
		return "None: " + s.Provider + " keeps errors under a key, and only a person may allow another one."
	case !canBeAsked && a.Ask != "":
		return a.Ask
	case canBeAsked && !s.Traits.ProvesAbsence && a.Prove != "":
		return a.Prove
	case !canBeAsked:
		return "None: " + s.Provider + " can't be asked. It takes another provider."
	}
	return "None: " + s.Provider + "'s look-up proves what happened, not what didn't."
}

// mend says which setting to change where a promise broke.
func (s Subject) mend(effects int) string {
	t := s.Traits
	deadline := s.Policy.Promise(t.Promise()).Deadline
	via := s.Action + " via " + s.Provider + ": "
	switch {
	case effects < 2:
		return via + "run onceward config check, and compare what it says with what you mean."
	case t.Key != "" && t.Window > 0 && t.Margin < deadline:
		return via + fmt.Sprintf("a repeat may arrive up to %s (deadline) after it was sent, and only %s (margin) are kept free before the key's window ends. %s", text(deadline), text(t.Margin), s.Advice.Margin)
	case t.Key != "" && t.Lookup == "":
		return via + "it doesn't keep the promise that it knows a key, and it can't be asked. " + orNone(s.Advice.Ask)
	case t.Key != "":
		return via + "it doesn't keep the promise that it knows a key. " + orNone(s.Advice.Key)
	}
	return via + "a lost reply can't be settled. " + orNone(s.Advice.Ask)
}

func orNone(advice string) string {
	if advice == "" {
		return "No setting mends that; it takes another provider."
	}
	return advice
}
