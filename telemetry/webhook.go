package telemetry

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/onceward/onceward/ledger"
)

const (
	webhookQueue   = 1000             // alarms that wait; what comes then is lost
	webhookSeen    = 4096             // alarms that are remembered, so that each is told once
	webhookFor     = 24 * time.Hour   // after which an alarm is given up
	webhookFirst   = time.Second      // before the second try; doubles
	webhookLongest = 15 * time.Minute // between two tries
	webhookTry     = 10 * time.Second // one try
	webhookLast    = 5 * time.Second  // all that is still tried when the process ends
)

// minWebhookSecret is what RFC 2104 makes of a key that is worth its hash, halved: 128 bits.
const minWebhookSecret = 16

// WebhookOptions say where alarms go.
type WebhookOptions struct {
	URL    string // https; http on loopback only
	Secret []byte // signs; at least 16 bytes
	TLS    *tls.Config
	Log    *slog.Logger // nil: slog.Default
}

// A Webhook tells a URL of alarms. Each is a POST of
//
//	{"id","kind","operation_id","action_type","at","status"}
//
// signed by the header Onceward-Signature: t=UNIX-SECONDS,v1=HEX, which is
// HMAC-SHA256(secret, t + "." + body). An answer of 2xx takes the alarm; after any other,
// or none, it is sent again with the same id and body, ever later, for 24 hours. The id
// (also the header Idempotency-Key) is the same whichever server tells, and after a restart.
//
// What waits is in memory only: it is lost with the process. Open reviews aren't, the ledger
// calls them out again.
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
	log    *slog.Logger
	wake   chan struct{}

	mu      sync.Mutex
	waiting []*delivery
	seen    map[string]bool
	order   []string // of seen, oldest first
	counts  Deliveries
	grumble time.Time // when a loss was logged last
	ended   bool
}

// Deliveries are what became of a webhook's alarms.
type Deliveries struct {
	Delivered int64 // taken
	Failed    int64 // tries that failed; more follow
	Lost      int64 // given up, or never queued because too many waited
	Waiting   int
}

// A delivery is one alarm on its way.
type delivery struct {
	id    string
	kind  string
	body  []byte
	since time.Time
	next  time.Time
	tries int
}

// NewWebhook checks the options. Nothing is sent until Run.
func NewWebhook(o WebhookOptions) (*Webhook, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("the alarm webhook's URL is like https://alarms.example.com/onceward, without user and fragment")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !onLoopback(u.Hostname())) {
		return nil, fmt.Errorf("the alarm webhook's URL begins with https://, not %s://, unless it is on this machine", u.Scheme)
	}
	if len(o.Secret) < minWebhookSecret {
		return nil, fmt.Errorf("the alarm webhook's secret has at least %d bytes", minWebhookSecret)
	}
	if o.TLS != nil && o.TLS.InsecureSkipVerify {
		return nil, errors.New("the alarm webhook's certificate has to be verified; trust its authority instead")
	}
	w := &Webhook{url: o.URL, secret: slices.Clone(o.Secret), log: o.Log, wake: make(chan struct{}, 1), seen: map[string]bool{}}
	if w.log == nil {
		w.log = slog.Default()
	}
	w.client = &http.Client{
		Transport: &http.Transport{ // no proxy, and nothing kept: each try is one request
			DialContext:         (&net.Dialer{Timeout: webhookTry}).DialContext,
			TLSClientConfig:     o.TLS.Clone(),
			TLSHandshakeTimeout: webhookTry,
			DisableKeepAlives:   true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       webhookTry,
	}
	return w, nil
}

func onLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Alarm queues an alarm and returns at once. One that was told already isn't told again; one
// that finds the queue full is lost, counted and logged.
func (w *Webhook) Alarm(a ledger.Alarm) {
	now := time.Now()
	if a.At.IsZero() {
		a.At = now
	}
	d := &delivery{id: alarmID(a), kind: a.Kind, since: now, next: now}
	var err error
	d.body, err = json.Marshal(struct {
		ID          string `json:"id"`
		Kind        string `json:"kind"`
		OperationID string `json:"operation_id"`
		ActionType  string `json:"action_type"`
		At          string `json:"at"`
		Status      string `json:"status"`
	}{d.id, a.Kind, a.OperationID, a.Action, a.At.UTC().Format(time.RFC3339Nano), string(a.Status)})
	if err != nil {
		return // strings always marshal
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.seen[d.id]:
		return
	case w.ended || len(w.waiting) >= webhookQueue:
		w.lose(now, d, "too many wait, or the server is ending")
		return
	}
	w.remember(d.id)
	w.waiting = append(w.waiting, d)
	w.rouse()
}

// rouse has Run look; one hint is enough.
func (w *Webhook) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// alarmID names an alarm, the same in every server and after a restart. What repeats
// while its operation stays as it is (a reminder, or what concerns no operation) is
// another alarm on another day.
func alarmID(a ledger.Alarm) string {
	name := []string{a.Kind, a.OperationID, strconv.Itoa(a.Moves)}
	if a.Kind == "review_overdue" || a.OperationID == "" {
		name = append(name, a.At.UTC().Format(time.DateOnly))
	}
	text, err := json.Marshal(name) // so that no id can look like another's name
	if err != nil {
		panic("telemetry: strings that can't be rendered: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return "al_" + hex.EncodeToString(sum[:16])
}

func (w *Webhook) remember(id string) {
	w.seen[id] = true
	w.order = append(w.order, id)
	if len(w.order) > webhookSeen {
		delete(w.seen, w.order[0])
		w.order = w.order[1:]
	}
}

// forget lets an alarm that was given up be told if it is raised again.
func (w *Webhook) forget(id string) {
	delete(w.seen, id)
	w.order = slices.DeleteFunc(w.order, func(other string) bool { return other == id })
}

// lose counts an alarm that nobody will be told of, and says so, once a minute at most. The
// ledger's own log has it.
func (w *Webhook) lose(now time.Time, d *delivery, why string) {
	w.counts.Lost++
	if now.Sub(w.grumble) < time.Minute {
		return
	}
	w.grumble = now
	w.log.Error("the webhook was not told of an alarm", "kind", d.kind, "id", d.id, "why", why, "lost_so_far", w.counts.Lost)
}

// Deliveries are what became of the alarms so far.
func (w *Webhook) Deliveries() Deliveries {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.counts
	d.Waiting = len(w.waiting)
	return d
}

// Run delivers until ctx is done. Then what still waits is tried once more, for at most five
// seconds in all, and the rest is lost. It is called once.
func (w *Webhook) Run(ctx context.Context) {
	for ctx.Err() == nil {
		d, wait := w.due(time.Now())
		if d != nil {
			w.deliver(ctx, d)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	w.finish(context.WithoutCancel(ctx))
}
