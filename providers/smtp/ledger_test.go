package smtp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
	"github.com/onceward/onceward/providers"
)

// A business is one mail in a ledger on a file.
type business struct {
	*testing.T
	ledger *ledger.Ledger
	call   ledger.Request
	id     string
	path   string
	log    *bytes.Buffer

	mu  sync.Mutex
	now time.Time
}

// begin makes the first call for a mail. seed makes another operation of it.
func begin(t *testing.T, p *Provider, mail providers.Email, seed string) *business {
	t.Helper()
	b := &business{T: t, now: time.Now().UTC(), path: filepath.Join(t.TempDir(), "ledger.db"), log: &bytes.Buffer{}}
	store, err := sqlite.Open(t.Context(), b.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	sealer, err := ledger.NewSealer([]byte("a seal key for this test"))
	if err != nil {
		t.Fatal(err)
	}
	actor, _ := providers.Actor(Name, "scope", providers.EmailSend, p)
	b.ledger = &ledger.Ledger{
		Store: store, Sealer: sealer, Now: b.clock, Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Actors: map[string]ledger.Actor{providers.EmailSend: actor},
	}
	key := sha256.Sum256([]byte(t.Name() + seed))
	b.call = ledger.Request{
		Action: providers.EmailSend, Key: key,
		Intent: ledger.Intent{Identity: ledger.Strict, WorkflowID: "case-1842", Step: "notice", BusinessObject: "order-1", Revision: 1},
		Digest: ledger.Digest{Fingerprint: key, Content: key},
		Prepare: func(operationID, providerKey string) (ledger.Payload, error) {
			request, err := p.Prepare(providers.Order{OperationID: operationID, ProviderKey: providerKey, At: b.clock().Truncate(time.Second), Arguments: mail})
			return ledger.Payload{Arguments: json.RawMessage("{}"), Request: request}, err
		},
	}
	b.repeat()
	return b
}

func (b *business) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// repeat makes the call again, as an agent does.
func (b *business) repeat() ledger.Answer {
	b.Helper()
	a, err := b.ledger.Execute(context.WithoutCancel(b.Context()), b.call)
	if err != nil {
		b.Fatalf("the call was refused: %v", err)
	}
	b.id = a.Operation.ID
	return a
}

func (b *business) operation() ledger.Operation {
	b.Helper()
	found, err := b.ledger.List(b.Context(), ledger.Filter{ID: b.id})
	if err != nil || len(found) != 1 {
		b.Fatalf("%d operations, %v", len(found), err)
	}
	return found[0]
}

// later lets time pass until the operation is due, and has it reconciled.
func (b *business) later() ledger.Operation {
	b.Helper()
	b.mu.Lock()
	b.now = b.now.Add(time.Second)
	b.mu.Unlock()
	if due := b.operation().NextCheckAt; due.After(b.clock()) {
		b.mu.Lock()
		b.now = due
		b.mu.Unlock()
	}
	if _, err := b.ledger.Reconcile(b.Context(), b.id); err != nil {
		b.Fatal(err)
	}
	return b.operation()
}

// come is what an operation came to.
type come struct {
	Status   ledger.Status
	Code     string
	Attempts int
	Review   bool
}

func (b *business) want(want come) {
	b.Helper()
	op := b.operation()
	if diff := cmp.Diff(want, come{op.Status, op.ErrorCode, op.Attempts, op.Review.Open()}); diff != "" {
		b.Errorf("the operation (-want +got):\n%s", diff)
	}
}

// messageID is the one that all attempts have.
func (b *business) messageID() string { return "<" + b.operation().ProviderKey + "@example.com>" }

// lostAck stores the message and hangs up.
var lostAck = map[string]turn{".": {hangUp: true, keep: true}}

// TestLostAnswer is the gap of RFC 1047, without and with a mailbox to look into.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	t.Run("no mailbox", func(t *testing.T) {
		t.Parallel()
		s := &server{script: lostAck}
		b := begin(t, provider(t, s.start(t)), someMail, "")
		b.want(come{ledger.Unknown, "connection_lost", 1, true})
		b.repeat()
		b.later()
		b.want(come{ledger.Unknown, "connection_lost", 1, true})
		if n := len(s.took()); n != 1 {
			t.Errorf("the server took %d messages", n)
		}
	})
	t.Run("the mailbox has it", func(t *testing.T) {
		t.Parallel()
		s := &server{script: lostAck}
		user, port := mailboxes(t, nil, false)
		p := withMailbox(t, port)
		p.port = s.start(t)
		b := begin(t, p, someMail, "")
		b.want(come{ledger.Unknown, "connection_lost", 1, false})
		b.later() // the copy is still under way
		b.want(come{ledger.Unknown, "connection_lost", 1, false})
		put(t, user, "Sent", "Message-ID: "+b.messageID())
		b.later()
		b.want(come{ledger.Succeeded, "", 1, false})
		if a := b.repeat(); a.Status != ledger.AnswerSucceeded {
			t.Errorf("a repeat got %s", a.Status)
		}
		if n := len(s.took()); n != 1 {
			t.Errorf("the server took %d messages", n)
		}
	})
	t.Run("the mailbox never has it", func(t *testing.T) {
		t.Parallel()
		s := &server{script: map[string]turn{".": {hangUp: true}}}
		_, port := mailboxes(t, nil, false)
		p := withMailbox(t, port)
		p.port = s.start(t)
		b := begin(t, p, someMail, "")
		for range 30 {
			if b.later().Review.Open() {
				break
			}
		}
		b.want(come{ledger.Unknown, "connection_lost", 1, true})
		if n := len(s.commands(1)); n != 0 {
			t.Errorf("a second attempt was made")
		}
	})
}

