package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A benchServer is a server in a process of its own and the thinnest client that can
// drive it: the client's work is measured too, and must not hide the server's.
type benchServer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	http    *http.Client // nil on stdio
	url     string
	session string
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n"

// startBench starts a server of a kind and greets it. It ends with the benchmark.
func startBench(b *testing.B, kind, transport, dir string) *benchServer {
	b.Helper()
	s, err := newBenchServer(b.Context(), kind, transport, dir)
	if err != nil {
		b.Fatalf("the %s server: %v", kind, err)
	}
	b.Cleanup(func() {
		if err := s.end(); err != nil {
			b.Errorf("the %s server: %v", kind, err)
		}
	})
	return s
}

// newBenchServer starts one for the caller to end. An empty kind is the program itself.
func newBenchServer(ctx context.Context, kind, transport, dir string) (*benchServer, error) {
	cmd, err := programCommand([]string{"serve", "--transport", transport, "--addr", "127.0.0.1:0", "--data-dir", dir}, []string{asBench + "=" + kind})
	if err != nil {
		return nil, err
	}
	s, log := &benchServer{cmd: cmd}, newAddressLog()
	cmd.Stderr = log
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 64<<10)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if transport == "http" {
		err = s.greetHTTP(ctx, log)
	} else {
		_, err = io.WriteString(s.in, hello)
		if err == nil {
			_, err = s.out.ReadSlice('\n')
		}
	}
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return s, nil
}

func (s *benchServer) greetHTTP(ctx context.Context, log *addressLog) error {
	select {
	case address := <-log.address:
		s.url = "http://" + address + "/mcp"
	case <-time.After(patience):
		return errors.New("it didn't say where it listens")
	}
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	response, err := s.send(ctx, []byte(hello))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	s.session = response.Header.Get("Mcp-Session-Id")
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func (s *benchServer) send(ctx context.Context, message []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header["Content-Type"] = []string{"application/json"}
	r.Header["Accept"] = []string{"application/json, text/event-stream"}
	if s.session != "" {
		r.Header["Mcp-Session-Id"] = []string{s.session}
		r.Header["Mcp-Protocol-Version"] = []string{"2025-06-18"}
	}
	return s.http.Do(r)
}

// end closes its input or asks it to end, and reaps it.
func (s *benchServer) end() error {
	if s.http != nil {
		s.http.CloseIdleConnections()
		if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
	}
	return errors.Join(s.in.Close(), s.cmd.Wait())
}

// drive sends all messages, callers of them at a time, and returns how long each took
// and all of them together. The id of a message is its index. Each answer must have
// want in it: a wrong answer must not count as a fast one.
func (s *benchServer) drive(ctx context.Context, callers int, messages [][]byte, want string) ([]time.Duration, time.Duration, error) {
	if s.http != nil {
		return s.driveHTTP(ctx, callers, messages, want)
	}
	begun, waits := make([]time.Time, len(messages)), make([]time.Duration, len(messages))
	start := time.Now()
	next := 0
	more := func() error {
		if next == len(messages) {
			return nil
		}
		begun[next] = time.Now()
		_, err := s.in.Write(messages[next])
		next++
		return err
	}
	for range callers {
		if err := more(); err != nil {
			return nil, 0, err
		}
	}
	for range messages {
		line, err := s.out.ReadSlice('\n')
		if err != nil {
			return nil, 0, err
		}
		i, err := answerTo(line)
		if err != nil || i >= len(messages) || !bytes.Contains(line, []byte(want)) {
			return nil, 0, fmt.Errorf("not the answer that was wanted: %s", line)
		}
		waits[i] = time.Since(begun[i])
		if err := more(); err != nil {
			return nil, 0, err
		}
	}
	return waits, time.Since(start), nil
}

// answerTo is the id in an answer, as mcp-go writes it.
func answerTo(line []byte) (int, error) {
	_, after, _ := bytes.Cut(line, []byte(`"id":`))
	digits := 0
	for digits < len(after) && after[digits] >= '0' && after[digits] <= '9' {
		digits++
	}
	return strconv.Atoi(string(after[:digits]))
}

func (s *benchServer) driveHTTP(ctx context.Context, callers int, messages [][]byte, want string) ([]time.Duration, time.Duration, error) {
	waits := make([]time.Duration, len(messages))
	failed := make([]error, callers)
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for caller := range callers {
		wg.Go(func() {
			var body bytes.Buffer
			for i := int(next.Add(1)) - 1; i < len(messages); i = int(next.Add(1)) - 1 {
				begun := time.Now()
				body.Reset()
				if err := s.exchange(ctx, messages[i], &body); err != nil {
					failed[caller] = err
					return
				}
				if !bytes.Contains(body.Bytes(), []byte(want)) {
					failed[caller] = fmt.Errorf("not the answer that was wanted: %s", body.Bytes())
					return
				}
				waits[i] = time.Since(begun)
			}
		})
	}
	wg.Wait()
	return waits, time.Since(start), errors.Join(failed...)
}

func (s *benchServer) exchange(ctx context.Context, message []byte, body *bytes.Buffer) error {
	response, err := s.send(ctx, message)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = body.ReadFrom(response.Body)
	return err
}
