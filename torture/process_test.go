//go:build unix

package torture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Times of the drill's provider. A loaded machine has to send within what a lease is longer than a
// deadline.
const (
	drillDeadline = time.Second
	drillLease    = 2 * time.Second
	patience      = time.Minute // bounds every wait; none is as long when all is well
)

const (
	drillSecret  = "a secret for the drill"
	drillSealKey = "a seal key for the drill"
)

// A place is where the servers of one drill keep what they know.
type place struct {
	program string
	dir     string // of the sandbox's journal, and of the ledger where that is a file
	ledger  string // --ledger; empty: a file in dir
	flags   []string
}

// A process is one server over HTTP, on a port of its own.
type process struct {
	place
	url string // --ledger of this server: it may reach the database by a way of its own

	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended and was reaped
	at   string        // where it listens
	log  bytes.Buffer
}

// start starts the server and waits until it listens.
func (p *process) start() error {
	args := append([]string{
		"serve", "--data-dir", p.dir, "--transport", "http", "--addr", "127.0.0.1:0", "--log-format", "json", "--answer-within", "3s", "--reconcile-every", "250ms",
		"--sandbox-deadline", drillDeadline.String(), "--sandbox-lease", drillLease.String(),
	}, p.flags...)
	if p.url != "" {
		args = append(args, "--ledger", p.url)
	}
	cmd := exec.Command(p.program, args...)
	endWithUs(cmd)
	cmd.Env = append(os.Environ(), "ONCEWARD_SECRET="+drillSecret, "ONCEWARD_SEAL_KEY="+drillSealKey)
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	listens, gone := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(gone)
		p.read(said, listens)
		_ = cmd.Wait() // how it ended doesn't matter
	}()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case at, ok := <-listens:
		if !ok {
			return fmt.Errorf("the server ended at its start: %s", p.logged())
		}
		p.mu.Lock()
		p.cmd, p.gone, p.at = cmd, gone, at
		p.mu.Unlock()
		return nil
	case <-timeout.C:
		return errors.Join(errors.New("the server doesn't listen"), cmd.Process.Kill())
	}
}

// read keeps the end of the log, and tells where the server listens.
func (p *process) read(said io.Reader, listens chan<- string) {
	defer close(listens)
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			listens <- line.Address
		}
		p.mu.Lock()
		if p.log.Len() < 1<<20 {
			p.log.Write(append(lines.Bytes(), '\n'))
		}
		p.mu.Unlock()
	}
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(bytes.Clone(p.log.Bytes()))
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // it may have ended
	}
}

// kill ends it as a power cut would, and reaps it.
func (p *process) kill() {
	p.mu.Lock()
	cmd, gone := p.cmd, p.gone
	p.cmd, p.at = nil, ""
	p.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill() // it may have ended
		<-gone
	}
}

// ended reports whether it has ended by itself, or isn't started.
func (p *process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return true
	}
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

func (p *process) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// An answer is what a call got.
type answer struct {
	OperationID         string `json:"operation_id"`
	Status              string `json:"status"`
	Replayed            bool   `json:"replayed"`
	Review              bool   `json:"review"`
	Code                string `json:"code"`
	ProviderOperationID string `json:"provider_operation_id"`
}

// final answers don't change by calling again.
func (a answer) final() bool {
	return a.Status == "succeeded" || a.Status == "failed_final" || a.Status == "unknown" && a.Review
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 20 * time.Second}

// call makes one call, as a client of the stateless revision of MCP.
func (p *process) call(ctx context.Context, tool, intent, args string) (a answer, err error) {
	const era = "2026-07-28"
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"onceward/operation":%s,`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args, intent, era)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.address()+"/mcp", bytes.NewBufferString(body))
	if err != nil {
		return a, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": era, "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return a, err
	}
	if data, ok := bytes.CutPrefix(text, []byte("event: message\ndata: ")); ok {
		text = data
	}
	var said struct {
		Result struct {
			Structured *answer `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal(text, &said); err != nil || said.Result.Structured == nil {
		return a, fmt.Errorf("status %d, no answer in %.300q: %w", response.StatusCode, text, err)
	}
	return *said.Result.Structured, nil
}
