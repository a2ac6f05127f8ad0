package smtp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// The peers are programs of others, on loopback.
const (
	mailpitSMTP = "ONCEWARD_TEST_MAILPIT_SMTP" // host:port
	mailpitHTTP = "ONCEWARD_TEST_MAILPIT_HTTP" // URL
	toxiproxy   = "ONCEWARD_TEST_TOXIPROXY"    // URL
	// Postfix sends a copy of each mail to Dovecot's mailbox, and the mail itself to mailpit.
	postfixSMTP     = "ONCEWARD_TEST_POSTFIX_SMTP" // host:port
	dovecotIMAP     = "ONCEWARD_TEST_DOVECOT_IMAP" // host:port
	dovecotUser     = "ONCEWARD_TEST_DOVECOT_USER"
	dovecotPassword = "ONCEWARD_TEST_DOVECOT_PASSWORD"
)

// peer is where a peer listens. Without one the test is skipped, but not where everything
// has to run.
func peer(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	switch {
	case value != "":
	case os.Getenv("CI") == "true":
		t.Fatalf("%s isn't set: start the peer and say where it is", variable)
	default:
		t.Skipf("%s isn't set", variable)
	}
	return strings.TrimSuffix(value, "/")
}

// to sends to host:port on this machine.
func to(t *testing.T, hostPort string) *Provider {
	t.Helper()
	_, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return provider(t, n)
}

// seed tells one run from another: the peers keep what earlier ones sent.
func seed() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }

// call asks a peer's HTTP interface.
func call(t *testing.T, method, address string, body any) []byte {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, address, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err = io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode > 299 {
		t.Fatalf("%s %s: %s, %v: %s", method, address, answer.Status, err, b)
	}
	return b
}

// stored are the texts of all mails with the id that mailpit has. Its search finds parts of
// words too.
func stored(t *testing.T, id string) (texts []string) {
	t.Helper()
	base, bare := peer(t, mailpitHTTP), strings.Trim(id, "<>")
	var found struct {
		Messages []struct{ ID, MessageID string }
	}
	answer := call(t, http.MethodGet, base+"/api/v1/search?query="+url.QueryEscape("message-id:"+bare), nil)
	if err := json.Unmarshal(answer, &found); err != nil {
		t.Fatal(err)
	}
	for _, m := range found.Messages {
		if m.MessageID == bare {
			texts = append(texts, string(call(t, http.MethodGet, base+"/api/v1/message/"+m.ID+"/raw", nil)))
		}
	}
	return texts
}

// A proxy is a line that can be broken.
type proxy struct {
	*testing.T
	api, name, listen string
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	p := &proxy{T: t, api: peer(t, toxiproxy), name: "onceward_" + seed()}
	answer := call(t, http.MethodPost, p.api+"/proxies", map[string]any{"name": p.name, "listen": "127.0.0.1:0", "upstream": upstream, "enabled": true})
	var made struct{ Listen string }
	if err := json.Unmarshal(answer, &made); err != nil {
		t.Fatal(err)
	}
	p.listen = made.Listen
	t.Cleanup(func() { call(t, http.MethodDelete, p.api+"/proxies/"+p.name, nil) })
	return p
}

// cut breaks every connection after so many bytes in a direction.
func (p *proxy) cut(stream string, after int64) {
	p.Helper()
	call(p.T, http.MethodPost, p.api+"/proxies/"+p.name+"/toxics", map[string]any{
		"name": "cut", "type": "limit_data", "stream": stream, "toxicity": 1, "attributes": map[string]any{"bytes": after},
	})
}

func (p *proxy) mend() {
	p.Helper()
	call(p.T, http.MethodDelete, p.api+"/proxies/"+p.name+"/toxics/cut", nil)
}

// untilReady counts the bytes that the server says until it waits for a message.
func untilReady(t *testing.T, p *Provider, mail providers.Email) int64 {
	t.Helper()
	var in atomic.Int64
	counting := *p
	counting.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := p.dial(ctx, network, address)
		return countingConn{conn, &in}, err
	}
	_, err := counting.Apply(t.Context(), providers.EmailSend, ledger.Attempt{
		Payload: ledger.Payload{Request: prepare(t, p, mail)}, MaySend: func() error { return ledger.ErrTooLate },
	})
	if !errors.Is(err, ledger.ErrTooLate) {
		t.Fatalf("the server isn't ready for a message: %v", err)
	}
	return in.Load()
}

type countingConn struct {
	net.Conn
	in *atomic.Int64
}

func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in.Add(int64(n))
	return n, err
}

func TestMailpit(t *testing.T) {
	t.Parallel()
	b := begin(t, to(t, peer(t, mailpitSMTP)), someMail, seed())
	b.want(come{ledger.Succeeded, "", 1, false})
	b.repeat()
	texts := stored(t, b.messageID())
	if len(texts) != 1 || !strings.Contains(texts[0], "\r\n.\r\n..and a line that begins with a dot\r\n.\r\n") {
		t.Errorf("mailpit has %q", texts)
	}
}

