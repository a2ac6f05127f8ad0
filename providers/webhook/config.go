package webhook

import (
	"time"

	"github.com/onceward/onceward/providers"
)

// A Config is the provider's part of the configuration.
type Config struct {
	// Endpoint is the gateway's URL; https, but for loopback.
	Endpoint string `yaml:"endpoint"`
	// Headers are sent with every request, look-ups too: name to value.
	Headers map[string]Header `yaml:"headers"`
	// Actions says how each action type is done: payment_order.create, refund, email.send.
	Actions map[string]Action `yaml:"actions"`
	// Timing is for all actions that don't say otherwise.
	providers.Timing `yaml:",inline"`
}

// A Header takes its value from exactly one place. Secrets come from the environment or a
// file only.
type Header struct {
	Value  string `yaml:"value"`
	Env    string `yaml:"env"`
	File   string `yaml:"file"`
	Prefix string `yaml:"prefix"` // put before the value, such as "Bearer "
}

// An Action is how one action type is done, asked about and understood.
type Action struct {
	Create Create `yaml:"create"`
	Key    Key    `yaml:"key"`
	// Body has the members of the JSON that is sent: path to argument. If it is empty, a
	// payment order has account_id (from debit_account), payee_account, payee_name,
	// amount_minor, currency, business_reference and purpose; a refund payment_id,
	// amount_minor, currency, reason and note; a mail to, cc, bcc, subject, body, html,
	// reply_to and template. Besides these arguments there is amount, a decimal string.
	// What the body doesn't name isn't sent; an argument that is empty isn't either.
	Body map[string]string `yaml:"body"`
	// Constants are members that are always the same: path to text.
	Constants map[string]string `yaml:"constants"`
	// Currencies are the ISO 4217 codes that may be sent; empty: any.
	Currencies []string    `yaml:"currencies"`
	Answer     Answer      `yaml:"answer"`
	Statuses   Statuses    `yaml:"statuses"`
	Errors     []ErrorRule `yaml:"errors"`
	Lookup     Lookup      `yaml:"lookup"`

	providers.Timing `yaml:",inline"`
}

// A Create is the request that acts.
type Create struct {
	Method string `yaml:"method"` // POST (default), or PUT where the path has the key
	Path   string `yaml:"path"`   // below the endpoint; {key} stands for the key
}

// A Key says how the gateway takes our key, a value that is the same for every attempt:
// in a header, in a member of the body, in the path (where Create.Path has {key}), or not
// at all.
type Key struct {
	None   bool   `yaml:"none"`
	Header string `yaml:"header"`
	Member string `yaml:"member"` // at the top of the body
	Format string `yaml:"format"` // "hex" (default, 32 digits) or "uuid"

	// ForEver: the gateway never forgets a key. Else the action has a window, counted from
	// the first request.
	ForEver bool `yaml:"for_ever"`
	// OnlyReference: the gateway stores the key and finds an object by it, but acts again
	// for a key that it knows.
	OnlyReference bool `yaml:"only_reference"`
	// Reuse is what it does with the same key and another body: "refused", "replayed" (the
	// first answer) or "acts"; "acts", the worst, if it isn't given.
	Reuse string `yaml:"reuse"`
	// RetriesErrors: after a 5xx the same key is tried again. Else an error may be kept
	// under its key, and a second one goes to a person.
	RetriesErrors bool `yaml:"retries_errors"`
}

// An Answer says where the members of an object are, in the answer to a create and in
// what a look-up finds.
type Answer struct {
	ID     string `yaml:"id"`
	Status string `yaml:"status"` // none: an object that is there is accepted
	Key    string `yaml:"key"`    // where the key comes back; it is compared
	Error  string `yaml:"error"`  // the gateway's own error code, in answers that are no success
	// Same has what must be the same as was sent: path in the answer to argument. Another
	// value goes to a person.
	Same map[string]string `yaml:"same"`
}

// Statuses are the gateway's words for how far an object has come. A word that is in no
// list proves nothing.
type Statuses struct {
	Accepted []string `yaml:"accepted"` // it may still be rejected
	Settled  []string `yaml:"settled"`
	Rejected []string `yaml:"rejected"`
}

// An ErrorRule says what an answer means that is no success. The first one that fits
// decides; what fits none is judged as it is everywhere: 400, 402, 404, 405, 410, 413, 415
// and 422 with an error code (Answer.Error) are refusals, 401 and 403 with one say that
// nothing was sent, and all else proves nothing.
type ErrorRule struct {
	Status int    `yaml:"status"`
	Code   string `yaml:"code"` // the gateway's own; empty: any
	// Means is "refused" (a definite no), "not_sent" (before anything happened; it may be
	// tried again), "in_flight", "key_reused" or "nothing".
	Means string `yaml:"means"`
}

// A Lookup is how the gateway is asked what became of a key: for one object, or for a
// list.
type Lookup struct {
	None   bool              `yaml:"none"`
	Method string            `yaml:"method"` // GET (default) or POST; it changes nothing
	Path   string            `yaml:"path"`   // below the endpoint; {key} stands for the key
	Query  map[string]string `yaml:"query"`  // values may have {key}
	Body   map[string]string `yaml:"body"`   // for POST: members of a JSON object; values may have {key}

	// NotFound is what 404 means: "absent" or "nothing" (default). It has to be in JSON,
	// and to have NotFoundCode if that is given.
	NotFound     string `yaml:"not_found"`
	NotFoundCode string `yaml:"not_found_code"`

	// Items is where the list is, if the answer is one; Answer.Key tells which of its
	// items are ours. Next is where the cursor of the next page is, and Cursor the query
	// parameter that takes it.
	Items  string `yaml:"items"`
	Next   string `yaml:"next"`
	Cursor string `yaml:"cursor"`

	// ProvesAbsence: once settle and Lag are over, an object that isn't found doesn't
	// exist and never will, so that a new attempt is safe.
	ProvesAbsence bool          `yaml:"proves_absence"`
	Lag           time.Duration `yaml:"lag"` // how long an object may stay invisible
}
