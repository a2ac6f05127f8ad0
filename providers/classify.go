package providers

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/onceward/onceward/ledger"
)

// An HTTPRules is what a provider adds to the shared classification: nothing, but for
// what its documentation promises differently.
type HTTPRules struct {
	// LimiterFirst: 429 is answered before anything happens (see Traits).
	LimiterFirst bool
	// Code takes the provider's own error code out of an answer, "" if there is none. An
	// answer without one isn't the provider's, or isn't its documented error.
	Code func(HTTPReply) string
	// Exceptions decide some answers before the table does. They return ok false for the
	// rest.
	Exceptions func(reply HTTPReply, code string) (err *Error, ok bool)
}

// Classify says what an answer that isn't a success proves. The table is the same for
// all HTTP providers:
//
//	1xx, 3xx             nothing; and the endpoint should be looked at
//	400, 402, 404, 405,  a definite no
//	410, 413, 415, 422
//	401, 403             not sent, and an alarm: the credentials were refused
//	429                  not sent where the limiter runs first; else nothing
//	409                  nothing, unless the provider says what it means
//	5xx                  nothing, and the error may be kept under the key
//	all else             nothing
//
// A 4xx without the provider's own error code proves nothing: a gateway may have made it.
// What an answer proves, it proves of its own attempt only; the ledger knows about
// earlier ones.
func (rules HTTPRules) Classify(reply HTTPReply) *Error {
	code := ""
	if rules.Code != nil {
		code = rules.Code(reply)
	}
	if rules.Exceptions != nil {
		if err, ok := rules.Exceptions(reply, code); ok {
			return err
		}
	}
	e := &Error{Code: code, RetryAfter: retryAfter(reply)}
	if !word.MatchString(code) || longNumber.MatchString(code) {
		e.Code = "http_" + strconv.Itoa(reply.Status)
	}
	switch s := reply.Status; {
	case s >= 500:
		e.Code = ledger.CodeServerError
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		if code != "" {
			e.Mark, e.Alarm = NotSent, "credentials_refused"
		}
	case s == http.StatusTooManyRequests:
		if rules.LimiterFirst && code != "" {
			e.Mark = NotSent
		}
	case slices.Contains(definite, s):
		if code != "" {
			e.Mark = Refused
		}
	case s < 200 || s >= 300 && s < 400:
		e.Alarm = "unexpected_answer"
	}
	return e
}

// definite are the statuses that mean no, if it is the provider who says so.
var definite = []int{400, 402, 404, 405, 410, 413, 415, 422}

// ClassifyLookup says what a look-up learnt from an answer that isn't a success: nothing.
// A refused question is no refused action. The code, the alarm and the wish to wait are
// the answer's.
func (rules HTTPRules) ClassifyLookup(reply HTTPReply) *Error {
	e := *rules.Classify(reply)
	e.Mark = ""
	return &e
}

// A code is kept in the ledger and shown to people, so it is a word: never a text, in
// which a provider may quote anything, nor a number that could be an account's.
var (
	word       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}$`)
	longNumber = regexp.MustCompile(`[0-9]{7}`)
)

// retryAfter reads the header in its form of seconds; a date is the provider's clock
// and is left alone.
func retryAfter(reply HTTPReply) time.Duration {
	seconds, err := strconv.Atoi(reply.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}
