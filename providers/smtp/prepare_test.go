package smtp

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/providers"
)

// TestMessage pins the bytes: they are what mail programs and filters see, and what a
// retry of an operation from before an upgrade is compared with.
func TestMessage(t *testing.T) {
	t.Parallel()
	want := strings.ReplaceAll(`Date: Mon, 30 Nov 2026 10:00:00 +0000
MIME-Version: 1.0
Message-ID: <00112233445566778899aabbccddeeff@example.com>
Subject: Your refund
From: "Support" <support@example.com>
To: <alice@example.org>, <bob@example.org>
Cc: <carol@example.org>
Reply-To: <case-7@example.com>
Content-Type: multipart/alternative;
 boundary=onceward_932a2c33275853fe5ecf0fa38b57c7f9

--onceward_932a2c33275853fe5ecf0fa38b57c7f9
Content-Transfer-Encoding: quoted-printable
Content-Type: text/plain; charset=UTF-8

Hello,
.
..and a line that begins with a dot
.
Bye

--onceward_932a2c33275853fe5ecf0fa38b57c7f9
Content-Transfer-Encoding: quoted-printable
Content-Type: text/html; charset=UTF-8

<p>Hello</p>
--onceward_932a2c33275853fe5ecf0fa38b57c7f9--
`, "\n", "\r\n")
	mail := someMail
	mail.Cc, mail.ReplyTo = []string{"carol@example.org"}, "case-7@example.com"
	r, err := decodeRequest(prepare(t, provider(t, 25), mail))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(r.message)); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	envelope := envelopeJSON{MessageID: someID, From: "support@example.com", To: []string{"alice@example.org", "bob@example.org", "carol@example.org", "hidden@example.net"}}
	if diff := cmp.Diff(envelope, r.envelopeJSON); diff != "" {
		t.Errorf("envelope (-want +got):\n%s", diff)
	}
}

