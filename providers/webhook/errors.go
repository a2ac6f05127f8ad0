package webhook

import (
	"fmt"

	"github.com/onceward/onceward/providers"
)

// What an ErrorRule can mean.
const (
	meansRefused   = "refused"
	meansNotSent   = "not_sent"
	meansInFlight  = "in_flight"
	meansKeyReused = "key_reused"
	meansNothing   = "nothing"
)

var marks = map[string]providers.Mark{
	meansRefused:   providers.Refused,
	meansNotSent:   providers.NotSent,
	meansInFlight:  providers.InFlight,
	meansKeyReused: providers.KeyReused,
	meansNothing:   "",
}

func checkRules(rules []ErrorRule, a answer) ([]ErrorRule, error) {
	for i, r := range rules {
		_, ok := marks[r.Means]
		switch {
		case !ok:
			return nil, fmt.Errorf("errors, number %d: means is %q: write refused, not_sent, in_flight, key_reused or nothing", i+1, r.Means)
		case r.Status < 400 || r.Status > 499:
			return nil, fmt.Errorf("errors, number %d: status is %d: write one from 400 to 499; a 5xx proves nothing, whatever it says", i+1, r.Status)
		case (r.Status == 408 || r.Status == 425) && (r.Means == meansRefused || r.Means == meansNotSent):
			return nil, fmt.Errorf("errors, number %d: status %d doesn't say that nothing happened: write in_flight or nothing", i+1, r.Status)
		case r.Code != "" && a.code == nil:
			return nil, fmt.Errorf("errors, number %d: a code is given, and answer.error isn't: write where the error code stands in an answer", i+1)
		case r.Code != "" && !word.MatchString(r.Code):
			return nil, fmt.Errorf("errors, number %d: code is %q: a code is one word of letters, digits and any of . _ -", i+1, r.Code)
		}
		for _, earlier := range rules[:i] {
			if earlier.Status == r.Status && (earlier.Code == "" || earlier.Code == r.Code) {
				return nil, fmt.Errorf("errors, number %d is never reached: an earlier one has status %d as well", i+1, r.Status)
			}
		}
	}
	return rules, nil
}

// code is the gateway's own error code, where the configuration says that there is one.
func (a *action) code(reply providers.HTTPReply) string {
	v, ok := decode(reply.Body)
	if !ok || !isJSON(reply) {
		return ""
	}
	return a.answer.code.text(v)
}

// classify judges an answer that is no success: by the shared table, and by the rules. A
// rule holds only for the gateway's own answers.
func (a *action) classify(reply providers.HTTPReply) *providers.Error {
	e := providers.HTTPRules{Code: a.code}.Classify(reply)
	if !a.isOwn(reply) {
		return e
	}
	code := a.code(reply)
	for _, r := range a.rules {
		if r.Status == reply.Status && (r.Code == "" || r.Code == code) {
			e.Mark = marks[r.Means]
			break
		}
	}
	return e
}

// isOwn reports whether an answer that is no success is the gateway's: in JSON, and with
// an error code where there should be one.
func (a *action) isOwn(reply providers.HTTPReply) bool {
	_, ok := decode(reply.Body)
	return ok && isJSON(reply) && (a.answer.code == nil || a.code(reply) != "")
}
