package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestSessions holds every conversation of testdata/sessions with the real server, over
// each transport and in both eras of the protocol: what is promised depends on neither.
func TestSessions(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join("testdata", "sessions", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sessions: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseSession(archive)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, kind := range s.transports {
			for _, e := range []era{sessionEra, statelessEra} {
				name := strings.TrimSuffix(filepath.Base(path), ".txtar") + "/" + kind + "/" + string(e)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s.hold(t, kind, e)
				})
			}
		}
	}
}

func (s *session) hold(t *testing.T, kind string, e era) {
	dir := dataDir(t)
	for name, text := range s.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := slices.Clone(s.flags)
	for i := range flags {
		flags[i] = strings.ReplaceAll(flags[i], "<dir>", dir)
	}
	server := startLocal(t, kind, dir, flags...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := host{client: &client{wire: server.dial(t, nil), era: e}, dir: server.dir, values: taken{}}
	if err := h.client.begin(ctx); err != nil {
		t.Fatalf("%v\n%s", err, server.log)
	}
	for _, step := range s.steps {
		if err := h.take(ctx, step); err != nil {
			t.Fatalf("%s %s: %v\nthe server's log:\n%s", step.kind, step.number, err, server.log)
		}
	}
	server.stop()
	if diff := cmp.Diff(s.effects, countEffects(t, server.dir)); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// A host takes a session's steps.
type host struct {
	client *client
	dir    string
	values taken
}

func (h host) take(ctx context.Context, s *step) error {
	switch s.kind {
	case "cli":
		return h.command(ctx, s)
	case "raw":
		return h.raw(ctx, s)
	}
	var call toolCall
	if err := json.Unmarshal([]byte(h.values.fill(s.text)), &call); err != nil {
		return err
	}
	for {
		said, err := h.client.call(ctx, s.tool, call)
		if err != nil {
			return err
		}
		err = h.check(s, said)
		if err == nil || s.kind == "call" {
			return err
		}
		if !pause(ctx) {
			return fmt.Errorf("it never came: %w", err)
		}
	}
}

// pause spaces polls. False means that the time is over.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h host) raw(ctx context.Context, s *step) error {
	message := h.values.raw(s.text, h.client.ids.Add(1), h.client.era)
	answer, err := h.client.wire.exchange(ctx, message, h.client.headers("tools/call", s.tool, nil))
	if err != nil {
		return err
	}
	said, err := parseReply(answer)
	if err != nil {
		return err
	}
	return h.check(s, said)
}

// check compares an answer; what it takes from a wrong one is forgotten.
func (h host) check(s *step, said reply) error {
	fields, err := said.fields()
	if err != nil {
		return err
	}
	values := h.values.clone()
	want, got := values.compare(s.want, fields)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("the answer (-want +got):\n%s\nall of it: %v", diff, fields)
	}
	for name, value := range values {
		h.values[name] = value
	}
	return nil
}

func (h host) command(ctx context.Context, s *step) error {
	args := append(strings.Fields(strings.ReplaceAll(h.values.fill(s.text), "<dir>", h.dir)), "--data-dir", h.dir)
	code, out, errOut := command(ctx, args...)
	if code != s.exit {
		return fmt.Errorf("%v ended with %d, want %d:\n%s%s", args, code, s.exit, out, errOut)
	}
	for _, text := range s.says {
		if !strings.Contains(out+errOut, h.values.fill(text)) {
			return fmt.Errorf("%v doesn't say %q:\n%s%s", args, text, out, errOut)
		}
	}
	return nil
}
