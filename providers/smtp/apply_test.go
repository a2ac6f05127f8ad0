package smtp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

func notSent(code string) seen { return seen{Verdict: ledger.NotSent, Code: code} }
func refused(code string) seen { return seen{Verdict: ledger.Refused, Code: code} }
func unclear(code string) seen { return seen{Verdict: ledger.Unclear, Code: code} }

// TestReplies has each step answered in each way, and counts what the server took on. The
// expectations are RFC 5321's: no final dot, no message; a whole 4yz or 5yz to the message,
// no message; anything else after the dot, nobody knows.
func TestReplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		step string
		do   turn
		want seen
		took int
	}{
		{"connect", turn{say: "421 too busy\r\n"}, notSent("smtp_421"), 0},
		{"connect", turn{say: "554 no service\r\n"}, notSent("smtp_554"), 0},
		{"connect", turn{hangUp: true}, notSent("connection_lost"), 0},
		{"connect", turn{say: "HTTP/1.1 400 Bad Request\r\n"}, notSent("connection_lost"), 0},
		{"connect", turn{say: "22", hangUp: true}, notSent("connection_lost"), 0},
		{"connect", turn{hang: true}, notSent("timeout"), 0},
		{"EHLO", turn{say: "421 later\r\n"}, notSent("smtp_421"), 0},
		{"EHLO", turn{say: "550 not you\r\n"}, notSent("smtp_550"), 0},
		{"EHLO", turn{hangUp: true}, notSent("connection_lost"), 0},
		{"MAIL", turn{say: "451 later\r\n"}, notSent("smtp_451"), 0},
		{"MAIL", turn{say: "421 closing\r\n", hangUp: true}, notSent("smtp_421"), 0},
		{"MAIL", turn{say: "550 no\r\n"}, refused("smtp_550"), 0},
		{"MAIL", turn{say: "530 5.7.0 log in first\r\n"}, seen{ledger.NotSent, "smtp_530", "credentials_refused"}, 0},
		{"MAIL", turn{say: "354 go on\r\n"}, notSent("smtp_354"), 0},
		{"MAIL", turn{hangUp: true}, notSent("connection_lost"), 0},
		{"RCPT", turn{say: "450 mailbox busy\r\n"}, notSent("smtp_450"), 0},
		{"RCPT", turn{say: "451 later\r\n"}, notSent("smtp_451"), 0},
		{"RCPT", turn{say: "452 too many\r\n"}, notSent("smtp_452"), 0},
		{"RCPT", turn{say: "550 no such user\r\n"}, refused("smtp_550"), 0},
		{"RCPT", turn{say: "251 will forward\r\n"}, seen{Verdict: ledger.Done}, 1},
		{"RCPT hidden@example.net", turn{say: "550 no such user\r\n"}, refused("smtp_550"), 0},
		{"RCPT bob@example.org", turn{say: "450 later\r\n"}, notSent("smtp_450"), 0},
		{"RCPT", turn{hangUp: true}, notSent("connection_lost"), 0},
		{"DATA", turn{say: "451 later\r\n"}, notSent("smtp_451"), 0},
		{"DATA", turn{say: "554 no valid recipients\r\n"}, refused("smtp_554"), 0},
		{"DATA", turn{say: "250 what?\r\n"}, notSent("smtp_250"), 0},
		{"DATA", turn{hangUp: true}, notSent("connection_lost"), 0},
		{"DATA", turn{hang: true}, notSent("timeout"), 0},
		{"DATA", turn{say: "35", hangUp: true}, notSent("connection_lost"), 0},

		{".", turn{say: "250 Ok\r\n"}, seen{Verdict: ledger.Done}, 1},
		{".", turn{say: "250-Ok\r\n250 queued\r\n"}, seen{Verdict: ledger.Done}, 1},
		{".", turn{say: "252 taken on\r\n", keep: true}, seen{Verdict: ledger.Done}, 1},
		{".", turn{say: "250 Ok\r\n", hangUp: true}, seen{Verdict: ledger.Done}, 1},
		{".", turn{say: "451 later\r\n"}, notSent("smtp_451"), 0},
		{".", turn{say: "421 closing\r\n", hangUp: true}, notSent("smtp_421"), 0},
		{".", turn{say: "552 too big\r\n"}, refused("smtp_552"), 0},
		{".", turn{say: "554 looks like spam\r\n"}, refused("smtp_554"), 0},
		{".", turn{say: "530 5.7.0 log in first\r\n"}, seen{ledger.NotSent, "smtp_530", "credentials_refused"}, 0},

		{".", turn{hangUp: true, keep: true}, unclear("connection_lost"), 1},
		{".", turn{hangUp: true}, unclear("connection_lost"), 0},
		{".", turn{hang: true, keep: true}, unclear("timeout"), 1},
		{".", turn{hang: true}, unclear("timeout"), 0},
		{".", turn{say: "2", hangUp: true, keep: true}, unclear("connection_lost"), 1},
		{".", turn{say: "250 Ok", hangUp: true}, unclear("connection_lost"), 1},
		{".", turn{say: "250-Ok\r\n", hangUp: true}, unclear("connection_lost"), 1},
		{".", turn{say: "5", hangUp: true}, unclear("connection_lost"), 0},
		{".", turn{say: "550 no", hangUp: true}, unclear("connection_lost"), 0},
		{".", turn{say: "Ok\r\n", keep: true}, unclear("connection_lost"), 1},
		{".", turn{say: "354 go on\r\n", keep: true}, unclear("smtp_354"), 1},
		{".", turn{say: "150 working\r\n", keep: true}, unclear("connection_lost"), 1},
		{".", turn{say: "650 what\r\n", keep: true}, unclear("connection_lost"), 1},

		{"QUIT", turn{hangUp: true}, seen{Verdict: ledger.Done}, 1},
		{"QUIT", turn{say: "550 no way\r\n"}, seen{Verdict: ledger.Done}, 1},
	} {
		t.Run(fmt.Sprintf("%s %q", tt.step, tt.do.say), func(t *testing.T) {
			t.Parallel()
			s := &server{script: map[string]turn{tt.step: tt.do}}
			p := provider(t, 25)
			p.dial = s.pipe(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if strings.HasSuffix(tt.want.Code, "timeout") {
				ctx, cancel = impatient(t.Context())
				defer cancel()
			}
			if diff := cmp.Diff(tt.want, attempt(ctx, p, prepare(t, p, someMail))); diff != "" {
				t.Errorf("attempt (-want +got):\n%s", diff)
			}
			if got := len(s.took()); got != tt.took {
				t.Errorf("the server took %d messages, want %d", got, tt.took)
			}
			if heard := s.commands(0); slices.Contains(heard, "DATA") && slices.Contains(heard, "QUIT") && tt.want.Verdict != ledger.Done {
				t.Errorf("QUIT after a DATA that failed: %q", heard)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	p := provider(t, (&server{}).start(t))
	closed := provider(t, 1) // tcpmux; nobody listens
	for want, dial := range map[seen]dialer{
		notSent("connection_lost"): closed.dial,
		notSent("timeout"):         fails(context.DeadlineExceeded),
	} {
		closed.dial = dial
		if diff := cmp.Diff(want, attempt(t.Context(), closed, prepare(t, p, someMail))); diff != "" {
			t.Errorf("attempt (-want +got):\n%s", diff)
		}
	}
}

func TestAcceptedReceipt(t *testing.T) {
	t.Parallel()
	for say, queue := range map[string]any{
		"250 2.0.0 Ok: queued as 4XyZab12\r\n":               "4XyZab12",
		"250 OK id=1tHk2p-000000001aB-2cDe\r\n":              "1tHk2p-000000001aB-2cDe",
		"250 2.0.0 Ok\r\n":                                   nil,
		"250 Ok: queued as <alice@example.org> by bob\r\n":   nil,
		"250 queued as " + strings.Repeat("x", 300) + "\r\n": nil,
	} {
		s := &server{script: map[string]turn{".": {say: say}}}
		p := provider(t, s.start(t))
		r, err := apply(t.Context(), p, prepare(t, p, someMail))
		if err != nil {
			t.Fatal(err)
		}
		evidence := map[string]any{"provider": "smtp", "answer": "250", "provider_operation_id": someID}
		if queue != nil {
			evidence["queue_id"] = queue
		}
		got := []any{r.ProviderOperationID, r.ProviderStatus, r.State, compact(t, r.Result), compact(t, r.Evidence), compact(t, r.Reference)}
		want := []any{someID, "accepted", ledger.Settled, map[string]any{"recipients": 3.0}, evidence, map[string]any(nil)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: receipt (-want +got):\n%s", say, diff)
		}
		wantNothingPersonal(t, string(r.Result), string(r.Evidence))
	}
}

// TestAttemptsAreIdentical makes three attempts, by two providers, of which the first two
// fail for now.
func TestAttemptsAreIdentical(t *testing.T) {
	t.Parallel()
	s := &server{script: map[string]turn{".": {say: "451 later\r\n", keep: true}}}
	port := s.start(t)
	first, second := provider(t, port), provider(t, port)
	request := prepare(t, first, someMail)
	if again := prepare(t, second, someMail); !cmp.Equal(request, again) {
		t.Error("the same order was rendered in two ways")
	}
	for i, p := range []*Provider{first, second, first} {
		if i == 2 {
			s.rewrite(nil)
		}
		attempt(t.Context(), p, request)
	}
	took := s.took()
	if len(took) != 3 {
		t.Fatalf("the server took %d messages, want 3", len(took))
	}
	for _, m := range took[1:] {
		if diff := cmp.Diff(took[0], m, cmp.AllowUnexported(message{})); diff != "" {
			t.Errorf("another attempt (-first +later):\n%s", diff)
		}
	}
	if !strings.Contains(took[0].text, "Message-ID: "+someID+"\r\n") {
		t.Errorf("no Message-ID %s in\n%s", someID, took[0].text)
	}
}

// TestEnvelope has one transaction for all recipients, and the commands in order.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	s := &server{}
	p := provider(t, s.start(t))
	request := prepare(t, p, someMail)
	if _, err := apply(t.Context(), p, request); err != nil {
		t.Fatal(err)
	}
	r, err := decodeRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	want := []message{{"support@example.com", []string{"alice@example.org", "bob@example.org", "hidden@example.net"}, string(r.message)}}
	if diff := cmp.Diff(want, s.took(), cmp.AllowUnexported(message{})); diff != "" {
		t.Errorf("taken on (-want +got):\n%s", diff)
	}
	commands := []string{
		"EHLO app.example.com", fmt.Sprintf("MAIL FROM:<support@example.com> SIZE=%d", len(r.message)),
		"RCPT TO:<alice@example.org>", "RCPT TO:<bob@example.org>", "RCPT TO:<hidden@example.net>", "DATA",
	}
	got := s.commands(0)
	if diff := cmp.Diff(commands, got[:min(len(got), len(commands))]); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestTooLate(t *testing.T) {
	t.Parallel()
	s := &server{}
	p := provider(t, 25)
	p.dial = s.pipe(t)
	var after []string
	_, err := p.Apply(t.Context(), providers.EmailSend, ledger.Attempt{
		Payload: ledger.Payload{Request: prepare(t, p, someMail)},
		MaySend: func() error { after = s.commands(0); return ledger.ErrTooLate },
	})
	if !errors.Is(err, ledger.ErrTooLate) {
		t.Errorf("error = %v, want %v", err, ledger.ErrTooLate)
	}
	if len(after) == 0 || after[len(after)-1] != "DATA" {
		t.Errorf("MaySend was asked after %q, want after DATA", after)
	}
	if got := s.commands(0); got[len(got)-1] != "DATA" || len(s.took()) != 0 {
		t.Errorf("the server heard %q and took %d messages", got, len(s.took()))
	}
}

// TestUnreadableRequest has requests that this package didn't make.
func TestUnreadableRequest(t *testing.T) {
	t.Parallel()
	s := &server{}
	p := provider(t, s.start(t))
	whole := prepare(t, p, someMail)
	for _, request := range []string{"", "{}\nx\r\n", "nothing", strings.TrimSuffix(string(whole), "\r\n"), `{"message_id":"<a@b>","from":"a@b","to":[]}` + "\nx\r\n"} {
		if diff := cmp.Diff(notSent("request_unreadable"), attempt(t.Context(), p, []byte(request))); diff != "" {
			t.Errorf("attempt (-want +got):\n%s", diff)
		}
	}
	if got := s.commands(0); got != nil {
		t.Errorf("the server heard %q", got)
	}
}
