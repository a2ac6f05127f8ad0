package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// mailboxes is an IMAP server with one user, by the library's authors.
func mailboxes(t *testing.T, secure *tls.Config, implicit bool) (user *imapmemserver.User, port int) {
	t.Helper()
	user = imapmemserver.NewUser("mailer", "s3cret")
	for _, name := range []string{"Sent", "Other"} {
		if err := user.Create(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	memory := imapmemserver.New()
	memory.AddUser(user)
	s := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		TLSConfig: secure, InsecureAuth: secure == nil, Logger: log.New(io.Discard, "", 0),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	if implicit {
		l = tls.NewListener(l, secure)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { s.Close(); <-served })
	return user, port
}

type literal struct{ *strings.Reader }

func (l literal) Size() int64 { return l.Reader.Size() }

// put stores a message with headers, and "\n" for its line ends.
func put(t *testing.T, user *imapmemserver.User, name, headers string) {
	t.Helper()
	text := strings.ReplaceAll(headers+"\n\nHello\n", "\n", "\r\n")
	if _, err := user.Append(name, literal{strings.NewReader(text)}, &imap.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}

func withMailbox(t *testing.T, port int) *Provider {
	t.Helper()
	p := provider(t, 25)
	p.mailbox = &mailbox{
		host: "127.0.0.1", port: port, mode: noTLS, name: "Sent",
		login: login{providers.NewCredential("mailer"), providers.NewCredential("s3cret")},
	}
	return p
}

// ask is what the ledger makes of a look-up.
func ask(ctx context.Context, p *Provider, request []byte) (ledger.Finding, seen) {
	actor, _ := providers.Actor(Name, "scope", providers.EmailSend, p)
	f := actor.Lookup(ctx, ledger.Question{ProviderKey: someKey, Payload: ledger.Payload{Request: request}})
	return f, seen{f.Verdict, f.Code, f.Alarm}
}

const (
	trace      = "Received: from app by mail.example.com with ESMTPSA id 4Xy1\n\tfor <alice@example.org>; Mon, 30 Nov 2026 10:00:01 +0000\n"
	traceAgain = "Received: from app by mail.example.com with ESMTPSA id 4Xy2; Mon, 30 Nov 2026 10:05:01 +0000\n"
	hop        = "Received: from mail.example.com by journal.example.com with LMTP id "
)

func TestLookup(t *testing.T) {
	t.Parallel()
	done := seen{Verdict: ledger.Done}
	head := "Message-ID: " + someID
	for name, tt := range map[string]struct {
		mails []string
		want  seen
		count float64
	}{
		"nothing":                  {nil, unclear("not_in_mailbox"), 0},
		"another mail":             {[]string{"Message-ID: <other@example.com>"}, unclear("not_in_mailbox"), 0},
		"no id":                    {[]string{"Subject: " + someID}, unclear("not_in_mailbox"), 0},
		"a longer id":              {[]string{"Message-ID: <x" + someID[1:]}, unclear("not_in_mailbox"), 0},
		"an id that quotes it":     {[]string{`Message-ID: <"` + someID + `"@example.com>`}, unclear("not_in_mailbox"), 0},
		"another letter case":      {[]string{strings.ToUpper(head)}, unclear("not_in_mailbox"), 0},
		"an answer to it":          {[]string{"Message-ID: <other@example.com>\nIn-Reply-To: " + someID}, unclear("not_in_mailbox"), 0},
		"the mail":                 {[]string{head}, done, 1},
		"the mail among others":    {[]string{"Message-ID: <x" + someID[1:], trace + head, "Message-ID: <y@example.com>"}, done, 1},
		"a copy per recipient":     {[]string{hop + "a\n" + trace + head, hop + "b\n" + trace + head}, done, 2},
		"copies without a trace":   {[]string{head, head}, done, 2},
		"copies, one was refolded": {[]string{trace + head, strings.ReplaceAll(trace, "\n\t", " ") + head}, done, 2},
		"two messages":             {[]string{hop + "a\n" + trace + head, hop + "b\n" + traceAgain + head}, seen{ledger.Contradiction, "two_messages", "contradiction"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, port := mailboxes(t, nil, false)
			for _, mail := range tt.mails {
				put(t, user, "Sent", mail)
			}
			put(t, user, "Other", head) // another mailbox proves nothing
			p := withMailbox(t, port)
			f, got := ask(t.Context(), p, prepare(t, p, someMail))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("look-up (-want +got):\n%s", diff)
			}
			if got.Verdict != ledger.Done {
				return
			}
			if diff := cmp.Diff([]any{someID, "accepted", ledger.Settled, map[string]any{"recipients": 3.0}},
				[]any{f.Receipt.ProviderOperationID, f.Receipt.ProviderStatus, f.Receipt.State, compact(t, f.Receipt.Result)}); diff != "" {
				t.Errorf("receipt (-want +got):\n%s", diff)
			}
			evidence := compact(t, f.Receipt.Evidence)
			if evidence["lookup"] != "mailbox" || evidence["copies"] != tt.count || evidence["provider_operation_id"] != someID {
				t.Errorf("evidence = %v", evidence)
			}
			wantNothingPersonal(t, string(f.Receipt.Evidence), string(f.Receipt.Result))
		})
	}
}

// TestLookupWithoutPayload has an operation whose request was erased: the key is enough.
func TestLookupWithoutPayload(t *testing.T) {
	t.Parallel()
	user, port := mailboxes(t, nil, false)
	put(t, user, "Sent", "Message-ID: "+someID)
	f, got := ask(t.Context(), withMailbox(t, port), nil)
	if got.Verdict != ledger.Done || f.Receipt.Result != nil {
		t.Errorf("look-up = %v with result %s", got, f.Receipt.Result)
	}
}

// TestLookupChangesNothing looks at what is said, and at the flags afterwards.
func TestLookupChangesNothing(t *testing.T) {
	t.Parallel()
	user, port := mailboxes(t, nil, false)
	put(t, user, "Sent", "Message-ID: "+someID)
	p := withMailbox(t, port)
	said := &overheard{}
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := tcp(ctx, network, address)
		said.Conn = conn
		return said, err
	}
	if _, got := ask(t.Context(), p, nil); got.Verdict != ledger.Done {
		t.Fatalf("look-up = %v", got)
	}
	if !strings.Contains(said.out.String(), " EXAMINE ") || strings.Contains(said.out.String(), " SELECT ") {
		t.Errorf("the mailbox wasn't opened for reading only:\n%s", said.out.String())
	}
	client, err := imapclient.DialInsecure(address("127.0.0.1", port), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Login("mailer", "s3cret").Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Select("Sent", nil).Wait(); err != nil {
		t.Fatal(err)
	}
	messages, err := client.Fetch(imap.SeqSetNum(1), &imap.FetchOptions{Flags: true}).Collect()
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range messages[0].Flags {
		if flag == imap.FlagSeen {
			t.Error("the look-up marked the mail as read")
		}
	}
}

// An overheard connection keeps what goes out.
type overheard struct {
	net.Conn
	out strings.Builder
}

func (o *overheard) Write(b []byte) (int, error) {
	o.out.Write(b)
	return o.Conn.Write(b)
}

// TestLookupLearnsNothing has all that can be in the way. None of it says that there is no
// mail.
func TestLookupLearnsNothing(t *testing.T) {
	t.Parallel()
	_, port := mailboxes(t, nil, false)
	for name, tt := range map[string]struct {
		change func(*Provider)
		want   seen
	}{
		"unreachable":       {func(p *Provider) { p.dial = fails(errBroken) }, unclear("connection_lost")},
		"no such host":      {func(p *Provider) { p.dial = fails(&net.DNSError{Err: "no such host"}) }, unclear("host_not_found")},
		"another password":  {func(p *Provider) { p.mailbox.login.password = providers.NewCredential("wrong") }, seen{ledger.Unclear, "imap_login_refused", "imap_login_refused"}},
		"no such mailbox":   {func(p *Provider) { p.mailbox.name = "Nowhere" }, seen{ledger.Unclear, "mailbox_unavailable", "mailbox_unavailable"}},
		"no STARTTLS":       {func(p *Provider) { p.mailbox.mode = startTLS }, unclear("connection_lost")},
		"no TLS":            {func(p *Provider) { p.mailbox.mode = implicitTLS }, unclear("connection_lost")},
		"another protocol":  {func(p *Provider) { p.mailbox.port = (&server{}).start(t) }, unclear("connection_lost")},
		"broken on the way": {func(p *Provider) { p.dial = breaks(300) }, unclear("connection_lost")},
		"too slow": {func(p *Provider) {
			p.timing.Deadline, p.mailbox.port = 1, (&server{script: map[string]turn{"connect": {hang: true}}}).start(t)
		}, unclear("timeout")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := withMailbox(t, port)
			tt.change(p)
			_, got := ask(t.Context(), p, nil)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("look-up (-want +got):\n%s", diff)
			}
			_, err := p.Lookup(t.Context(), providers.EmailSend, ledger.Question{ProviderKey: someKey})
			if err == nil || errors.Is(err, providers.ErrAbsent) {
				t.Fatalf("error = %v", err)
			}
			wantNothingPersonal(t, err.Error())
		})
	}
}

