package smtp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/providers"
)

// good is a configuration with everything in it. It can't run in parallel: it needs the
// environment.
func good(t *testing.T) Config {
	t.Setenv("SMTP_USER", "mailer")
	t.Setenv("SMTP_PASSWORD", "s3cret")
	return Config{
		Host: "mail.example.com", From: "Support <support@example.com>",
		Login: Login{UsernameEnv: "SMTP_USER", PasswordEnv: "SMTP_PASSWORD"},
		IMAP:  &IMAP{Host: "imap.example.com", Mailbox: "Sent"},
	}
}

func TestNew(t *testing.T) {
	p, err := New(good(t))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := p.Traits(providers.EmailSend)
	want := providers.Traits{
		Deadline: 2 * time.Minute, Lease: 3 * time.Minute, Settle: 10 * time.Minute,
		Reuse: providers.ReuseActs, Lookup: providers.LookupByMailbox, LookupLag: 10 * time.Minute,
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("traits (-want +got):\n%s", diff)
	}
	if _, ok := p.Traits(providers.RefundCreate); ok {
		t.Error("smtp serves refunds")
	}
	identity := []string{"smtp", "mail.example.com:587", "support@example.com", "mailer", "s3cret", "imap.example.com:993", "Sent", "mailer", "s3cret"}
	if diff := cmp.Diff(identity, p.Identity()); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	for _, text := range []string{p.String(), fmt.Sprintf("%+v", p), fmt.Sprintf("%#v", p), fmt.Sprintf("%+v", p.login), fmt.Sprintf("%#v", p.login)} {
		if strings.Contains(text, "s3cret") {
			t.Errorf("the password is in %s", text)
		}
	}
}

func TestWithoutMailboxNobodyCanBeAsked(t *testing.T) {
	c := good(t)
	c.IMAP = nil
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := p.Traits(providers.EmailSend); got.Lookup != providers.NoLookup || got.Promise().ProvesAbsence || got.Promise().Idempotent {
		t.Errorf("traits = %+v", got)
	}
}

func TestPorts(t *testing.T) {
	for mode, want := range map[string]int{"": 587, "starttls": 587, "implicit": 465, "none": 25} {
		c := good(t)
		c.Host, c.TLS = "localhost", mode
		p, err := New(c)
		if err != nil || p.port != want {
			t.Errorf("tls %q: port %d, %v; want %d", mode, p.port, err, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for names, change := range map[string]func(*Config){
		"host, mail.example.com":                func(c *Config) { c.Host = "" },
		"host, host name":                       func(c *Config) { c.Host = "mail.example.com\r\nQUIT" },
		"from, Support <support@example.com>":   func(c *Config) { c.From = "" },
		"from":                                  func(c *Config) { c.From = "a@example.com, b@example.com" },
		"from, xn--":                            func(c *Config) { c.From = "support@exämple.com" },
		"tls, starttls":                         func(c *Config) { c.TLS = "ssl" },
		"tls: none, starttls or implicit":       func(c *Config) { c.TLS = "none" },
		"port, 65535":                           func(c *Config) { c.Port = 70000 },
		"helo, app.example.com":                 func(c *Config) { c.Helo = "me\r\nMAIL" },
		"username, username_env":                func(c *Config) { c.UsernameEnv = "" },
		"password_env, NOT_SET":                 func(c *Config) { c.PasswordEnv = "NOT_SET" },
		"password, twice":                       func(c *Config) { c.PasswordFile = empty },
		"password_file, empty":                  func(c *Config) { c.PasswordEnv, c.PasswordFile = "", empty },
		"window and margin, remove":             func(c *Config) { c.Window = time.Hour },
		"lease":                                 func(c *Config) { c.Lease = time.Second },
		"imap.host":                             func(c *Config) { c.IMAP.Host = "" },
		"imap.tls, imap.tls: none is for":       func(c *Config) { c.IMAP.TLS = "none" },
		"imap.port":                             func(c *Config) { c.IMAP.Port = -1 },
		"imap.mailbox, Sent":                    func(c *Config) { c.IMAP.Mailbox = "" },
		"imap.password, imap.password_env":      func(c *Config) { c.IMAP.UsernameEnv = "SMTP_USER" },
		"imap needs a login, imap.username_env": func(c *Config) { c.Login = Login{} },
	} {
		c := good(t)
		change(&c)
		_, err := New(c)
		if err == nil {
			t.Errorf("%s: no error", names)
			continue
		}
		for want := range strings.SplitSeq(names, ", ") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q isn't in the error: %v", want, err)
			}
		}
		wantNothingPersonal(t, strings.ReplaceAll(err.Error(), "support@example.com", ""))
	}
}
