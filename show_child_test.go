package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// A childServer is the program in a process of its own, over stdio: one that can be
// killed and stopped. Many calls may be under way on it at once.
type childServer struct {
	client *client
	cmd    *exec.Cmd
	in     io.WriteCloser
	log    *sharedLog
	ended  chan struct{} // closed when it has been reaped

	mu      sync.Mutex
	waiting map[string]chan reply // by request id
	lines   [][]byte              // all it wrote to its standard output
}

// startChild starts a server; env is added to the environment. Whatever happens, it is
// killed and reaped with the test.
func startChild(t testing.TB, dir string, env []string, flags ...string) *childServer {
	t.Helper()
	s, err := newChild(dir, env, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// newChild starts one for the caller to kill.
func newChild(dir string, env []string, flags ...string) (*childServer, error) {
	cmd, err := programCommand(append([]string{"serve", "--data-dir", dir}, flags...), env)
	if err != nil {
		return nil, err
	}
	s := &childServer{cmd: cmd, log: new(sharedLog), ended: make(chan struct{}), waiting: map[string]chan reply{}}
	s.client = &client{era: statelessEra}
	cmd.Stderr = s.log
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		for line := range readLinesOf(out) {
			s.deliver(line)
		}
		s.mu.Lock()
		for id, waiting := range s.waiting {
			close(waiting)
			delete(s.waiting, id)
		}
		s.waiting = nil
		s.mu.Unlock()
		_ = cmd.Wait() // how it ended stands in its state
		close(s.ended)
	}()
	return s, nil
}

// programCommand is this test binary as the program.
func programCommand(args, env []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	cmd.WaitDelay = patience
	return cmd, nil
}

func (s *childServer) deliver(line []byte) {
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	said, err := parseReply(line)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	if err != nil || json.Unmarshal(line, &head) != nil {
		return
	}
	if waiting := s.waiting[string(head.ID)]; waiting != nil {
		waiting <- said
		delete(s.waiting, string(head.ID))
	}
}

// send makes a call without waiting for it. The channel is closed without an answer if
// the server ends before it.
func (s *childServer) send(tool string, call toolCall) (<-chan reply, error) {
	id, message, err := s.client.message(tool, call)
	if err != nil {
		return nil, err
	}
	answer := make(chan reply, 1)
	s.mu.Lock()
	if s.waiting == nil {
		close(answer)
	} else {
		s.waiting[fmt.Sprint(id)] = answer
	}
	s.mu.Unlock()
	if _, err := s.in.Write(append(message, '\n')); err != nil {
		return nil, err
	}
	return answer, nil
}

// call makes a call and waits for its answer.
func (s *childServer) call(ctx context.Context, tool string, call toolCall) (outcome, error) {
	answer, err := s.send(tool, call)
	if err != nil {
		return outcome{}, err
	}
	return s.wait(ctx, answer)
}

func (s *childServer) wait(ctx context.Context, answer <-chan reply) (outcome, error) {
	select {
	case said, ok := <-answer:
		if !ok {
			return outcome{}, fmt.Errorf("the server ended without an answer: %w", io.ErrUnexpectedEOF)
		}
		return said.outcome()
	case <-ctx.Done():
		return outcome{}, fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// kill ends it at once, as a power cut would, and reaps it.
func (s *childServer) kill() {
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.ended
}

// end closes its input and returns its exit code.
func (s *childServer) end(t testing.TB) int {
	t.Helper()
	s.in.Close()
	return s.exitCode(t)
}

// exitCode waits for it to end by itself; -1 means that a signal ended it.
func (s *childServer) exitCode(t testing.TB) int {
	t.Helper()
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("the server didn't end; its log:\n%s", s.log)
		return 0
	}
}

// printed is all that it wrote to its standard output by now, line by line.
func (s *childServer) printed() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.lines...)
}
