package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// These tests run in a bubble whose clock moves on only when everybody waits: a day passes at once.

// A try is one request that a receiver got, and when.
type try struct {
	at            time.Duration // since the beginning
	id, body, sig string
}

// A line is a receiver's end of the network: it answers what answer says, 0 meaning never.
type line struct {
	began  time.Time
	answer func(n int, r *http.Request) int
	tries  []try
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	l.tries = append(l.tries, try{time.Since(l.began), r.Header.Get("Idempotency-Key"), string(body), r.Header.Get("Onceward-Signature")})
	status := l.answer(len(l.tries), r)
	if status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
}

// inTime runs a test with a webhook on a line, and ends both.
func inTime(t *testing.T, answer func(n int, r *http.Request) int, test func(t *testing.T, w *Webhook, l *line, logged *bytes.Buffer)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		w, err := NewWebhook(WebhookOptions{URL: "https://alarms.example.com/x", Secret: []byte("a webhook secret for tests"), Log: slog.New(slog.NewTextHandler(&logged, nil))})
		if err != nil {
			t.Fatal(err)
		}
		l := &line{began: time.Now(), answer: answer}
		w.client.Transport = l
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		test(t, w, l, &logged)
		cancel()
		before := time.Now()
		<-ended
		if took := time.Since(before); took > webhookLast {
			t.Errorf("it took %v to end, want at most %v", took, webhookLast)
		}
	})
}

// pass lets time pass, and then all that is due be done.
func pass(d time.Duration) {
	time.Sleep(d) // the bubble's clock
	synctest.Wait()
}

func anAlarm(n int) ledger.Alarm {
	return ledger.Alarm{Kind: "operation_conflict", OperationID: fmt.Sprintf("op_%d", n), Action: "refund", Status: ledger.Succeeded, Moves: 3, At: time.Now()}
}

// Whatever happens to it, an alarm is told again with the same id and the same body, ever later.
func TestItIsToldAgain(t *testing.T) {
	answers := []int{500, 0, 404, 302, 200}
	inTime(t, func(n int, _ *http.Request) int { return answers[min(n, len(answers))-1] }, func(t *testing.T, w *Webhook, l *line, _ *bytes.Buffer) {
		w.Alarm(anAlarm(1))
		pass(time.Hour)
		if diff := cmp.Diff(Deliveries{Delivered: 1, Failed: 4}, w.Deliveries()); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
		if len(l.tries) != len(answers) {
			t.Fatalf("%d tries, want %d", len(l.tries), len(answers))
		}
		for i, s := range l.tries[1:] {
			if s.id != l.tries[0].id || s.body != l.tries[0].body {
				t.Errorf("try %d told %s %s, and the first one %s %s", i+2, s.id, s.body, l.tries[0].id, l.tries[0].body)
			}
			if s.at >= time.Second && s.sig == l.tries[0].sig { // it is signed with the second in which it is told
				t.Errorf("try %d has the first one's signature", i+2)
			}
		}
		w.Alarm(anAlarm(1))
		pass(time.Hour)
		if len(l.tries) != len(answers) {
			t.Errorf("an alarm that was taken is told again")
		}
	})
}

// The pauses double from a second up to 15 minutes, less up to a half; after a day it is given up, and counted.
func TestItIsGivenUpAfterADay(t *testing.T) {
	inTime(t, func(int, *http.Request) int { return 503 }, func(t *testing.T, w *Webhook, l *line, logged *bytes.Buffer) {
		w.Alarm(anAlarm(1))
		pass(26 * time.Hour)
		longest := time.Second
		for i := 1; i < len(l.tries); i++ {
			pause := l.tries[i].at - l.tries[i-1].at
			if pause > longest || pause < longest/2 {
				t.Errorf("pause %d is %v, want between %v and %v", i, pause, longest/2, longest)
			}
			longest = min(2*longest, 15*time.Minute)
		}
		if last := l.tries[len(l.tries)-1].at; last < 24*time.Hour-15*time.Minute || last > 24*time.Hour+15*time.Minute {
			t.Errorf("the last try was after %v", last)
		}
		if got := w.Deliveries(); got.Lost != 1 || got.Waiting != 0 {
			t.Errorf("deliveries: %+v, want it lost", got)
		}
		if !strings.Contains(logged.String(), "was not told of an alarm") {
			t.Errorf("logged: %s", logged)
		}
		tries := len(l.tries)
		w.Alarm(anAlarm(1))
		synctest.Wait()
		if len(l.tries) != tries+1 {
			t.Error("an alarm that was given up isn't told when it is raised again")
		}
	})
}

// One that is never taken keeps none of the others.
func TestOneThatIsNotTakenHoldsUpNoOther(t *testing.T) {
	bad := alarmID(ledger.Alarm{Kind: "operation_conflict", OperationID: "op_1", Moves: 3})
	inTime(t, func(_ int, r *http.Request) int {
		if r.Header.Get("Idempotency-Key") == bad {
			return 400
		}
		return 200
	}, func(t *testing.T, w *Webhook, l *line, _ *bytes.Buffer) {
		for n := range 10 {
			w.Alarm(anAlarm(n))
		}
		synctest.Wait()
		if got := w.Deliveries(); got.Delivered != 9 || got.Waiting != 1 {
			t.Errorf("deliveries: %+v, want 9 delivered at once", got)
		}
	})
}

// A receiver that hangs stops nobody: alarms are queued up to a bound, and what comes then is counted.
func TestNothingBlocksWhenTheReceiverHangs(t *testing.T) {
	inTime(t, func(int, *http.Request) int { return 0 }, func(t *testing.T, w *Webhook, l *line, logged *bytes.Buffer) {
		before := time.Now()
		for n := range webhookQueue + 5 {
			w.Alarm(anAlarm(n))
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("raising alarms took %v", took)
		}
		if got := w.Deliveries(); got.Waiting != webhookQueue || got.Lost != 5 {
			t.Errorf("deliveries: %+v, want %d waiting and 5 lost", got, webhookQueue)
		}
		if n := strings.Count(logged.String(), "was not told of an alarm"); n != 1 {
			t.Errorf("the losses were logged %d times in a minute, want once", n)
		}
		synctest.Wait()
		if len(l.tries) != 1 {
			t.Errorf("%d requests at once, want 1", len(l.tries))
		}
	})
}

// What waits when the server ends is told at once, however long it was to wait.
func TestTheLastOnesAreToldAtTheEnd(t *testing.T) {
	t.Parallel()
	down := true
	var told *Webhook
	t.Run("end", func(t *testing.T) {
		inTime(t, func(int, *http.Request) int {
			if down {
				return 500
			}
			return 200
		}, func(_ *testing.T, w *Webhook, _ *line, _ *bytes.Buffer) {
			told = w
			w.Alarm(anAlarm(1))
			w.Alarm(anAlarm(2))
			pass(time.Hour)
			down = false
		})
	})
	t.Cleanup(func() {
		if got := told.Deliveries(); got.Delivered != 2 || got.Lost != 0 || got.Waiting != 0 {
			t.Errorf("deliveries: %+v, want both delivered", got)
		}
		told.Alarm(anAlarm(3))
		if got := told.Deliveries(); got.Lost != 1 {
			t.Errorf("deliveries: %+v, want what comes after the end lost", got)
		}
	})
}
