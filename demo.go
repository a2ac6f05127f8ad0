package main

import (
	"context"
	"strings"
)

type demoCommand struct {
	// The variable isn't ONCEWARD_DATA_DIR: that one names the ledger of a server that works.
	DataDir string `env:"ONCEWARD_DEMO_DATA_DIR" placeholder:"DIR" help:"Keep what the demo leaves behind in this new or empty directory. Default: a temporary one, removed at the end."`
}

// Run tells the stories and counts: it is a demonstration and a check.
func (c demoCommand) Run(ctx context.Context, s streams) error {
	return tell(ctx, s, c.DataDir, scenes())
}

// tell plays the scenes one after the other on one ledger, and compares what they came to
// with what was promised. dir is empty for a temporary directory.
func tell(ctx context.Context, s streams, dir string, story []scene) (err error) {
	st, err := openStage(dir)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := st.close(); err == nil {
			err = closeErr
		}
	}()
	out := &narrator{w: s.out, colour: colourful(s.out)}
	out.opening(len(story))
	var tallies []tally
	for i, sc := range story {
		t, err := st.play(ctx, out, i+1, sc)
		if err != nil {
			return st.failed(ctx, s, sc.title+": "+err.Error())
		}
		tallies = append(tallies, t)
	}
	operations, err := st.operations(ctx)
	if err != nil {
		return st.failed(ctx, s, err.Error())
	}
	out.table(tallies, len(operations))
	if problems := checkDemo(tallies, operations); len(problems) > 0 {
		return st.failed(ctx, s, problems...)
	}
	out.closing(dir)
	return nil
}

// failed is the end of a demo that did not go as promised. The servers' log says why, and
// may be gone with the directory, so it is shown.
func (st *stage) failed(ctx context.Context, s streams, problems ...string) error {
	if ctx.Err() != nil {
		return &demoError{text: "the demo was interrupted"}
	}
	st.showLog(s.err)
	return &demoError{"the demo did not go as promised:\n  " + strings.Join(problems, "\n  ")}
}

// A demoError is why a demo did not end as it should.
type demoError struct{ text string }

func (e *demoError) Error() string { return e.text }

func (e *demoError) Unwrap() error { return errRefused }
