package telemetry

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// due is the delivery whose turn it is, or how long there is none.
func (w *Webhook) due(now time.Time) (*delivery, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first *delivery
	for _, d := range w.waiting {
		if first == nil || d.next.Before(first.next) {
			first = d
		}
	}
	if first == nil {
		return nil, webhookFor
	}
	if wait := first.next.Sub(now); wait > 0 {
		return nil, wait
	}
	return first, 0
}

// deliver makes one try, and plans the next one if it fails.
func (w *Webhook) deliver(ctx context.Context, d *delivery) {
	err := w.send(ctx, d)
	if err != nil && ctx.Err() != nil {
		return // not the receiver's fault; finish tries it again
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.counts.Delivered++
		w.remove(d)
		return
	}
	w.counts.Failed++
	d.tries++
	d.next = now.Add(pause(d.tries))
	if now.Sub(d.since) < webhookFor {
		level := w.log.Debug
		if d.tries == 1 {
			level = w.log.Warn
		}
		level("the webhook didn't take an alarm; it is told again", "kind", d.kind, "id", d.id, "tries", d.tries, "error", err)
		return
	}
	w.remove(d)
	w.forget(d.id)
	w.lose(now, d, err.Error())
}

func (w *Webhook) remove(d *delivery) {
	w.waiting = slices.DeleteFunc(w.waiting, func(other *delivery) bool { return other == d })
}

// pause is how long to wait after the n-th try, n from 1: between half and all of a time that
// doubles, so that many servers don't come back together.
func pause(n int) time.Duration {
	d := webhookFirst
	for i := 1; i < n && d < webhookLongest; i++ {
		d *= 2
	}
	d = min(d, webhookLongest)
	return d/2 + rand.N(d/2)
}

// send makes one request. Its error holds no part of the URL: that may be a secret of its own.
func (w *Webhook) send(ctx context.Context, d *delivery) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(d.body))
	if err != nil {
		return errors.New("the request can't be made")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "onceward")
	request.Header.Set("Idempotency-Key", d.id)
	request.Header.Set("Onceward-Signature", w.sign(time.Now(), d.body))
	answer, err := w.client.Do(request)
	if err != nil {
		return noAnswer(err)
	}
	defer func() { _ = answer.Body.Close() }() // the status says it all
	_, _ = io.CopyN(io.Discard, answer.Body, 4096)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("it answered %d", answer.StatusCode)
	}
	return nil
}

// noAnswer says why there was none, without what net/http says: that quotes the URL.
func noAnswer(err error) error {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return errors.New("its certificate isn't trusted")
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New("its name can't be resolved")
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return errors.New("it didn't answer in time")
	}
	return errors.New("it couldn't be reached, or the connection broke")
}

// sign is the value of Onceward-Signature. The time is signed, so that a receiver can refuse
// what is replayed to it later.
func (w *Webhook) sign(at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, w.secret)
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// finish tries once more what still waits, oldest first, and gives up the rest.
func (w *Webhook) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, webhookLast)
	defer cancel()
	w.mu.Lock()
	w.ended = true
	left := slices.Clone(w.waiting)
	w.mu.Unlock()
	var lost int64
	for _, d := range left {
		err := context.Cause(ctx)
		if err == nil {
			err = w.send(ctx, d)
		}
		w.mu.Lock()
		w.remove(d)
		if err == nil {
			w.counts.Delivered++
		} else {
			w.counts.Lost++
			lost++
		}
		w.mu.Unlock()
	}
	if lost > 0 {
		w.log.Error("the server ends, and the webhook was not told of alarms; open reviews are called out again", "lost", lost)
	}
}
