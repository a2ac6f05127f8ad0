package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/providers/sandbox"
)

// A stage is where the demo plays: one data directory, and this program to start in it.
type stage struct {
	dir       string
	temporary bool // removed at the end
	program   string
	env       []string
	log       *os.File // what the servers say
	seen      int      // effects of the scenes before
}

// openStage takes a new or empty directory, or makes a temporary one: the demo must not
// act on a ledger that is somebody's.
func openStage(dir string) (*stage, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the demo starts this program as a server, and can't find it: %w", err)
	}
	st := &stage{dir: dir, temporary: dir == "", program: program, env: withoutSettings(os.Environ())}
	if st.temporary {
		st.dir, err = os.MkdirTemp("", "onceward-demo-")
	} else {
		err = takeEmpty(dir)
	}
	if err != nil {
		return nil, err
	}
	st.log, err = os.OpenFile(filepath.Join(st.dir, "servers.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

func takeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("can't make the data directory: %w", err)
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%s is not empty; the demo needs a new or empty directory, so that it touches nobody's ledger", dir)
	}
	return nil
}

// withoutSettings drops the user's own settings: the stories need theirs. Variables for
// tests stay.
func withoutSettings(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		return strings.HasPrefix(variable, "ONCEWARD_") && !strings.HasPrefix(variable, "ONCEWARD_TEST_")
	})
}

func (st *stage) close() error {
	var err error
	if st.log != nil {
		err = st.log.Close()
	}
	if st.temporary {
		err = errors.Join(err, os.RemoveAll(st.dir))
	}
	return err
}

// commandTime bounds a command, and a call: no step of the demo takes that long.
const commandTime = 20 * time.Second

// command runs this program as a person would in a terminal.
func (st *stage) command(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, st.program, append(slices.Clone(args), "--data-dir", st.dir)...)
	cmd.Env, cmd.Stderr = st.env, st.log
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("onceward %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// operations reads what the ledger holds, oldest first.
func (st *stage) operations(ctx context.Context, flags ...string) ([]row, error) {
	out, err := st.command(ctx, append([]string{"operations", "list", "--json"}, flags...)...)
	if err != nil {
		return nil, err
	}
	var found []row
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var op row
		switch err := lines.Decode(&op); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("onceward operations list: %w", err)
		}
		found = append(found, op)
	}
}

// effects reads from the sandbox's journal what has happened since the scene began.
func (st *stage) effects(ctx context.Context) (_ []sandbox.Effect, err error) {
	box, err := sandbox.Inspect(ctx, journalPath(st.dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	var all []sandbox.Effect
	for effect, err := range box.Effects(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, effect)
	}
	return all[min(st.seen, len(all)):], nil
}

// logShown is how much of the servers' log is shown, in bytes from its end.
const logShown = 8 << 10

func (st *stage) showLog(w io.Writer) {
	text, err := os.ReadFile(st.log.Name())
	if err != nil || len(text) == 0 {
		return
	}
	fmt.Fprintf(w, "The servers' log:\n%s\n", text[max(0, len(text)-logShown):])
}
