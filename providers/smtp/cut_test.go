package smtp

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/onceward/onceward/ledger"
)

// TestEveryCut breaks the line after each byte, in each direction. Whatever the server took
// on must be known or in doubt, never "not sent"; and what it took on is whole.
func TestEveryCut(t *testing.T) {
	t.Parallel()
	p := provider(t, 25)
	mail := someMail
	mail.HTML = ""
	request := prepare(t, p, mail)
	r, err := decodeRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]map[ledger.Verdict]int{"out": {}, "in": {}}
	for direction, seenHere := range verdicts {
		for n := 0; ; n++ {
			s := &server{}
			dial := s.pipe(t)
			line := &brittle{out: -1, in: -1}
			if direction == "out" {
				line.out = n
			} else {
				line.in = n
			}
			p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				line.Conn = conn
				return line, err
			}
			got := attempt(t.Context(), p, request).Verdict
			took := s.took()
			switch {
			case len(took) > 1:
				t.Fatalf("%s cut after %d bytes: %d messages", direction, n, len(took))
			case len(took) == 1 && took[0].text != string(r.message):
				t.Fatalf("%s cut after %d bytes: half a message was taken on:\n%s", direction, n, took[0].text)
			case len(took) == 1 && got != ledger.Done && got != ledger.Unclear:
				t.Fatalf("%s cut after %d bytes: the server took the message, and the attempt says %s", direction, n, got)
			case len(took) == 0 && got == ledger.Done:
				t.Fatalf("%s cut after %d bytes: the server took nothing, and the attempt says %s", direction, n, got)
			}
			seenHere[got]++
			if heard := s.commands(0); len(heard) > 0 && heard[len(heard)-1] == "QUIT" {
				break // the line outlasted the session
			}
		}
	}
	// Only the dot itself is in doubt on the way out: three bytes, the last of which may have
	// arrived. On the way in, it is all bytes of the last reply.
	if out := verdicts["out"]; out[ledger.Unclear] > 3 || out[ledger.NotSent] < 500 {
		t.Errorf("verdicts by cuts on the way out: %v", out)
	}
	if in := verdicts["in"]; in[ledger.Unclear] < 20 || in[ledger.NotSent] < 100 {
		t.Errorf("verdicts by cuts on the way in: %v", in)
	}
}

// TestContextEndsInsideTheMessage ends the attempt when the server has read half of a
// message, and reads what else there is when the attempt is over.
func TestContextEndsInsideTheMessage(t *testing.T) {
	t.Parallel()
	half, over := make(chan struct{}), make(chan struct{})
	s := &server{body: half, bodyAt: 2000, resume: over}
	p := provider(t, 25)
	p.dial = s.pipe(t)
	mail := someMail
	mail.Body = strings.Repeat("a line of text\n", 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-half
		cancel()
	}()
	got := attempt(ctx, p, prepare(t, p, mail))
	close(over)
	if got.Verdict != ledger.NotSent {
		t.Errorf("verdict = %s, want %s", got.Verdict, ledger.NotSent)
	}
	if took := s.took(); len(took) != 0 || s.halves != 1 {
		t.Errorf("%d messages and %d halves came, want one half", len(took), s.halves)
	}
}

// TestHalfWrittenNeverEnds breaks only the writer, so that anything said afterwards would
// reach the server: a QUIT, or a dot, would make it take half a message.
func TestHalfWrittenNeverEnds(t *testing.T) {
	t.Parallel()
	s := &server{}
	p := provider(t, 25)
	dial := s.pipe(t)
	var line *refusing
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		line = &refusing{Conn: conn}
		return line, err
	}
	if got := attempt(t.Context(), p, prepare(t, p, someMail)); got.Verdict != ledger.NotSent {
		t.Errorf("verdict = %s, want %s", got.Verdict, ledger.NotSent)
	}
	if len(s.took()) != 0 || line.after != 0 {
		t.Errorf("the server took %d messages; %d writes came after the failed one", len(s.took()), line.after)
	}
}

// A refusing connection takes half of the message, fails once, and would take more.
type refusing struct {
	net.Conn
	failed bool
	after  int
}

func (r *refusing) Write(b []byte) (int, error) {
	if r.failed {
		r.after++
		return r.Conn.Write(b)
	}
	if !bytes.Contains(b, []byte("Message-ID: ")) {
		return r.Conn.Write(b)
	}
	r.failed = true
	n, err := r.Conn.Write(b[:len(b)/2])
	if err == nil {
		err = errBroken
	}
	return n, err
}

// TestDotFails has the write of the final dot fail after so many of its bytes have gone.
func TestDotFails(t *testing.T) {
	t.Parallel()
	for gone, want := range map[int]ledger.Verdict{0: ledger.NotSent, 1: ledger.Unclear, 2: ledger.Unclear, 3: ledger.Unclear} {
		s := &server{}
		p := provider(t, 25)
		dial := s.pipe(t)
		p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return dotless{conn, gone}, err
		}
		if got := attempt(t.Context(), p, prepare(t, p, someMail)); got.Verdict != want {
			t.Errorf("%d bytes of the dot gone: verdict = %s, want %s", gone, got.Verdict, want)
		}
		if took := len(s.took()); took != gone/3 {
			t.Errorf("%d bytes of the dot gone: the server took %d messages", gone, took)
		}
	}
}

// A dotless connection fails when the final dot is written.
type dotless struct {
	net.Conn
	gone int
}

func (d dotless) Write(b []byte) (int, error) {
	if string(b) != ".\r\n" {
		return d.Conn.Write(b)
	}
	n, err := d.Conn.Write(b[:d.gone])
	if err == nil {
		err = errBroken
	}
	return n, err
}
