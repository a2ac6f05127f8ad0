package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	mcptransport "github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/onceward/onceward/intent"
)

// A demoClient is an MCP client and the server process that it started.
type demoClient struct {
	mcp     *mcpclient.Client
	process *exec.Cmd
	killed  bool // as the story has it
}

// errServerGone is a call's error when the server died under it.
var errServerGone = errors.New("the server is gone")

// serve starts a server and connects to it. The context's end kills the server.
func (st *stage) serve(ctx context.Context, flags ...string) (*demoClient, error) {
	c := new(demoClient)
	start := func(ctx context.Context, program string, env, args []string) (*exec.Cmd, error) {
		c.process = exec.CommandContext(ctx, program, args...)
		c.process.Env, c.process.Stderr = env, st.log
		return c.process, nil
	}
	args := slices.Concat([]string{"serve", "--transport", "stdio", "--data-dir", st.dir}, flags)
	c.mcp = mcpclient.NewClient(mcptransport.NewStdioWithOptions(st.program, st.env, args,
		mcptransport.WithCommandFunc(start), mcptransport.WithCommandLogger(slog.New(slog.NewTextHandler(st.log, nil)))))
	if err := c.mcp.Start(ctx); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "onceward-demo", Version: versionText()}
	if _, err := c.mcp.Initialize(bounded, hello); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to a server: %w", err), c.close())
	}
	return c, nil
}

// close ends the server and waits until it has ended. Closing twice is fine.
func (c *demoClient) close() error {
	err := c.mcp.Close()
	if err == nil || c.killed {
		return nil
	}
	return fmt.Errorf("the server did not end well: %w", err)
}

// A demoCall is a tool call: the model writes tool and arguments, the orchestrator injects
// the intent.
type demoCall struct {
	tool      string
	intent    []member
	arguments []member
}

// with is the same call with one argument changed.
func (c demoCall) with(name string, value any) demoCall {
	c.arguments = slices.Clone(c.arguments)
	for i, p := range c.arguments {
		if p.name == name {
			c.arguments[i].value = value
		}
	}
	return c
}

// A member is one of a JSON object's. A quiet one is sent and not shown.
type member struct {
	name  string
	value any
	quiet bool
}

func membersOf(pairs []member) map[string]any {
	members := make(map[string]any, len(pairs))
	for _, p := range pairs {
		members[p.name] = p.value
	}
	return members
}

// A demoReply is what the model reads.
type demoReply struct {
	told
	ProviderOperationID string `json:"provider_operation_id"`
	Next                string `json:"next"`
	Message             string `json:"message"`

	took time.Duration
}

// told is the part of a reply that a story promises.
type told struct {
	Status   string   `json:"status"`
	Replayed bool     `json:"replayed"`
	Ignored  []string `json:"ignored_changes"`
	Code     string   `json:"code"`
	Fields   []string `json:"fields"`
	Review   bool     `json:"review"`
}

// call makes one tool call. The error is errServerGone if the server died before it
// answered.
func (c *demoClient) call(ctx context.Context, call demoCall) (demoReply, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = call.tool, membersOf(call.arguments)
	request.Params.Meta = &mcp.Meta{AdditionalFields: map[string]any{intent.MetaKey: membersOf(call.intent)}}
	begun := time.Now()
	result, err := c.mcp.CallTool(ctx, request)
	if errors.Is(err, mcptransport.ErrTransportClosed) {
		return demoReply{}, errServerGone
	}
	if err != nil {
		return demoReply{}, fmt.Errorf("call %s: %w", call.tool, err)
	}
	text, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return demoReply{}, fmt.Errorf("call %s: %w", call.tool, err)
	}
	reply := demoReply{took: time.Since(begun)}
	if err := json.Unmarshal(text, &reply); err != nil {
		return demoReply{}, fmt.Errorf("call %s: the answer has no structure that can be read: %w", call.tool, err)
	}
	return reply, nil
}
