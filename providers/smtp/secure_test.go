package smtp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// certificate makes a server's configuration for 127.0.0.1, and one that trusts it.
func certificate(t *testing.T) (own, trust *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	own = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return own, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// secured sends with STARTTLS and a login.
func secured(t *testing.T, s *server) *Provider {
	t.Helper()
	own, trust := certificate(t)
	s.tls = own
	p := provider(t, s.start(t))
	p.mode, p.trust = startTLS, trust
	p.login = login{providers.NewCredential("mailer"), providers.NewCredential("s3cret")}
	return p
}

func TestStartTLSAndLogin(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		extensions []string
		script     map[string]turn
		want       []string
	}{
		"PLAIN": {[]string{"STARTTLS", "AUTH PLAIN LOGIN"}, nil, []string{"AUTH PLAIN", "AG1haWxlcgBzM2NyZXQ="}},
		"LOGIN": {[]string{"STARTTLS", "AUTH LOGIN"}, map[string]turn{"bWFpbGVy": {say: "334 UGFzc3dvcmQ6\r\n"}}, []string{"AUTH LOGIN", "bWFpbGVy", "czNjcmV0"}},
	} {
		s := &server{extensions: tt.extensions, afterTLS: tt.script}
		p := secured(t, s)
		if got := attempt(t.Context(), p, prepare(t, p, someMail)); got.Verdict != ledger.Done {
			t.Errorf("%s: attempt = %v", name, got)
		}
		want := append([]string{"EHLO app.example.com", "STARTTLS", "EHLO app.example.com"}, append(tt.want, "MAIL FROM:<support@example.com>")...)
		got := s.commands(0)
		if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
			t.Errorf("%s: commands (-want +got):\n%s", name, diff)
		}
		if len(s.took()) != 1 {
			t.Errorf("%s: the server took %d messages", name, len(s.took()))
		}
	}
}

func TestImplicitTLS(t *testing.T) {
	t.Parallel()
	s := &server{}
	own, trust := certificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", own)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := l.Accept(); err == nil {
			s.serve(conn)
		}
	}()
	p := provider(t, l.Addr().(*net.TCPAddr).Port)
	p.mode, p.trust = implicitTLS, trust
	if got := attempt(t.Context(), p, prepare(t, p, someMail)); got.Verdict != ledger.Done {
		t.Errorf("attempt = %v", got)
	}
	<-done
	if len(s.took()) != 1 {
		t.Errorf("the server took %d messages", len(s.took()))
	}
}

// TestSecurityFailures never sends anything, nor the password where it could be read.
func TestSecurityFailures(t *testing.T) {
	t.Parallel()
	refusedCredentials := func(code string) seen { return seen{ledger.NotSent, code, "credentials_refused"} }
	for name, tt := range map[string]struct {
		server   *server
		distrust bool
		want     seen
	}{
		"no STARTTLS":             {&server{extensions: []string{"AUTH PLAIN"}}, false, seen{ledger.Refused, "starttls_missing", "starttls_missing"}},
		"STARTTLS for now not":    {&server{script: map[string]turn{"STARTTLS": {say: "454 later\r\n"}}}, false, notSent("smtp_454")},
		"STARTTLS never":          {&server{script: map[string]turn{"STARTTLS": {say: "502 no\r\n"}}}, false, notSent("smtp_502")},
		"a stranger":              {&server{}, true, notSent("certificate_refused")},
		"replies before TLS":      {&server{script: map[string]turn{"STARTTLS": {say: "220 go\r\n250 injected\r\n"}}}, false, notSent("connection_lost")},
		"no AUTH":                 {&server{extensions: []string{"STARTTLS"}}, false, refusedCredentials("auth_missing")},
		"another mechanism":       {&server{extensions: []string{"STARTTLS", "AUTH GSSAPI"}}, false, refusedCredentials("auth_missing")},
		"the mechanism not":       {&server{afterTLS: map[string]turn{"AUTH": {say: "504 no\r\n"}}}, false, refusedCredentials("smtp_504")},
		"the password":            {&server{afterTLS: map[string]turn{"AG1haWxlcgBzM2NyZXQ=": {say: "535 5.7.8 s3cret is wrong for mailer\r\n"}}}, false, refusedCredentials("smtp_535")},
		"for now not":             {&server{afterTLS: map[string]turn{"AG1haWxlcgBzM2NyZXQ=": {say: "454 later\r\n"}}}, false, notSent("smtp_454")},
		"hangs up on the login":   {&server{afterTLS: map[string]turn{"AUTH": {hangUp: true}}}, false, notSent("connection_lost")},
		"asks for more than that": {&server{afterTLS: map[string]turn{"AG1haWxlcgBzM2NyZXQ=": {say: "334 more\r\n"}}}, false, notSent("smtp_334")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := secured(t, tt.server)
			if tt.distrust {
				p.trust = nil
			}
			request := prepare(t, p, someMail)
			if diff := cmp.Diff(tt.want, attempt(t.Context(), p, request)); diff != "" {
				t.Errorf("attempt (-want +got):\n%s", diff)
			}
			_, err := apply(t.Context(), p, request)
			wantNothingPersonal(t, err.Error())
			heard := strings.Join(tt.server.commands(0), "\n")
			if strings.Contains(heard, "MAIL") || len(tt.server.took()) != 0 {
				t.Errorf("the server heard\n%s", heard)
			}
			if !strings.Contains(heard, "STARTTLS\nEHLO") && strings.Contains(heard, "AUTH") {
				t.Errorf("a login without TLS:\n%s", heard)
			}
		})
	}
}

