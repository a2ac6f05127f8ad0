package tools

import (
	"strings"

	"github.com/onceward/onceward/ledger"
)

// A refusalWords are what a refusal's code means to a model: what helps, and a
// sentence. {message} is what the refusal itself says, {fields} are its fields.
type refusalWords struct{ next, text string }

var refusals = map[ledger.RefusalCode]refusalWords{
	ledger.IntentMissing:  {nextFixConfiguration, "This call did nothing. {message} Tell the user: it takes the operator, and other arguments don't help."},
	ledger.IntentInvalid:  {nextFixConfiguration, "This call did nothing. {message} Tell the user: it takes the operator, and other arguments don't help."},
	ledger.IntentConflict: {nextFixConfiguration, "This call did nothing. {message} Tell the user: it takes the operator, and other arguments don't help."},

	ledger.OperationConflict: {nextNone, "This call did nothing: the action was called for before with other values of {fields}, and that first call stands. " +
		"To get its result, call again with the first call's values, or read the operation with operation_get. " +
		"If a different action is meant, tell the user: the orchestrator has to give it an intent of its own (a higher revision, or another id). Arguments can't do that."},

	ledger.InvalidArguments: {nextFixArguments, "This call did nothing: the arguments aren't valid. {message} Correct them and call again."},
	ledger.LimitExceeded:    {nextNone, "This call did nothing: a limit is reached. {message} Don't do it another way. Tell the user."},
	ledger.NotFound:         {nextFixArguments, "There is no operation with this operation_id here. Take the operation_id from an earlier answer, or from operation_list."},

	ledger.LedgerUnavailable: {nextNone, "This call did nothing: the ledger can't be reached, and without it nothing is sent. Don't do it another way. Make the same call again in {wait}. If this stays, tell the user."},
	ledger.ShuttingDown:      {nextNone, "This call did nothing: the server is ending, or the caller was gone before the call began. Make the same call again; if it was made before, it gets the first result."},
	ledger.Busy:              {nextNone, "This call did nothing: the server has too much to do. Don't do it another way. Make the same call again in {wait}."},
}

func nextOf(c ledger.RefusalCode) string {
	if words, ok := refusals[c]; ok {
		return words.next
	}
	return nextNone
}

func refusalSentence(said answer, r *ledger.Refusal) string {
	words, ok := refusals[r.Code]
	if !ok {
		words.text = "This call did nothing. {message}"
	}
	fields := strings.Join(r.Fields, ", ")
	if fields == "" {
		fields = "its arguments"
	}
	text := strings.NewReplacer("{message}", r.Message, "{fields}", fields, "{wait}", inWords(said.RetryAfter)).Replace(words.text)
	return strings.Join(strings.Fields(text), " ")
}
