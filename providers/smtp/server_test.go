package smtp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A turn is what the scripted server does when it is its turn.
type turn struct {
	say     string // the reply, its CRLF included unless it is to be cut
	hangUp  bool   // closes the connection, after say
	hang    bool   // waits until the client gives up
	discard bool   // a message that came whole isn't kept
	keep    bool   // it is kept, whatever say says
}

// A server is a mail server that does what a script says, and keeps what it took on. A
// script names a step: "connect", "EHLO", "STARTTLS", "AUTH", a line of AUTH, "MAIL",
// "RCPT", "DATA", "." or "QUIT"; what it doesn't name is answered well.
type server struct {
	script     map[string]turn
	extensions []string    // nil: what is common
	tls        *tls.Config // for STARTTLS
	afterTLS   map[string]turn
	bodyAt     int           // told when so many bytes of a message were read
	body       chan struct{} // closed then
	resume     chan struct{} // what the server waits for after that

	piped    sync.WaitGroup // the sessions over pipes
	mu       sync.Mutex
	sessions [][]string // the commands, per connection
	messages []message  // taken on
	halves   int        // messages that began and never ended
}

// A message is an envelope and a text as the server took it on.
type message struct {
	from string
	to   []string
	text string
}

func (s *server) start(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

// pipe is a dialer whose connections have no buffers: what one side wrote, the other read.
func (s *server) pipe(t *testing.T) dialer {
	t.Cleanup(s.piped.Wait)
	return func(context.Context, string, string) (net.Conn, error) {
		mine, theirs := net.Pipe()
		s.piped.Go(func() { s.serve(theirs) })
		return mine, nil
	}
}

var errHungUp = errors.New("hung up")

// A talk is one connection as the server sees it.
type talk struct {
	*server
	conn    net.Conn
	in      *bufio.Reader
	number  int
	scripts []map[string]turn
	msg     message
}

func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	s.mu.Lock()
	s.sessions = append(s.sessions, nil)
	c := &talk{server: s, conn: conn, in: bufio.NewReader(conn), number: len(s.sessions) - 1, scripts: []map[string]turn{s.script}}
	s.mu.Unlock()
	if c.act("connect", "220 mail.example.com ESMTP\r\n") != nil {
		return
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return
		}
		if c.obey(strings.TrimSuffix(line, "\r\n")) != nil {
			return
		}
	}
}

// act does a step's turn.
func (c *talk) act(step, usual string) error {
	do := turn{say: usual}
	for _, script := range c.scripts {
		if scripted, ok := script[step]; ok {
			do = scripted
		}
	}
	return c.do(do)
}

func (c *talk) do(do turn) error {
	if do.hang {
		for {
			if _, err := c.in.ReadByte(); err != nil {
				return errHungUp
			}
		}
	}
	if _, err := c.conn.Write([]byte(do.say)); err != nil || do.hangUp {
		return errHungUp
	}
	return nil
}

func (c *talk) obey(line string) error {
	c.mu.Lock()
	c.sessions[c.number] = append(c.sessions[c.number], line)
	c.mu.Unlock()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "EHLO", "HELO":
		extensions := c.extensions
		if extensions == nil {
			extensions = []string{"8BITMIME", "SIZE 10000000", "AUTH PLAIN LOGIN", "SMTPUTF8", "STARTTLS"}
		}
		return c.act(verb, "250-mail.example.com\r\n250-"+strings.Join(extensions, "\r\n250-")+"\r\n250 HELP\r\n")
	case "STARTTLS":
		return c.secure()
	case "MAIL":
		c.msg = message{from: path(rest)}
		return c.act(verb, "250 2.1.0 Ok\r\n")
	case "RCPT":
		c.msg.to = append(c.msg.to, path(rest))
		step := verb
		for _, script := range c.scripts {
			if _, ok := script["RCPT "+path(rest)]; ok {
				step = "RCPT " + path(rest)
			}
		}
		return c.act(step, "250 2.1.5 Ok\r\n")
	case "DATA":
		return c.data()
	case "AUTH":
		return c.act(verb, "334 \r\n")
	case "QUIT":
		return errors.Join(c.act(verb, "221 Bye\r\n"), errHungUp)
	default: // a line of AUTH
		return c.act(line, "235 2.7.0 Accepted\r\n")
	}
}

func (c *talk) secure() error {
	if err := c.act("STARTTLS", "220 Go ahead\r\n"); err != nil {
		return err
	}
	c.conn = tls.Server(c.conn, c.tls)
	c.in = bufio.NewReader(c.conn)
	c.scripts = append(c.scripts, c.afterTLS)
	return nil
}

// data reads a message. Only a line with a dot alone ends it: what a lost connection leaves
// is thrown away.
func (c *talk) data() error {
	if do, scripted := c.scripts[0]["DATA"]; scripted {
		return c.do(do)
	}
	if err := c.act("DATA", "354 End data with <CR><LF>.<CR><LF>\r\n"); err != nil {
		return err
	}
	var text strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.mu.Lock()
			c.halves++
			c.mu.Unlock()
			return errHungUp
		}
		if line == ".\r\n" {
			break
		}
		text.WriteString(strings.TrimPrefix(line, "."))
		if c.body != nil && text.Len() >= c.bodyAt {
			close(c.body)
			c.body = nil
			<-c.resume
		}
	}
	c.msg.text = text.String()
	do, scripted := c.scripts[0]["."]
	if !scripted {
		do.say = "250 2.0.0 Ok: queued as 4XyZab12\r\n"
	}
	if (strings.HasPrefix(do.say, "250") || do.keep) && !do.discard {
		c.mu.Lock()
		c.messages = append(c.messages, c.msg)
		c.mu.Unlock()
	}
	return c.do(do)
}

func path(s string) string {
	_, s, _ = strings.Cut(s, "<")
	s, _, _ = strings.Cut(s, ">")
	return s
}

// rewrite is for sessions to come.
func (s *server) rewrite(script map[string]turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// took is what was taken on, when the sessions over pipes have ended.
func (s *server) took() []message {
	s.piped.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

func (s *server) commands(session int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session >= len(s.sessions) {
		return nil
	}
	return slices.Clone(s.sessions[session])
}
