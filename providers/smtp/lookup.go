package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	netmail "net/mail"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A mailbox keeps a copy of what was sent.
type mailbox struct {
	host  string
	port  int
	mode  tlsMode
	login login
	name  string
}

// maxHits bounds what one search may bring. More than a handful is somebody's game.
const maxHits = 100

// Lookup implements [providers.Provider]: it looks for the Message-ID in the mailbox. A hit
// proves that the server had the mail. No hit proves nothing: the copy may be queued, sorted
// elsewhere or deleted; so this never returns [providers.ErrAbsent].
func (p *Provider) Lookup(ctx context.Context, _ string, q ledger.Question) (ledger.Receipt, error) {
	if p.mailbox == nil {
		return ledger.Receipt{}, &providers.Error{Code: "no_lookup"}
	}
	id, recipients := p.messageID(q.ProviderKey), 0
	if r, err := decodeRequest(q.Payload.Request); err == nil {
		id, recipients = r.MessageID, len(r.To)
	}
	ctx, cancel := context.WithTimeout(ctx, p.timing.Deadline)
	defer cancel()
	found, err := p.find(ctx, id)
	switch {
	case err != nil:
		return ledger.Receipt{}, learntNothing(errors.Join(err, ctx.Err()))
	case len(found.copies) == 0:
		return ledger.Receipt{}, &providers.Error{Code: "not_in_mailbox"}
	case found.differ():
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: "two_messages"}
	}
	return receipt(id, recipients, proof{
		Lookup: "mailbox", UIDValidity: found.validity, UID: uint32(found.copies[0].uid), Copies: len(found.copies),
	}), nil
}

// copies are the messages in the mailbox that have the Message-ID.
type copies struct {
	validity uint32
	copies   []mailCopy
}

type mailCopy struct {
	uid imap.UID
	// origin is the oldest trace line: what the first server wrote when it took the message
	// on. A journal may hold several copies of one message, and they share it.
	origin string
}

// differ reports whether the copies are of two messages: a server that took one on twice
// wrote two different traces. Without traces it can't be told, and one is proven anyway.
func (c copies) differ() bool {
	for _, m := range c.copies {
		if m.origin != c.copies[0].origin {
			return true
		}
	}
	return false
}

// find opens the mailbox for reading only and looks for id, which has angle brackets.
func (p *Provider) find(ctx context.Context, id string) (copies, error) {
	m := p.mailbox
	client, err := m.open(ctx, p.dial, tlsFor(m.host, p.trust))
	if err != nil {
		return copies{}, err
	}
	defer func() { _ = client.Close() }()
	if err := client.Login(m.login.username.Reveal(), m.login.password.Reveal()).Wait(); err != nil {
		return copies{}, &mailboxError{err, "imap_login_refused"}
	}
	selected, err := client.Select(m.name, &imap.SelectOptions{ReadOnly: true}).Wait()
	if err != nil {
		return copies{}, &mailboxError{err, "mailbox_unavailable"}
	}
	found := copies{validity: selected.UIDValidity}
	hits, err := client.UIDSearch(&imap.SearchCriteria{
		Header: []imap.SearchCriteriaHeaderField{{Key: "Message-Id", Value: id}},
	}, nil).Wait()
	if err != nil {
		return copies{}, err
	}
	uids := hits.AllUIDs()
	if len(uids) == 0 {
		return found, nil
	}
	if len(uids) > maxHits {
		return copies{}, &mailboxError{errors.New("smtp: too many hits"), "too_many_hits"}
	}
	trace := &imap.FetchItemBodySection{Specifier: imap.PartSpecifierHeader, HeaderFields: []string{"Received"}, Peek: true}
	messages, err := client.Fetch(imap.UIDSetNum(uids...), &imap.FetchOptions{
		UID: true, Envelope: true, BodySection: []*imap.FetchItemBodySection{trace},
	}).Collect()
	if err != nil {
		return copies{}, err
	}
	for _, message := range messages {
		// The search finds parts of words, in any letter case: only the envelope tells.
		if message.Envelope != nil && message.Envelope.MessageID == strings.Trim(id, "<>") {
			found.copies = append(found.copies, mailCopy{message.UID, origin(message.FindBodySection(trace))})
		}
	}
	return found, nil
}

func (m *mailbox) open(ctx context.Context, dial dialer, config *tls.Config) (*imapclient.Client, error) {
	w, err := dial.connect(ctx, address(m.host, m.port))
	if err != nil {
		return nil, err
	}
	switch m.mode {
	case startTLS:
		return imapclient.NewStartTLS(w, &imapclient.Options{TLSConfig: config})
	case implicitTLS:
		conn := tls.Client(w, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, w.Close())
		}
		return imapclient.New(conn, nil), nil
	default:
		return imapclient.New(w, nil), nil
	}
}

// origin is the last Received line, without its folding; "" if there is none.
func origin(header []byte) string {
	m, err := netmail.ReadMessage(strings.NewReader(string(header) + "\r\n"))
	if err != nil {
		return ""
	}
	traces := m.Header["Received"]
	if len(traces) == 0 {
		return ""
	}
	return strings.Join(strings.Fields(traces[len(traces)-1]), " ")
}

// A mailboxError is why a mailbox couldn't be read.
type mailboxError struct {
	err  error
	code string
}

func (e *mailboxError) Error() string { return "smtp: " + e.code }

func (e *mailboxError) Unwrap() error { return e.err }

// learntNothing names why. A server that says NO is one whose settings a person must see to.
func learntNothing(err error) error {
	e := &providers.Error{Code: lostCode(err), Err: err}
	var said *imap.Error
	if m, ok := errors.AsType[*mailboxError](err); ok && (errors.As(err, &said) || m.code == "too_many_hits") {
		e.Code, e.Alarm = m.code, m.code
	}
	return e
}
