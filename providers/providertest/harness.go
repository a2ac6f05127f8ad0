package providertest

import (
	"net/http"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A Harness is a provider with all that the suite needs to try it.
type Harness struct {
	// Action is the action type that is tried.
	Action string
	// New makes the provider with its default timing, speaking to endpoint. It is called
	// with endpoints that can't be reached, too.
	New func(t *testing.T, endpoint string) providers.Provider
	// Fake makes the provider's own side, with no effects yet.
	Fake func(t *testing.T) Fake
	// Arguments are acceptable to the provider and the fake. Other are the same but for
	// the amount, or for what makes another payload of them.
	Arguments, Other providers.Arguments
	// Answers are the provider's documented answers other than success, in its own
	// words. There is at least one with each status of [requiredAnswers].
	Answers []Answer
	// Secrets and Private are the planted credentials and personal data: no error,
	// receipt, log or ledger file may show them.
	Secrets, Private []string
	// Creates tells the requests that act from look-ups; nil: all but GET.
	Creates func(r *http.Request) bool
}

// requiredAnswers are the statuses that every provider has some word for.
var requiredAnswers = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound,
	http.StatusTooManyRequests, http.StatusInternalServerError,
}

// A Fake is the provider's side, written to its documentation, which keeps its own
// effects. Its functions may be called while it serves. A nil one means that the
// provider has no such thing; the suite says so if the traits do.
type Fake struct {
	// Handler serves creates and look-ups. A request that isn't as documented
	// (credentials, content type, an amount missing) gets the documented error.
	Handler http.Handler
	// Effects are the ids of the objects made by requests, oldest first, each once per
	// effect: a replay of an answer is none.
	Effects func() []string

	// Forget drops what is known of all keys, as happens after the window. Required
	// unless the key is known for ever or there is none.
	Forget func()
	// Hide makes look-ups blind to all effects, or ends that: an index that lags.
	// Required if there is a look-up.
	Hide func(hidden bool)
	// Crowd puts so many objects of others beside the effects that ours is on no first
	// page. Required for look-ups by parent and by reference, if these have pages.
	Crowd func()
	// Double makes look-ups show the last effect twice, under two ids. Required where
	// the provider doesn't itself promise that a key or reference is unique.
	Double func()
	// Alter gives the last effect another amount, as look-ups show it. Required for
	// money.
	Alter func()
	// Reject turns the last effect into a rejected one. Required if that can happen.
	Reject func()
}

// An Answer is one of the provider's documented answers other than success.
type Answer struct {
	Name   string
	Status int
	Header http.Header // Content-Type is application/json unless given
	Body   string
	Acts   bool // the provider acted all the same
	Kept   bool // the same key gets the same answer from now on
	Want   ledger.Verdict
	Alarm  string // that it must raise, if it isn't empty
	Code   string // that it must be known by, if it isn't empty
	// Lookup is what the same answer to a look-up must prove. Empty: nothing.
	Lookup ledger.Verdict
}

func (h Harness) creates(r *http.Request) bool {
	if h.Creates != nil {
		return h.Creates(r)
	}
	return r.Method != http.MethodGet
}
