package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// The test binary is also the program: started with this variable it runs the command
// line instead of the tests, so that tests can kill and stop real processes.
const asProgram = "ONCEWARD_TEST_RUN_PROGRAM"

// beforeProgram is done before the command line runs, in the re-executed binary only.
var beforeProgram []func()

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	for _, prepare := range beforeProgram {
		prepare()
	}
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
