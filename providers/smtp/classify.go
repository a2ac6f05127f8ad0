package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strconv"

	"github.com/onceward/onceward/providers"
)

// A step is where in a session something failed: the same reply means different things.
type step int

const (
	greeting    step = iota // the greeting, EHLO, STARTTLS: about the server, not the mail
	credentials             // AUTH
	transaction             // MAIL, RCPT, DATA's 354: about the mail
	finalDot                // the reply to the message itself
)

// A failure is a server's whole reply that isn't what was hoped for.
type failure struct {
	reply reply
	step  step
}

func (f *failure) Error() string { return "smtp: the server answered " + strconv.Itoa(f.reply.code) }

// What a server can lack.
var (
	errNoTLS  = errors.New("smtp: the server offers no STARTTLS")
	errNoAuth = errors.New("smtp: the server offers neither AUTH PLAIN nor AUTH LOGIN")
	errNoUTF8 = errors.New("smtp: the server offers no SMTPUTF8, which an address needs")
	errTooBig = errors.New("smtp: the message is larger than the server takes")
)

// alarmCredentials is for a person: what the server refused is who we are, and nothing
// about the mail.
const alarmCredentials = "credentials_refused"

// classify says what an error proves of an attempt whose final dot wasn't written, or
// whose message was answered with a whole reply. A lost connection before the dot leaves
// nothing behind: a server that gets no dot has no message (RFC 5321, 3.8).
func classify(err error) *providers.Error {
	var f *failure
	e := &providers.Error{Mark: providers.NotSent, Err: err}
	switch {
	case errors.As(err, &f):
		f.classify(e)
	case errors.Is(err, errNoTLS):
		e.Mark, e.Code, e.Alarm = providers.Refused, "starttls_missing", "starttls_missing"
	case errors.Is(err, errNoUTF8):
		e.Mark, e.Code = providers.Refused, "smtputf8_missing"
	case errors.Is(err, errTooBig):
		e.Mark, e.Code = providers.Refused, "message_too_large"
	case errors.Is(err, errNoAuth):
		e.Code, e.Alarm = "auth_missing", alarmCredentials
	default:
		e.Code = lostCode(err)
	}
	return e
}

// classify reads the reply's first digit: 4yz is a no for now, 5yz a no (RFC 5321, 4.2.1).
// Anything else, where it wasn't asked for, is a server that doesn't speak SMTP.
func (f *failure) classify(e *providers.Error) {
	e.Code = "smtp_" + strconv.Itoa(f.reply.code)
	permanent := f.reply.code >= 500
	switch {
	case f.reply.code < 400 && f.step == finalDot:
		e.Mark = ""
	case f.step == credentials && permanent:
		e.Alarm = alarmCredentials
	case f.reply.code == 530: // authentication or encryption required (RFC 4954, RFC 3207)
		e.Alarm = alarmCredentials
	case permanent && f.step != greeting:
		e.Mark = providers.Refused
	}
}

// doubt is for what happened after the final dot was written, or may have been.
func doubt(err error) *providers.Error {
	return &providers.Error{Code: lostCode(err), Err: err}
}

// lostCode names why there was no reply. It is for people; it decides nothing.
func lostCode(err error) string {
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return "host_not_found"
	case errors.As(err, &untrusted):
		return "certificate_refused"
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	default:
		return "connection_lost"
	}
}
