package smtp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

// maxReplies bounds what a server may say in one session, in bytes.
const maxReplies = 1 << 20

// A session is a conversation with a server. This package speaks the few commands itself:
// libraries write the final dot together with the end of the message, and send it too when
// a half-written message is followed by QUIT, which makes servers accept the half.
type session struct {
	wire       *wire
	out        io.Writer // through TLS where there is any
	tail       *tail
	replies    *textproto.Reader
	extensions map[string]string
}

// A reply is a whole one.
type reply struct {
	code int
	text string
}

func (r reply) isPositive() bool { return r.code >= 200 && r.code < 300 }

var errCut = errors.New("smtp: the reply isn't whole")

func newSession(w *wire, conn io.ReadWriter) *session {
	s := &session{wire: w, out: conn, tail: &tail{Reader: io.LimitReader(conn, maxReplies)}}
	s.replies = textproto.NewReader(bufio.NewReader(s.tail))
	return s
}

// read waits for a reply. Its error means that there was none, or a part of one.
func (s *session) read() (reply, error) {
	code, text, err := s.replies.ReadResponse(0)
	switch {
	case err != nil:
		return reply{}, err
	case s.tail.last != '\n':
		return reply{}, errCut
	case code < 200 || code > 599:
		return reply{}, errCut
	}
	return reply{code, text}, nil
}

// command sends a line and waits for its reply. Words come from this package or were
// checked for line breaks before.
func (s *session) command(line string) (reply, error) {
	if strings.ContainsAny(line, "\r\n") {
		return reply{}, errors.New("smtp: a command is one line")
	}
	if _, err := io.WriteString(s.out, line+"\r\n"); err != nil {
		return reply{}, err
	}
	return s.read()
}

// bye ends a session in which no message is half-written; the server's answer changes
// nothing, so nobody waits for it.
func (s *session) bye() {
	_, _ = io.WriteString(s.out, "QUIT\r\n")
	_ = s.wire.Close()
}

// hello says EHLO and keeps what the server can do.
func (s *session) hello(name string) error {
	r, err := s.command("EHLO " + name)
	if err == nil && (r.code == 500 || r.code == 502) { // a server older than RFC 1869
		r, err = s.command("HELO " + name)
	}
	if err != nil {
		return err
	}
	if !r.isPositive() {
		return &failure{reply: r, step: greeting}
	}
	s.extensions = map[string]string{}
	_, lines, _ := strings.Cut(r.text, "\n")
	for line := range strings.SplitSeq(lines, "\n") {
		keyword, parameters, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.extensions[strings.ToUpper(keyword)] = parameters
	}
	return nil
}

func (s *session) has(extension string) bool {
	_, ok := s.extensions[extension]
	return ok
}

// secure turns to TLS (RFC 3207). What the server sent before, encrypted or not, counts
// no more: somebody in between may have added it.
func (s *session) secure(ctx context.Context, config *tls.Config) error {
	if !s.has("STARTTLS") {
		return errNoTLS
	}
	r, err := s.command("STARTTLS")
	if err != nil {
		return err
	}
	if !r.isPositive() {
		return &failure{reply: r, step: greeting}
	}
	if s.replies.R.Buffered() > 0 {
		return errCut
	}
	conn := tls.Client(s.wire, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	*s = *newSession(s.wire, conn)
	return nil
}

// authenticate logs in with PLAIN (RFC 4616) or, where the server wants it, LOGIN.
func (s *session) authenticate(l login) error {
	mechanisms := strings.Fields(strings.ToUpper(s.extensions["AUTH"]))
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	username, password := l.username.Reveal(), l.password.Reveal()
	var lines []string
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		lines = []string{"AUTH PLAIN", encode("\x00" + username + "\x00" + password)}
	case slices.Contains(mechanisms, "LOGIN"):
		lines = []string{"AUTH LOGIN", encode(username), encode(password)}
	default:
		return errNoAuth
	}
	for i, line := range lines {
		r, err := s.command(line)
		switch {
		case err != nil:
			return err
		case r.code == 235 && i == len(lines)-1:
			return nil
		case r.code != 334 || i == len(lines)-1:
			return &failure{reply: r, step: credentials}
		}
	}
	return nil
}

// sizeLimit is the largest message that the server takes, in bytes; 0 if it doesn't say
// (RFC 1870).
func (s *session) sizeLimit() int {
	n, err := strconv.Atoi(s.extensions["SIZE"])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// mail begins a transaction.
func (s *session) mail(r request) (reply, error) {
	line := "MAIL FROM:<" + r.From + ">"
	if s.has("SIZE") {
		line += " SIZE=" + strconv.Itoa(len(r.message))
	}
	if s.has("8BITMIME") && bytes.ContainsFunc(r.message, func(c rune) bool { return c >= 0x80 }) {
		line += " BODY=8BITMIME"
	}
	if r.UTF8 {
		line += " SMTPUTF8"
	}
	return s.command(line)
}
