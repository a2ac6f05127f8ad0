package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"slices"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Apply implements [providers.Provider]: one connection, one message. Until its final dot
// is written nothing has happened, whatever breaks; from then on only the server's whole
// reply tells. All recipients are one envelope: one that is refused ends the attempt before
// DATA, because a mail that some of them have got can't be tried again.
func (p *Provider) Apply(ctx context.Context, action string, a ledger.Attempt) (ledger.Receipt, error) {
	r, err := decodeRequest(a.Payload.Request)
	if err != nil || action != providers.EmailSend {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "request_unreadable", Err: err}
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.timing.Deadline)
		defer cancel()
	}
	// 1. A server that has taken the whole envelope.
	s, err := p.open(ctx)
	if err != nil {
		return ledger.Receipt{}, classify(errors.Join(err, ctx.Err()))
	}
	if err := s.offer(r); err != nil {
		s.abandon(err)
		return ledger.Receipt{}, classify(errors.Join(err, ctx.Err()))
	}
	// 2. The message.
	return s.deliver(ctx, r, a.MaySend)
}

// open dials, secures and logs in.
func (p *Provider) open(ctx context.Context) (*session, error) {
	w, err := p.dial.connect(ctx, address(p.host, p.port))
	if err != nil {
		return nil, err
	}
	s, err := p.enter(ctx, w)
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	return s, nil
}

func (p *Provider) enter(ctx context.Context, w *wire) (*session, error) {
	s := newSession(w, w)
	if p.mode == implicitTLS {
		conn := tls.Client(w, tlsFor(p.host, p.trust))
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		s = newSession(w, conn)
	}
	r, err := s.read()
	if err != nil {
		return nil, err
	}
	if r.code != 220 {
		return nil, &failure{reply: r, step: greeting}
	}
	if err := s.hello(p.helo); err != nil {
		return nil, err
	}
	if p.mode == startTLS {
		if err := s.secure(ctx, tlsFor(p.host, p.trust)); err != nil {
			return nil, err
		}
		if err := s.hello(p.helo); err != nil {
			return nil, err
		}
	}
	if p.login.isZero() {
		return s, nil
	}
	return s, s.authenticate(p.login)
}

// offer asks the server to take this envelope.
func (s *session) offer(r request) error {
	if r.UTF8 && !s.has("SMTPUTF8") {
		return errNoUTF8
	}
	if limit := s.sizeLimit(); limit > 0 && len(r.message) > limit {
		return errTooBig
	}
	answer, err := s.mail(r)
	if err := hope(answer, err, 250); err != nil {
		return err
	}
	for _, to := range r.To {
		answer, err := s.command("RCPT TO:<" + to + ">")
		if err := hope(answer, err, 250, 251, 252); err != nil {
			return err
		}
	}
	return nil
}

// hope turns a reply that isn't one of codes into an error.
func hope(answer reply, err error, codes ...int) error {
	if err == nil && !slices.Contains(codes, answer.code) {
		err = &failure{reply: answer, step: transaction}
	}
	return err
}

// abandon ends a session before DATA. It says QUIT only to a server that has just answered.
func (s *session) abandon(why error) {
	var f *failure
	if errors.As(why, &f) || errors.Is(why, errNoUTF8) || errors.Is(why, errTooBig) {
		s.bye()
		return
	}
	_ = s.wire.Close()
}

// deliver sends the message. From DATA on the socket is closed on any error, and not a byte
// more is said: a server that waits for a message must not read another one.
func (s *session) deliver(ctx context.Context, r request, maySend func() error) (ledger.Receipt, error) {
	defer func() { _ = s.wire.Close() }()
	ready, err := s.command("DATA")
	if err := hope(ready, err, 354); err != nil {
		return ledger.Receipt{}, classify(errors.Join(err, ctx.Err()))
	}
	if err := maySend(); err != nil {
		return ledger.Receipt{}, err
	}
	if _, err := s.out.Write(r.stuffed()); err != nil {
		return ledger.Receipt{}, classify(errors.Join(err, ctx.Err()))
	}
	// The dot is written alone: whatever breaks before this line left half a message.
	before := s.wire.out.Load()
	if _, err := io.WriteString(s.out, ".\r\n"); err != nil {
		err = errors.Join(err, ctx.Err())
		if s.wire.out.Load() == before {
			return ledger.Receipt{}, classify(err)
		}
		return ledger.Receipt{}, doubt(err)
	}
	answer, err := s.read()
	if err != nil {
		return ledger.Receipt{}, doubt(errors.Join(err, ctx.Err()))
	}
	if !answer.isPositive() {
		return ledger.Receipt{}, classify(&failure{reply: answer, step: finalDot})
	}
	// From here on nothing can change what was answered.
	s.bye()
	return accepted(r, answer), nil
}