// TestDefiniteAnswers has a no, and a no for now.
func TestDefiniteAnswers(t *testing.T) {
	t.Parallel()
	no := &server{script: map[string]turn{".": {say: "554 spam\r\n"}}}
	b := begin(t, provider(t, no.start(t)), someMail, "")
	b.want(come{ledger.FailedFinal, "smtp_554", 1, false})

	later := &server{script: map[string]turn{"RCPT": {say: "450 later\r\n"}}}
	b = begin(t, provider(t, later.start(t)), someMail, "later")
	b.want(come{ledger.FailedRetryable, "smtp_450", 1, false})
	later.rewrite(nil)
	b.later()
	b.repeat()
	b.want(come{ledger.Succeeded, "", 2, false})
	took := later.took()
	if len(took) != 1 || !strings.Contains(took[0].text, "Message-ID: "+b.messageID()) {
		t.Errorf("the server took %d messages", len(took))
	}
}

// TestNothingPersonalIsKept reads the ledger's files and log after each kind of end.
func TestNothingPersonalIsKept(t *testing.T) {
	t.Parallel()
	for step, do := range map[string]turn{
		"QUIT": {say: "221 Bye alice@example.org\r\n"}, ".": {hangUp: true}, "MAIL": {say: "550 support@example.com isn't known\r\n"},
		"RCPT": {say: "450 alice@example.org is busy\r\n"}, "EHLO": {say: "500 hello alice@example.org\r\n", hangUp: true},
	} {
		s := &server{script: map[string]turn{step: do}}
		b := begin(t, provider(t, s.start(t)), someMail, step)
		texts := []string{b.log.String(), fmt.Sprintf("%+v", b.operation())}
		for _, file := range []string{b.path, b.path + "-wal"} {
			content, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			texts = append(texts, string(content))
		}
		for i, text := range texts {
			for _, private := range []string{"alice@", "bob@", "hidden@", "Your refund", "Hello", "support@"} {
				if strings.Contains(text, private) {
					t.Errorf("%s: %q is in text %d", step, private, i)
				}
			}
		}
		if b.log.Len() == 0 {
			t.Error("nothing was logged, so the search of the log proves nothing")
		}
	}
}
