package smtp

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/onceward/onceward/providers"
)

// A Config is the providers.smtp section of the configuration.
type Config struct {
	providers.Timing `yaml:",inline"`
	Login            `yaml:",inline"`

	Host string `yaml:"host"`
	Port int    `yaml:"port"` // 587, with tls: implicit 465, with tls: none 25
	TLS  string `yaml:"tls"`  // starttls, implicit, or none on this machine
	Helo string `yaml:"helo"` // how this client names itself to the server
	From string `yaml:"from"` // Support <support@example.com>
	IMAP *IMAP  `yaml:"imap"` // a mailbox that keeps a copy of each mail; none: lost answers go to a person
}

// An IMAP names a mailbox in which every sent mail is found: a journal, or a Sent mailbox
// that the server fills. Without a login of its own it takes the one for sending.
type IMAP struct {
	Login `yaml:",inline"`

	Host    string `yaml:"host"`
	Port    int    `yaml:"port"` // 143, with tls: implicit 993
	TLS     string `yaml:"tls"`  // implicit, starttls, or none on this machine
	Mailbox string `yaml:"mailbox"`
}

// A Login is where a user name and a password are found; both or neither.
type Login struct {
	UsernameEnv  string `yaml:"username_env"`
	UsernameFile string `yaml:"username_file"`
	PasswordEnv  string `yaml:"password_env"`
	PasswordFile string `yaml:"password_file"`
}

// A tlsMode says how a connection is secured.
type tlsMode string

const (
	startTLS    tlsMode = "starttls"
	implicitTLS tlsMode = "implicit"
	noTLS       tlsMode = "none"
)

// New makes a provider. It dials nothing. The error names the setting and what to write.
func New(c Config) (*Provider, error) {
	p := &Provider{host: c.Host, dial: tcp}
	var err error
	if p.mode, err = security("", c.Host, c.TLS, startTLS); err != nil {
		return nil, err
	}
	if p.port, err = port("", c.Port, map[tlsMode]int{startTLS: 587, implicitTLS: 465, noTLS: 25}[p.mode]); err != nil {
		return nil, err
	}
	if p.from, err = sender(c.From); err != nil {
		return nil, err
	}
	if p.helo, err = clientName(c.Helo); err != nil {
		return nil, err
	}
	if p.login, err = c.Login.read(""); err != nil {
		return nil, err
	}
	if c.Window != 0 || c.Margin != 0 {
		return nil, errors.New("window and margin say nothing about smtp, which knows no keys: remove them")
	}
	defaults := providers.Timing{Deadline: defaultDeadline, Lease: defaultLease, Settle: defaultSettle}
	if p.timing, err = c.Timing.Or(defaults); err != nil {
		return nil, err
	}
	if c.IMAP != nil {
		p.mailbox, err = c.IMAP.read(p.login)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (c IMAP) read(sending login) (*mailbox, error) {
	m := &mailbox{host: c.Host, name: c.Mailbox}
	var err error
	if m.mode, err = security("imap.", c.Host, c.TLS, implicitTLS); err != nil {
		return nil, err
	}
	if m.port, err = port("imap.", c.Port, map[tlsMode]int{startTLS: 143, implicitTLS: 993, noTLS: 143}[m.mode]); err != nil {
		return nil, err
	}
	if m.name == "" {
		return nil, errors.New("imap.mailbox is missing: name the mailbox that gets a copy of each mail, such as Sent")
	}
	if m.login, err = c.Login.read("imap."); err != nil {
		return nil, err
	}
	if m.login.isZero() {
		m.login = sending
	}
	if m.login.isZero() {
		return nil, errors.New("imap needs a login: name it with imap.username_env and imap.password_env, or the _file settings")
	}
	return m, nil
}

// hostname is a name or an IP address; what else could stand there would end up in a
// command or a certificate's check.
var hostname = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

func security(section, host, mode string, fallback tlsMode) (tlsMode, error) {
	if !hostname.MatchString(host) && net.ParseIP(host) == nil {
		return "", fmt.Errorf("%shost is missing or no host name: write one like mail.example.com", section)
	}
	switch m := tlsMode(mode); m {
	case "":
		return fallback, nil
	case startTLS, implicitTLS:
		return m, nil
	case noTLS:
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return "", fmt.Errorf("%stls: none is for servers on this machine only; write starttls or implicit", section)
		}
		return m, nil
	default:
		return "", fmt.Errorf("%stls is starttls, implicit or none", section)
	}
}

func port(section string, n, fallback int) (int, error) {
	if n == 0 {
		return fallback, nil
	}
	if n < 0 || n > 65535 {
		return 0, fmt.Errorf("%sport is a number from 1 to 65535", section)
	}
	return n, nil
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// sender reads the From address. Its domain ends up in every Message-ID, which is ASCII.
func sender(from string) (mail.Address, error) {
	a, err := mail.ParseAddress(from)
	if err != nil || bareAddress(a.Address) != "" || strings.ContainsAny(a.Name, "\r\n\x00") {
		return mail.Address{}, errors.New("from is missing or no address: write one like Support <support@example.com>")
	}
	if !isASCII(domainOf(a.Address)) {
		return mail.Address{}, errors.New("from: write the domain in its ASCII form, which begins with xn--")
	}
	return *a, nil
}

// clientName is what EHLO says. A server may mind a name that isn't fully qualified.
func clientName(configured string) (string, error) {
	if configured != "" {
		literal := strings.HasPrefix(configured, "[") && strings.HasSuffix(configured, "]") &&
			!strings.ContainsAny(configured, " \r\n\t\x00")
		if !literal && !hostname.MatchString(configured) {
			return "", errors.New("helo is a host name, such as app.example.com")
		}
		return configured, nil
	}
	name, err := os.Hostname()
	if err != nil || !hostname.MatchString(name) || !strings.Contains(name, ".") {
		return "localhost", nil
	}
	return name, nil
}

// A login is a user name and a password, or neither.
type login struct{ username, password providers.Credential }

// String never shows them.
func (login) String() string { return "[login]" }

// GoString never shows them.
func (login) GoString() string { return "[login]" }

func (l login) isZero() bool { return l.username.IsZero() }

func (l Login) read(section string) (login, error) {
	if l == (Login{}) {
		return login{}, nil
	}
	username, err := providers.ReadCredential(section+"username", l.UsernameEnv, l.UsernameFile)
	if err != nil {
		return login{}, err
	}
	password, err := providers.ReadCredential(section+"password", l.PasswordEnv, l.PasswordFile)
	if err != nil {
		return login{}, err
	}
	if strings.ContainsRune(username.Reveal()+password.Reveal(), 0) {
		return login{}, fmt.Errorf("%susername and %spassword can't hold a zero byte", section, section)
	}
	return login{username, password}, nil
}
