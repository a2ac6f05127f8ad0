package providertest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/onceward/onceward/ledger"
)

// A Loss is what becomes of one request and its answer.
type Loss struct {
	Name   string
	Acts   bool           // the request reaches the provider, which acts on it
	Want   ledger.Verdict // what an attempt has to conclude
	Alarm  string
	Code   string
	Lookup ledger.Verdict // what a look-up has to conclude; empty: nothing

	unread bool // the connection is reset at the first byte
	kept   bool
	end    func(line)
}

// A line is a connection on which a request has come, and what the provider would
// answer.
type line struct {
	peer   *Peer
	conn   *net.TCPConn
	answer *http.Response
}

var noLoss = Loss{Name: "none", Acts: true, Want: ledger.Done, end: func(l line) { l.send(l.answer) }}

// Losses are what lines and gateways do to any provider. None of them proves anything.
func Losses() []Loss {
	var losses []Loss
	for _, acts := range []bool{false, true} {
		when := " before the effect"
		if acts {
			when = " after the effect"
		}
		for _, end := range []struct {
			name string
			end  func(line)
		}{
			{"FIN", func(line) {}},
			{"RST", func(l line) { reset(l.conn) }},
			{"silence", silence},
			{"half a status line", func(l line) { l.say("HTTP/1.1 20") }},
			{"503 of a gateway", gateway(http.StatusServiceUnavailable)},
			{"502 of a gateway", gateway(http.StatusBadGateway)},
			{"504 of a gateway", gateway(http.StatusGatewayTimeout)},
			{"408", foreign(http.StatusRequestTimeout)},
			{"200 of a portal", gateway(http.StatusOK)},
			{"403 of a portal", gateway(http.StatusForbidden)},
			{"404 of a gateway", gateway(http.StatusNotFound)},
			{"400 of a gateway", gateway(http.StatusBadRequest)},
			{"429 of a gateway", gateway(http.StatusTooManyRequests)},
			{"an empty 200", foreign(http.StatusOK)},
			{"an empty 500", foreign(http.StatusInternalServerError)},
			{"200 with an empty object", emptyObject},
		} {
			losses = append(losses, Loss{Name: end.name + when, Acts: acts, Want: ledger.Unclear, end: end.end})
		}
	}
	return append(losses,
		Loss{Name: "RST at the first byte", Want: ledger.Unclear, unread: true},
		Loss{Name: "truncated 200", Acts: true, Want: ledger.Unclear, end: truncated},
		Loss{Name: "half of the JSON", Acts: true, Want: ledger.Unclear, end: halfOfTheJSON},
		Loss{Name: "307", Want: ledger.Unclear, Alarm: "unexpected_answer", end: elsewhere(http.StatusTemporaryRedirect)},
		Loss{Name: "308", Want: ledger.Unclear, Alarm: "unexpected_answer", end: elsewhere(http.StatusPermanentRedirect)},
		Loss{Name: "302", Want: ledger.Unclear, Alarm: "unexpected_answer", end: elsewhere(http.StatusFound)},
	)
}

// loss is what an answer of the provider's own makes of a request.
func (a Answer) loss() Loss {
	return Loss{Name: a.Name, Acts: a.Acts, Want: a.Want, Alarm: a.Alarm, Code: a.Code, Lookup: a.Lookup, kept: a.Kept, end: func(l line) {
		header := a.Header.Clone()
		if header == nil {
			header = http.Header{}
		}
		if header.Get("Content-Type") == "" {
			header.Set("Content-Type", "application/json")
		}
		l.reply(a.Status, header, []byte(a.Body))
	}}
}

// silence holds the connection until the other side gives up.
func silence(l line) {
	l.peer.hung <- struct{}{}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, l.conn)
		close(gone)
	}()
	select {
	case <-gone:
	case <-l.peer.ended:
		_ = l.conn.Close()
		<-gone
	}
}

// gateway answers as something between us and the provider does.
func gateway(status int) func(line) {
	return func(l line) {
		page := fmt.Sprintf("<html><head><title>%d</title></head><body><h1>%s</h1></body></html>", status, http.StatusText(status))
		l.reply(status, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, []byte(page))
	}
}

func foreign(status int) func(line) {
	return func(l line) { l.reply(status, http.Header{}, nil) }
}

func emptyObject(l line) {
	l.reply(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte("{}"))
}

// elsewhere redirects to the peer itself: whoever follows, acts.
func elsewhere(status int) func(line) {
	return func(l line) {
		last := l.peer.Requests()
		l.reply(status, http.Header{"Location": {l.peer.URL() + last[len(last)-1].URI}}, nil)
	}
}

// truncated announces more than it sends.
func truncated(l line) {
	body := l.body()
	l.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2]))
}

// halfOfTheJSON is a complete answer of an incomplete object.
func halfOfTheJSON(l line) {
	body := l.body()
	l.reply(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, body[:len(body)/2])
}

// say writes as it is told. Who isn't there any more, gets nothing.
func (l line) say(text string) { _, _ = io.WriteString(l.conn, text) }

// reset makes the next close an RST.
func reset(conn *net.TCPConn) { _ = conn.SetLinger(0) }

func (l line) body() []byte {
	b, err := io.ReadAll(l.answer.Body)
	if err != nil {
		panic(err) // it is in memory
	}
	return b
}

func (l line) reply(status int, header http.Header, body []byte) {
	l.send(&http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body))})
}

// send writes an answer, and says that it is the last on this connection.
func (l line) send(answer *http.Response) {
	body := line{answer: answer}.body()
	answer.ProtoMajor, answer.ProtoMinor = 1, 1
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	answer.ContentLength, answer.Close = int64(len(body)), true
	answer.Body = io.NopCloser(bytes.NewReader(body))
	_ = answer.Write(l.conn) // who isn't there any more, gets nothing
}
