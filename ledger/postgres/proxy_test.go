package postgres_test

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
)

// A fault is what a proxy does once, to the next request.
type fault int

const (
	none        fault = iota
	loseRequest       // the connection breaks before the server sees it
	loseReply         // the server does it, and the connection breaks before its answer is seen
	lateRequest       // the connection breaks, and the server sees the request only later
)

// A proxy stands between a Store and its server.
type proxy struct {
	t      *testing.T
	target string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	next     fault
	before   func()        // done when the fault strikes, before the Store sees it
	release  chan struct{} // closed: late requests reach the server
	late     sync.WaitGroup
}

// newProxy starts one, and gives the URL of the place through it.
func newProxy(t *testing.T, place string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: u.Host, conns: map[net.Conn]bool{}, release: make(chan struct{})}
	p.up("127.0.0.1:0")
	t.Cleanup(p.down)
	u.Host = p.listener.Addr().String()
	return p, u.String()
}

// up lets connections come; down breaks all there are and refuses new ones.
func (p *proxy) up(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.listener = l
	p.mu.Unlock()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
}

func (p *proxy) down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Close()
	for c := range p.conns {
		c.Close()
	}
	p.conns = map[net.Conn]bool{}
}

// strike arms the proxy.
func (p *proxy) strike(f fault, before func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.before = f, before
}

func (p *proxy) struck() (fault, func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, before := p.next, p.before
	p.next = none
	if before == nil {
		before = func() {}
	}
	return f, before
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()
	lose := make(chan func(), 1) // the answer to the next request is not passed on
	go p.answers(server, client, lose)
	b := make([]byte, 1<<20)
	for {
		n, err := client.Read(b)
		if err != nil {
			server.Close()
			return
		}
		switch f, before := p.struck(); f {
		case none:
		case loseRequest:
			server.Close()
			before()
			return
		case loseReply:
			lose <- before
		case lateRequest:
			held := bytes.Clone(b[:n])
			p.late.Go(func() {
				<-p.release
				server.Write(held)
				server.(*net.TCPConn).CloseWrite()
				for { // until the server is done with it
					if _, err := server.Read(make([]byte, 1<<16)); err != nil {
						return
					}
				}
			})
			p.mu.Lock()
			delete(p.conns, server)
			p.mu.Unlock()
			before()
			return
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

// answers passes answers on. One that is to be lost is read to its end, which says that the
// transaction is over.
func (p *proxy) answers(server, client net.Conn, lose <-chan func()) {
	b := make([]byte, 1<<20)
	var lost []byte
	var before func()
	for {
		n, err := server.Read(b)
		if err != nil {
			client.Close()
			return
		}
		if before == nil {
			select {
			case before = <-lose:
			default:
			}
		}
		if before == nil {
			client.Write(b[:n])
			continue
		}
		lost = append(lost, b[:n]...)
		if bytes.HasSuffix(lost, []byte("Z\x00\x00\x00\x05I")) {
			before()
			client.Close()
			server.Close()
			return
		}
	}
}
