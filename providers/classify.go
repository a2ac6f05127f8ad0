package providers

import (
	"net/http"
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
//	400..405, 410, 413,  a definite no, if it has the provider's own error
//	415, 422             code; else nothing: a gateway may have made it
//	408, 425             nothing
//	409                  nothing, unless the provider says what it means
//	429                  not sent where the limiter runs first; else nothing
//	5xx                  nothing, and the error may be kept under the key
//	401, 403             not sent, and an alarm: the credentials were refused
//
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
	if e.Code == "" {
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
		if rules.LimiterFirst {
			e.Mark = NotSent
		}
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly || s == http.StatusConflict:
	case s >= 400 && code != "":
		e.Mark = Refused
	case s < 200 || s >= 300 && s < 400:
		e.Alarm = "unexpected_answer"
	}
	return e
}

// retryAfter reads the header in its form of seconds; a date is the provider's clock
// and is left alone.
func retryAfter(reply HTTPReply) time.Duration {
	seconds, err := strconv.Atoi(reply.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, time.Hour)
}
