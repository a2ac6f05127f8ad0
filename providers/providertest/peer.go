package providertest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// A Peer is a provider behind a bad line: a server on loopback that lets a handler act
// and then treats the connection as told. Every connection carries one request.
type Peer struct {
	handler  http.Handler
	creates  func(*http.Request) bool
	listener net.Listener
	ended    chan struct{}
	hung     chan struct{}

	mu       sync.Mutex
	creating []Loss // for the next requests that act, in their order
	asking   []Loss // for the next look-ups
	always   *Loss  // for all look-ups
	kept     *Loss  // for all requests that act
	requests []Request
}

// A Request is what the peer got.
type Request struct {
	Creates bool
	Method  string
	URI     string
	Header  http.Header
	Body    []byte
}

// NewPeer serves until the test ends.
func NewPeer(t *testing.T, handler http.Handler, creates func(*http.Request) bool) *Peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Peer{handler: handler, creates: creates, listener: listener, ended: make(chan struct{}), hung: make(chan struct{}, 16)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		close(p.ended)
		_ = listener.Close()
		serving.Wait()
	})
	return p
}

// URL is the peer's endpoint.
func (p *Peer) URL() string { return "http://" + p.listener.Addr().String() }

// Lose lays down what becomes of the next requests that act.
func (p *Peer) Lose(losses ...Loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.creating = append(p.creating, losses...)
}

// LoseLookups lays down what becomes of the next look-ups.
func (p *Peer) LoseLookups(losses ...Loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = append(p.asking, losses...)
}

// LoseEveryLookup does so until it is called with nil.
func (p *Peer) LoseEveryLookup(loss *Loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.always = loss
}

// Hung reports, once for each, the requests that are left without an answer.
func (p *Peer) Hung() <-chan struct{} { return p.hung }

// Requests are those that arrived whole, oldest first.
func (p *Peer) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Created are the requests that act.
func (p *Peer) Created() []Request {
	return slices.DeleteFunc(p.Requests(), func(r Request) bool { return !r.Creates })
}

func (p *Peer) serve(conn *net.TCPConn) {
	defer func() { _ = conn.Close() }()
	if p.resetsUnread() {
		_, _ = conn.Read(make([]byte, 1)) // an earlier reset could look like a refused connection
		reset(conn)
		return
	}
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.RemoteAddr = conn.RemoteAddr().String()
	loss := p.arrived(r, body)
	recorder := httptest.NewRecorder()
	if loss.Acts {
		p.handler.ServeHTTP(recorder, r)
	}
	loss.end(line{p, conn, recorder.Result()})
}

// arrived notes a request and says what becomes of it.
func (p *Peer) arrived(r *http.Request, body []byte) Loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	creates := p.creates(r)
	p.requests = append(p.requests, Request{creates, r.Method, r.RequestURI, r.Header, body})
	if creates {
		if p.kept != nil {
			return *p.kept
		}
		loss := next(&p.creating)
		if loss.kept {
			again := loss
			again.Acts = false
			p.kept = &again
		}
		return loss
	}
	if p.always != nil {
		return *p.always
	}
	return next(&p.asking)
}

func (p *Peer) resetsUnread() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.creating) == 0 || !p.creating[0].unread {
		return false
	}
	p.creating = p.creating[1:]
	return true
}

func next(losses *[]Loss) Loss {
	if len(*losses) == 0 {
		return noLoss
	}
	loss := (*losses)[0]
	*losses = (*losses)[1:]
	return loss
}
