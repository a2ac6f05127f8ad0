package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/alecthomas/kong"
)

// runVerify runs the command as the command line does.
func runVerify(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var cli struct {
		Verify verifyCommand `cmd:""`
	}
	var out bytes.Buffer
	parser, err := kong.New(&cli, kong.BindTo(t.Context(), (*context.Context)(nil)), kong.Bind(streams{out: &out, err: &out}))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(append([]string{"verify"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	err = parsed.Run()
	return out.String(), err
}

func TestVerifyDefault(t *testing.T) {
	out, err := runVerify(t)
	t.Logf("%s\n%v", out, err)
}