// TestMailpitLosesTheAnswer cuts the line one byte into the reply to the final dot. The
// mailbox is an in-process one that gets what mailpit has stored.
func TestMailpitLosesTheAnswer(t *testing.T) {
	t.Parallel()
	line := newProxy(t, peer(t, mailpitSMTP))
	user, port := mailboxes(t, nil, false)
	p := to(t, line.listen)
	p.mailbox = withMailbox(t, port).mailbox
	line.cut("downstream", untilReady(t, p, someMail)+1)
	b := begin(t, p, someMail, seed())
	b.want(come{ledger.Unknown, "connection_lost", 1, false})
	texts := stored(t, b.messageID())
	if len(texts) != 1 {
		t.Fatalf("mailpit has %d messages", len(texts))
	}
	line.mend()
	head, _, _ := strings.Cut(texts[0], "\r\n\r\n")
	put(t, user, "Sent", strings.ReplaceAll(head, "\r\n", "\n"))
	b.later()
	b.want(come{ledger.Succeeded, "", 1, false})
	b.repeat()
	if texts := stored(t, b.messageID()); len(texts) != 1 {
		t.Errorf("mailpit has %d messages", len(texts))
	}
}

// TestMailpitLosesHalfOfTheMessage cuts the line inside the message, which is too large for
// the buffers on the way.
func TestMailpitLosesHalfOfTheMessage(t *testing.T) {
	t.Parallel()
	line := newProxy(t, peer(t, mailpitSMTP))
	p := to(t, line.listen)
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := tcp(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetWriteBuffer(4096)
		}
		return conn, err
	}
	mail := someMail
	mail.Body, mail.HTML = strings.Repeat("строка текста\n", 10_000), strings.Repeat("строка текста\n", 10_000)
	line.cut("upstream", 100_000)
	b := begin(t, p, mail, seed())
	b.want(come{ledger.FailedRetryable, "connection_lost", 1, false})
	if texts := stored(t, b.messageID()); len(texts) != 0 {
		t.Fatalf("mailpit has %d messages", len(texts))
	}
	line.mend()
	b.later()
	b.repeat()
	b.want(come{ledger.Succeeded, "", 2, false})
	if texts := stored(t, b.messageID()); len(texts) != 1 {
		t.Errorf("mailpit has %d messages", len(texts))
	}
}

// TestPostfixLosesTheAnswer has a real queue and a real journal.
func TestPostfixLosesTheAnswer(t *testing.T) {
	t.Parallel()
	line := newProxy(t, peer(t, postfixSMTP))
	p := to(t, line.listen)
	p.mailbox = dovecot(t)
	line.cut("downstream", untilReady(t, p, someMail)+1)
	b := begin(t, p, someMail, seed())
	line.mend()
	id := b.messageID()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); { // the queue takes its time
		if found, err := p.find(t.Context(), id); err != nil || len(found.copies) > 0 {
			break
		}
	}
	b.later()
	b.want(come{ledger.Succeeded, "", 1, false})
	b.repeat()
	found, err := p.find(t.Context(), id)
	if err != nil || len(found.copies) != 1 || found.copies[0].origin == "" {
		t.Errorf("the journal has %+v, %v", found, err)
	}
}

// TestPostfixCopies sends for two recipients, and again as another message with the same
// id, as a person may have it done: the journal tells copies from messages.
func TestPostfixCopies(t *testing.T) {
	t.Parallel()
	p := to(t, peer(t, postfixSMTP))
	p.mailbox = dovecot(t)
	o := order(someMail)
	o.ProviderKey = "copies-" + seed()
	request, err := p.Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	question := ledger.Question{ProviderKey: o.ProviderKey, Payload: ledger.Payload{Request: request}}
	for _, want := range []providers.Mark{"", providers.Contradiction} {
		if _, err := apply(t.Context(), p, request); err != nil {
			t.Fatal(err)
		}
		var got error
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
			_, got = p.Lookup(t.Context(), providers.EmailSend, question)
			if want == "" && got == nil || want != "" && providers.MarkOf(got) == want {
				break
			}
		}
		if providers.MarkOf(got) != want || want == "" && got != nil {
			t.Fatalf("look-up: %v, want mark %q", got, want)
		}
	}
}

func dovecot(t *testing.T) *mailbox {
	t.Helper()
	host, port, err := net.SplitHostPort(peer(t, dovecotIMAP))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return &mailbox{host: host, port: n, mode: noTLS, name: "INBOX", login: login{
		providers.NewCredential(peer(t, dovecotUser)), providers.NewCredential(peer(t, dovecotPassword)),
	}}
}

// TestMailpitRefuses uses mailpit's chaos where it is switched on: a no, and a no for now.
func TestMailpitRefuses(t *testing.T) {
	if os.Getenv(mailpitHTTP) == "" && os.Getenv("CI") != "true" {
		t.Skipf("%s isn't set", mailpitHTTP)
	}
	address := peer(t, mailpitHTTP) + "/api/v1/chaos"
	chaos := func(step string, code, probability int) {
		call(t, http.MethodPut, address, map[string]any{step: map[string]int{"ErrorCode": code, "Probability": probability}})
	}
	defer chaos("Recipient", 451, 0)
	for _, tt := range []struct {
		code int
		want come
	}{
		{550, come{ledger.FailedFinal, "smtp_550", 1, false}},
		{451, come{ledger.FailedRetryable, "smtp_451", 1, false}},
	} {
		chaos("Recipient", tt.code, 100)
		b := begin(t, to(t, peer(t, mailpitSMTP)), someMail, fmt.Sprint(tt.code, seed()))
		b.want(tt.want)
		chaos("Recipient", tt.code, 0)
		id := b.messageID()
		sent := 0
		if tt.want.Status == ledger.FailedRetryable {
			sent = 1
			b.later()
		}
		b.repeat()
		if texts := stored(t, id); len(texts) != sent {
			t.Errorf("after %d mailpit has %d messages, want %d", tt.code, len(texts), sent)
		}
	}
}