// breaks dials TCP connections that break when so many bytes have come in.
func breaks(in int) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := tcp(ctx, network, address)
		return &brittle{Conn: conn, out: -1, in: in}, err
	}
}

func TestLookupEncrypted(t *testing.T) {
	t.Parallel()
	for mode, implicit := range map[tlsMode]bool{startTLS: false, implicitTLS: true} {
		own, trust := certificate(t)
		user, port := mailboxes(t, own, implicit)
		put(t, user, "Sent", "Message-ID: "+someID)
		p := withMailbox(t, port)
		p.mailbox.mode, p.trust = mode, trust
		if _, got := ask(t.Context(), p, nil); got.Verdict != ledger.Done {
			t.Errorf("%s: look-up = %v", mode, got)
		}
		p.trust = nil
		if _, got := ask(t.Context(), p, nil); got != unclear("certificate_refused") {
			t.Errorf("%s, a stranger: look-up = %v", mode, got)
		}
	}
}

func TestLookupNotConfigured(t *testing.T) {
	t.Parallel()
	_, err := provider(t, 25).Lookup(t.Context(), providers.EmailSend, ledger.Question{ProviderKey: someKey})
	if err == nil || errors.Is(err, providers.ErrAbsent) {
		t.Errorf("error = %v", err)
	}
}
