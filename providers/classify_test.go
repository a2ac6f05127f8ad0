package providers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// testRules are a provider's whose errors are {"error": code}.
func testRules(limiterFirst bool) HTTPRules {
	return HTTPRules{LimiterFirst: limiterFirst, Code: func(r HTTPReply) string {
		var problem struct{ Error string }
		if !r.IsJSON() || json.Unmarshal(r.Body, &problem) != nil {
			return ""
		}
		return problem.Error
	}}
}

func own(status int) HTTPReply {
	return HTTPReply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"error":"no_such_payment"}`)}
}

func gatewayPage(status int) HTTPReply {
	return HTTPReply{Status: status, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<h1>no_such_payment</h1>")}
}

// TestClassify has the table: what an answer in the provider's own words proves, and that
// a gateway's proves nothing with whatever status.
func TestClassify(t *testing.T) {
	t.Parallel()
	const code = "no_such_payment"
	for status, want := range map[int]Error{
		100: {Code: code, Alarm: "unexpected_answer"},
		101: {Code: code, Alarm: "unexpected_answer"},
		200: {Code: code}, // what can't be understood
		201: {Code: code},
		202: {Code: code},
		204: {Code: code},
		301: {Code: code, Alarm: "unexpected_answer"},
		302: {Code: code, Alarm: "unexpected_answer"},
		307: {Code: code, Alarm: "unexpected_answer"},
		308: {Code: code, Alarm: "unexpected_answer"},
		400: {Code: code, Mark: Refused},
		401: {Code: code, Mark: NotSent, Alarm: "credentials_refused"},
		402: {Code: code, Mark: Refused},
		403: {Code: code, Mark: NotSent, Alarm: "credentials_refused"},
		404: {Code: code, Mark: Refused},
		405: {Code: code, Mark: Refused},
		406: {Code: code},
		407: {Code: code},
		408: {Code: code},
		409: {Code: code},
		410: {Code: code, Mark: Refused},
		411: {Code: code},
		412: {Code: code},
		413: {Code: code, Mark: Refused},
		415: {Code: code, Mark: Refused},
		421: {Code: code},
		422: {Code: code, Mark: Refused},
		423: {Code: code},
		424: {Code: code},
		425: {Code: code},
		426: {Code: code},
		428: {Code: code},
		429: {Code: code},
		431: {Code: code},
		451: {Code: code},
		499: {Code: code},
		500: {Code: "server_error"},
		501: {Code: "server_error"},
		502: {Code: "server_error"},
		503: {Code: "server_error"},
		504: {Code: "server_error"},
		520: {Code: "server_error"},
		599: {Code: "server_error"},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			ignore := cmpopts.IgnoreFields(Error{}, "Err")
			if diff := cmp.Diff(&want, testRules(false).Classify(own(status)), ignore); diff != "" {
				t.Errorf("Classify (-want +got):\n%s", diff)
			}

			// A refused question is no refused action.
			question := want
			question.Mark = ""
			if diff := cmp.Diff(&question, testRules(true).ClassifyLookup(own(status)), ignore); diff != "" {
				t.Errorf("ClassifyLookup (-want +got):\n%s", diff)
			}

			foreign := Error{Code: fmt.Sprintf("http_%d", status)}
			if status >= 500 {
				foreign.Code = "server_error"
			}
			if status < 200 || status/100 == 3 {
				foreign.Alarm = "unexpected_answer"
			}
			for _, rules := range []HTTPRules{testRules(false), testRules(true), {}} {
				if diff := cmp.Diff(&foreign, rules.Classify(gatewayPage(status)), ignore); diff != "" {
					t.Errorf("Classify of a gateway's page (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestClassifyTheLimiter(t *testing.T) {
	t.Parallel()
	if got := testRules(true).Classify(own(429)); got.Mark != NotSent {
		t.Errorf("429 where the limiter runs first: %v", got)
	}
	if got := testRules(true).Classify(own(503)); got.Mark != "" {
		t.Errorf("503 where the limiter runs first: %v", got)
	}
}

func TestClassifyAsksForExceptionsFirst(t *testing.T) {
	t.Parallel()
	rules := testRules(false)
	rules.Exceptions = func(reply HTTPReply, code string) (*Error, bool) {
		if reply.Status == 409 && code == "no_such_payment" {
			return &Error{Mark: InFlight, Code: "in_flight"}, true
		}
		return nil, false
	}
	if got := rules.Classify(own(409)); got.Mark != InFlight {
		t.Errorf("the exception: %v", got)
	}
	if got := rules.ClassifyLookup(own(409)); got.Mark != "" || got.Code != "in_flight" {
		t.Errorf("the exception at a look-up: %v", got)
	}
	if got := rules.Classify(own(400)); got.Mark != Refused {
		t.Errorf("the rest: %v", got)
	}
}

// A provider may write anything where its code is expected. It is no code then, and isn't
// shown; that the answer is the provider's own stays true.
func TestClassifyKeepsWordsOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"card_declined":                    "card_declined",
		"AM-04":                            "AM-04",
		"refund.too.large":                 "refund.too.large",
		"Alice's card was declined":        "http_402",
		"alice@example.com":                "http_402",
		"line\nbreak":                      "http_402",
		"Überweisung":                      "http_402",
		strings.Repeat("x", 65):            "http_402",
		"_leading":                         "http_402",
		"<script>alert(1)</script>":        "http_402",
		"4111111111111111":                 "http_402",
		"DE02120300000000202051":           "http_402",
		"insufficient_funds_in_account_12": "insufficient_funds_in_account_12",
	} {
		rules := HTTPRules{Code: func(HTTPReply) string { return text }}
		got := rules.Classify(HTTPReply{Status: 402})
		if got.Code != want || got.Mark != Refused {
			t.Errorf("code %q, mark %q; want %q, %q", got.Code, got.Mark, want, Refused)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"7":                             7 * time.Second,
		"3600":                          time.Hour,
		"3601":                          time.Hour,
		"9223372036854775807":           time.Hour,
		"92233720368547758070":          0, // no number that a machine has
		"-7":                            0,
		"1.5":                           0,
		"soon":                          0,
		"Mon, 30 Nov 2026 10:00:00 GMT": 0,
	} {
		reply := own(429)
		reply.Header.Set("Retry-After", text)
		if got := testRules(true).Classify(reply).RetryAfter; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