func TestHiddenRecipientsStayHidden(t *testing.T) {
	t.Parallel()
	mail := providers.Email{Bcc: []string{"hidden@example.net"}, Subject: "s", Body: "b"}
	r, err := decodeRequest(prepare(t, provider(t, 25), mail))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(r.message, []byte("hidden")) {
		t.Errorf("a hidden recipient is in the message:\n%s", r.message)
	}
	if diff := cmp.Diff([]string{"hidden@example.net"}, r.To); diff != "" {
		t.Errorf("envelope (-want +got):\n%s", diff)
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	p := provider(t, 25)
	with := func(change func(*providers.Email)) providers.Email {
		mail := someMail
		change(&mail)
		return mail
	}
	for field, mails := range map[string][]providers.Email{
		"subject": {
			with(func(m *providers.Email) { m.Subject = "hello\r\nBcc: eve@example.net" }),
			with(func(m *providers.Email) { m.Subject = "hello\nthere" }),
			with(func(m *providers.Email) { m.Subject = "a\x00b" }),
		},
		"to": {
			{Subject: "s", Body: "b"},
			with(func(m *providers.Email) { m.To = []string{"a@example.org>\r\nRCPT TO:<eve@example.net"} }),
			with(func(m *providers.Email) { m.To = []string{"a@example.org> NOTIFY=NEVER"} }),
			with(func(m *providers.Email) { m.To = []string{"Alice <a@example.org>"} }),
			with(func(m *providers.Email) { m.To = []string{"a@example.org,b@example.org"} }),
			with(func(m *providers.Email) { m.To = []string{`"a b"@example.org`} }),
			with(func(m *providers.Email) { m.To = []string{"a@b@example.org"} }),
			with(func(m *providers.Email) { m.To = []string{"a\xff@example.org"} }),
			with(func(m *providers.Email) { m.To = []string{""} }),
		},
		"cc":       {with(func(m *providers.Email) { m.Cc = []string{"no address"} })},
		"bcc":      {with(func(m *providers.Email) { m.Bcc = []string{"no address"} })},
		"reply_to": {with(func(m *providers.Email) { m.ReplyTo = "a@example.org\nX-Evil: 1" })},
	} {
		for _, mail := range mails {
			_, err := p.Prepare(order(mail))
			problem, ok := errors.AsType[*providers.ArgumentError](err)
			if !ok || problem.Field != field {
				t.Errorf("Prepare(%+v) = %v, want an *ArgumentError for %s", mail, err, field)
			}
		}
	}
	for name, change := range map[string]func(*providers.Order){
		"no time":          func(o *providers.Order) { o.At = time.Time{} },
		"no key":           func(o *providers.Order) { o.ProviderKey = "" },
		"a key with a >":   func(o *providers.Order) { o.ProviderKey = "a>b" },
		"another argument": func(o *providers.Order) { o.Arguments = providers.Refund{} },
	} {
		o := order(someMail)
		change(&o)
		if _, err := p.Prepare(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzPrepare has mails with anything in them. They are refused, or rendered so that
// independent readers find what was put in, and nothing else.
func FuzzPrepare(f *testing.F) {
	for _, s := range []string{
		"Hello", "  two  spaces ", "=?UTF-8?Q?Bcc:_eve?=", strings.Repeat("x", 998), strings.Repeat("Привет ", 60),
		"a\tb\x01", "\xff\xfe", "e\u0301\u202e", "--onceward_", ".", "\r\n.\r\nQUIT\r\n", "line\nline\r\nline\r.", "From me",
	} {
		f.Add(s, s, s, "alice@example.org")
	}
	f.Add("s", "b", "", "ünï@пример.example")
	f.Add("s", "b", "", "a@example.org\r\nBcc: eve@example.net")
	p, err := New(Config{Host: "127.0.0.1", TLS: "none", From: `"Suppört, Team" <support@example.com>`, Helo: "app.example.com"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, subject, body, html, to string) {
		mail := providers.Email{To: []string{to}, Bcc: []string{"hidden@example.net"}, Subject: subject, Body: body, HTML: html}
		request, err := p.Prepare(order(mail))
		if err != nil {
			if _, ok := errors.AsType[*providers.ArgumentError](err); !ok {
				t.Fatalf("Prepare: %v", err)
			}
			return
		}
		r, err := decodeRequest(request)
		if err != nil {
			t.Fatal(err)
		}
		wantWireSafe(t, r)
		m, err := netmail.ReadMessage(bytes.NewReader(r.message))
		if err != nil {
			t.Fatal(err)
		}
		wantHeaders(t, m.Header, html != "", mail)
		wantBodies(t, m, mail)
	})
}

// wantWireSafe wants lines that SMTP carries unchanged, and a message that ends once.
func wantWireSafe(t *testing.T, r request) {
	t.Helper()
	for line := range bytes.SplitSeq(bytes.TrimSuffix(r.stuffed(), []byte("\r\n")), []byte("\r\n")) {
		if len(line) > 998 || bytes.ContainsAny(line, "\r\n\x00") || string(line) == "." {
			t.Fatalf("a line that SMTP can't carry: %q", line)
		}
		if !r.UTF8 && bytes.ContainsFunc(line, func(c rune) bool { return c >= 0x80 }) {
			t.Fatalf("a line beyond ASCII in a message that is said to be ASCII: %q", line)
		}
	}
	unstuffed := bytes.ReplaceAll(append([]byte("\r\n"), r.stuffed()...), []byte("\r\n."), []byte("\r\n"))
	if !bytes.Equal(unstuffed[2:], r.message) {
		t.Fatal("the dots don't come off again")
	}
}

func wantHeaders(t *testing.T, h netmail.Header, multi bool, mail providers.Email) {
	t.Helper()
	names := map[string]int{"Date": 1, "Mime-Version": 1, "Message-Id": 1, "Subject": 1, "From": 1, "To": 1, "Content-Type": 1}
	if !multi {
		names["Content-Transfer-Encoding"] = 1
	}
	got := map[string]int{}
	for name, values := range h {
		got[name] = len(values)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Fatalf("headers (-want +got):\n%s", diff)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(h.Get("Subject"))
	if want := strings.ToValidUTF8(mail.Subject, ""); err != nil || strings.ToValidUTF8(strings.ReplaceAll(subject, "\ufffd", ""), "") != strings.ReplaceAll(want, "\ufffd", "") {
		t.Fatalf("subject = %q, %v; want %q", subject, err, want)
	}
	for field, want := range map[string]string{"From": "support@example.com", "To": mail.To[0]} {
		list, err := h.AddressList(field)
		if err != nil || len(list) != 1 || list[0].Address != want {
			t.Fatalf("%s = %q, %v; want %q", field, h.Get(field), err, want)
		}
	}
}

func wantBodies(t *testing.T, m *netmail.Message, mail providers.Email) {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	if mail.HTML == "" {
		text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		if kind != "text/plain" || err != nil || lines(string(text)) != lines(mail.Body) {
			t.Fatalf("text = %q, %v; want %q", text, err, mail.Body)
		}
		return
	}
	parts := multipart.NewReader(m.Body, parameters["boundary"])
	for _, want := range []string{mail.Body, mail.HTML} {
		part, err := parts.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(part)
		if err != nil || lines(string(text)) != lines(want) {
			t.Fatalf("part = %q, %v; want %q", text, err, want)
		}
	}
	if _, err := parts.NextPart(); err != io.EOF {
		t.Fatalf("a third part: %v", err)
	}
}

// lines compares texts as mail carries them: line ends are CRLF, and one may be added at
// the end.
func lines(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	return strings.TrimRight(s, "\n")
}
