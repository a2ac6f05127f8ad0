package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A client reads standard output line by line and takes every line for a message: nothing
// else may ever stand there.
func TestStandardOutputCarriesTheProtocolOnly(t *testing.T) {
	t.Parallel()
	ctx := waiting(t)
	child := startChild(t, dataDir(t), nil, "--log-level", "debug", "--sandbox-faults", "refund:lose-reply,email.send:refuse")
	junk := []string{
		"", "   ", "hello", "{", `{"jsonrpc":"2.0"`, "null", "42", `"text"`, "[]", "\x00\xff\xfe", `{}`,
		`{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":"x","method":"no/such/method"}`,
		`{"jsonrpc":"2.0","id":"y","method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":"z","method":"tools/call","params":{"name":"no_such_tool"}}`,
		`{"jsonrpc":"2.0","id":"d","method":"ping","method":"tools/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
		strings.Repeat("x", 2<<20),
		`{"jsonrpc":"2.0","id":"long","method":"ping","params":{"pad":"` + strings.Repeat("y", 2<<20) + `"}}`,
	}
	for _, line := range junk {
		if _, err := child.in.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range []struct{ tool, args string }{
		{"refund", refundArgs}, {"refund", refundArgs}, {"refund", `{}`}, {"email_send", `{"to":["anna@example.com"],"subject":"s","body":"b"}`},
		{"operation_list", `{}`}, {"operation_get", `{"operation_id":"op_x"}`},
	} {
		if _, err := child.call(ctx, call.tool, with(`{"business_operation_id":"`+call.tool+`-1","workflow_id":"case-1842"}`, call.args)); err != nil {
			t.Errorf("%s: %v", call.tool, err)
		}
	}
	if code := child.end(t); code != exitDone {
		t.Errorf("ended with %d", code)
	}
	printed := child.printed()
	if len(printed) < 15 {
		t.Errorf("only %d answers", len(printed))
	}
	for _, line := range printed {
		var message struct {
			Version string `json:"jsonrpc"`
		}
		if err := json.Unmarshal(line, &message); err != nil || message.Version != "2.0" {
			t.Errorf("not a message: %.200q", line)
		}
		if bytes.ContainsAny(line, "\r\x00") {
			t.Errorf("a control character: %.200q", line)
		}
	}
	if !strings.Contains(child.log.String(), "level=DEBUG") {
		t.Errorf("the log isn't at debug:\n%s", child.log)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	ctx := waiting(t)
	used := storyDir(ctx, t)
	mail := listed(ctx, t, used, "--action", "email.send")[0]["operation_id"].(string)
	refund := listed(ctx, t, used, "--action", "refund")[0]["operation_id"].(string)
	empty := filepath.Join(t.TempDir(), "empty")
	writable := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(writable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	resolve := "operations resolve " + mail + " --attempt 1 --by anna --reason looked "
	for _, test := range []struct {
		args string
		want int
		says string // on standard error, where it is refused
	}{
		{"version", exitDone, ""},
		{"--help", exitDone, ""},
		{"serve --help", exitDone, ""},
		{"operations list", exitDone, ""},
		{"operations list --json --status unknown --review", exitDone, ""},
		{"operations show " + mail, exitDone, ""},
		{"operations reconcile", exitDone, ""},
		{"operations prune --older-than 1h", exitDone, ""},
		{"sandbox effects", exitDone, ""},

		{"operations show op_01939c1e-7b1e-7c3a-9f6e-2d5b8a4c1f00", exitRefused, "no operation"},
		{"operations approve " + mail + " --by anna", exitRefused, "waits for no approval"},
		{"operations deny " + refund + " --by anna", exitRefused, "waits for nobody"},
		{"operations allow-repeat " + refund + " --by anna", exitRefused, "its orchestrator named it"},
		{resolve + "--drop", exitRefused, "may still be running"},
		{resolve + "--retry", exitRefused, "may still be running"},
		{"operations resolve " + mail + " --happened --provider-operation-id em_1 --attempt 9 --by anna --reason looked", exitRefused, "look at it again"},
		{"operations resolve " + refund + " --drop --attempt 1 --by anna --reason looked", exitRefused, "nothing to drop"},
		{"operations list --data-dir " + empty, exitRefused, "there is no ledger"},
		{"sandbox effects --data-dir " + empty, exitRefused, "there is no sandbox journal"},

		{"", exitUsage, ""},
		{"no-such-command", exitUsage, "no-such-command"},
		{"serve --no-such-flag", exitUsage, "no-such-flag"},
		{"serve --transport carrier-pigeon", exitUsage, "transport"},
		{"serve --identity loose", exitUsage, "identity"},
		{"serve --answer-within 0s", exitUsage, "answer-within"},
		{"serve --workflow-id " + strings.Repeat("x", 129), exitUsage, "workflow_id"},
		{"serve --sandbox-faults refund:explode", exitUsage, "refund:explode"},
		{"serve --sandbox-lease 1s --sandbox-deadline 2s", exitUsage, "--sandbox-lease"},
		{"serve --tokens " + writable, exitUsage, "--tokens"},
		{"serve --transport http --addr 127.0.0.1:0 --tokens " + writable, exitUsage, "holds no token"},
		{"serve --transport http --addr 0.0.0.0:0", exitUsage, "--tokens"},
		{"serve --transport http --addr 127.0.0.1:0 --allowed-origins example.com", exitUsage, "example.com"},
		{"serve --ledger mysql://example.com/x", exitUsage, "--ledger"},
		{"operations list --status done", exitUsage, "--status"},
		{"operations list --limit -1", exitUsage, "limit"},
		{"operations show", exitUsage, "operation"},
		{resolve, exitUsage, "--happened"},
		{resolve + "--happened --drop", exitUsage, "--happened"},
		{resolve + "--happened", exitUsage, "--provider-operation-id"},
		{"operations resolve " + mail + " --drop --by anna --reason looked", exitUsage, "--attempt"},
		{"operations approve " + mail, exitUsage, "--by"},
		{"operations prune --older-than -1h", exitUsage, "--older-than"},
	} {
		args := strings.Fields(test.args)
		if needsData := strings.Contains(test.args, " ") && !strings.Contains(test.args, "--data-dir") && !strings.HasSuffix(test.args, "--help"); needsData {
			args = append(args, "--data-dir", used)
		}
		code, out, errOut := command(ctx, args...)
		if code != test.want {
			t.Errorf("%q ended with %d, want %d: %s%s", test.args, code, test.want, out, errOut)
		}
		if !strings.Contains(errOut, test.says) || (code == exitDone) != (errOut == "") {
			t.Errorf("%q says %q, want %q in it", test.args, errOut, test.says)
		}
	}
	if _, err := os.Stat(empty); err == nil {
		t.Error("looking at an empty directory made it")
	}
}