func TestExtensions(t *testing.T) {
	t.Parallel()
	foreign := someMail
	foreign.To = []string{"ünï@example.org"}
	for name, tt := range map[string]struct {
		extensions []string
		mail       providers.Email
		want       seen
		from       string
	}{
		"none needed":   {[]string{"HELP"}, someMail, seen{Verdict: ledger.Done}, "MAIL FROM:<support@example.com>"},
		"UTF-8":         {[]string{"8BITMIME", "smtputf8"}, foreign, seen{Verdict: ledger.Done}, "MAIL FROM:<support@example.com> BODY=8BITMIME SMTPUTF8"},
		"UTF-8 missing": {[]string{"8BITMIME"}, foreign, refused("smtputf8_missing"), ""},
		"small enough":  {[]string{"SIZE"}, someMail, seen{Verdict: ledger.Done}, "MAIL FROM:<support@example.com> SIZE="},
		"no limit":      {[]string{"SIZE 0"}, someMail, seen{Verdict: ledger.Done}, "MAIL FROM:<support@example.com> SIZE="},
		"too large":     {[]string{"SIZE 500"}, someMail, refused("message_too_large"), ""},
	} {
		s := &server{extensions: tt.extensions}
		p := provider(t, 25)
		p.dial = s.pipe(t)
		if diff := cmp.Diff(tt.want, attempt(t.Context(), p, prepare(t, p, tt.mail))); diff != "" {
			t.Errorf("%s: attempt (-want +got):\n%s", name, diff)
		}
		from := ""
		if heard := s.commands(0); len(heard) > 1 && strings.HasPrefix(heard[1], "MAIL") {
			from = strings.TrimRight(heard[1], "0123456789")
		}
		if strings.TrimRight(tt.from, "0123456789") != from {
			t.Errorf("%s: %q, want %q", name, from, tt.from)
		}
	}
}

func TestOldServer(t *testing.T) {
	t.Parallel()
	s := &server{script: map[string]turn{"EHLO": {say: "502 what?\r\n"}, "HELO": {say: "250 hi\r\n"}}}
	p := provider(t, 25)
	p.dial = s.pipe(t)
	if got := attempt(t.Context(), p, prepare(t, p, someMail)); got.Verdict != ledger.Done {
		t.Errorf("attempt = %v", got)
	}
	if got := s.commands(0); got[1] != "HELO app.example.com" || got[2] != "MAIL FROM:<support@example.com>" {
		t.Errorf("commands = %q", got)
	}
}
