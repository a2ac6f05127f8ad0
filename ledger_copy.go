package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
	"github.com/onceward/onceward/ledger/sqlite"
)

type ledgerCommand struct {
	Copy ledgerCopyCommand `cmd:"" help:"Copy an embedded ledger into PostgreSQL, while nothing serves it. Can be run again after an interruption."`
}

type ledgerCopyCommand struct {
	logFlags
	From string `required:"" env:"ONCEWARD_COPY_FROM" placeholder:"sqlite:PATH" help:"The ledger to be copied, such as sqlite:/var/lib/onceward/ledger.db."`
	To   string `required:"" env:"ONCEWARD_COPY_TO" placeholder:"URL" help:"An empty PostgreSQL database or schema: postgres://..., as the owner of its tables."`
}

// copyPatience is how long a statement of a copy may take: a batch is larger than anything a server
// writes.
const copyPatience = time.Minute

// Run copies, compares both sides, and says how the copy is served.
func (c ledgerCopyCommand) Run(ctx context.Context, s streams) error {
	path, err := c.source()
	if err != nil {
		return err
	}
	report, err := c.copy(ctx, s, path)
	if report.Source.Digest != "" && report.Target.Digest != "" {
		err = errors.Join(printCopy(s.out, report), err)
	}
	if _, ok := errors.AsType[*ledger.CopyError](err); ok {
		return &refusedError{err}
	}
	if err != nil {
		if report.Copied > 0 {
			err = fmt.Errorf("%w\n%d operations were copied; run the same command again to go on", err, report.Copied)
		}
		return err
	}
	return printNext(s.out, filepath.Dir(path))
}

// source is the file to copy. What is wrong is not repeated: it may hold a password.
func (c ledgerCopyCommand) source() (string, error) {
	if c.From == c.To {
		return "", errors.New("--from and --to are the same ledger")
	}
	path, ok := strings.CutPrefix(c.From, "sqlite:")
	switch {
	case (dataFlags{Ledger: c.From}).shared():
		return "", errors.New("--from is an embedded ledger, sqlite: and a path; to move a ledger from one PostgreSQL to another, use pg_dump and pg_restore")
	case !ok || path == "":
		return "", errors.New("--from is sqlite: and a path, such as sqlite:/var/lib/onceward/ledger.db")
	case strings.HasPrefix(c.To, "sqlite:"):
		return "", errors.New("--to is a PostgreSQL database; an embedded ledger is moved by moving its file, with secret and seal_key beside it, while nothing serves it")
	case !(dataFlags{Ledger: c.To}).shared():
		return "", errors.New("--to is a URL like postgres://user@host:5432/database")
	}
	return path, nil
}

func (c ledgerCopyCommand) copy(ctx context.Context, s streams, path string) (report ledger.CopyReport, err error) {
	source, err := sqlite.OpenExport(ctx, path, time.Now())
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	store, err := postgres.Open(ctx, postgres.Options{URL: c.To, StatementTimeout: copyPatience, Log: c.logger(s)})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	target, err := store.Import(ctx)
	if err != nil {
		return report, err
	}
	defer target.Close(ctx)
	p := newProgress(s.err)
	defer p.end()
	return (&ledger.Copy{From: source, To: target, Progress: p.show}).Run(ctx)
}

func printCopy(w io.Writer, r ledger.CopyReport) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tSOURCE\tTARGET")
	row := func(name string, of func(ledger.Contents) any) {
		fmt.Fprintf(t, "%s\t%v\t%v\n", name, of(r.Source), of(r.Target))
	}
	row("operations", func(c ledger.Contents) any { return c.Operations })
	row("of it pruned", func(c ledger.Contents) any { return c.Tombstones })
	row("transitions", func(c ledger.Contents) any { return c.Transitions })
	row("sealed payloads", func(c ledger.Contents) any { return c.Payloads })
	row("facts", func(c ledger.Contents) any { return c.Facts })
	row("limits in use", func(c ledger.Contents) any { return c.Limits })
	row("digest", func(c ledger.Contents) any { return c.Digest })
	return t.Flush()
}

// printNext says how the copy is served with the secrets that the source was served with.
func printNext(w io.Writer, dir string) error {
	var missing bool
	var give strings.Builder
	for _, secret := range []struct{ variable, file string }{{"ONCEWARD_SECRET", "secret"}, {"ONCEWARD_SEAL_KEY", "seal_key"}} {
		path, err := filepath.Abs(filepath.Join(dir, secret.file))
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			missing = true
		}
		fmt.Fprintf(&give, "  export %s=\"hex:$(cat %s)\"\n", secret.variable, quoted(path))
	}
	fmt.Fprintln(w, "\nBoth sides are equal. Serve the copy from now on (--ledger postgres://...), and never again what it was copied from: each would do what the other one did.")
	if missing {
		_, err := fmt.Fprintf(w, "Every server needs the secrets that the old one had. They aren't beside the ledger in %s: give ONCEWARD_SECRET and ONCEWARD_SEAL_KEY what the old server got,\n"+
			"or hex: and what the files secret and seal_key in its data directory hold.\n", dir)
		return err
	}
	_, err := fmt.Fprintf(w, "Every server needs the secrets that the old one had. They are the files secret and seal_key in %s, unless that server was given others by environment:\n%s", dir, give.String())
	return err
}

// quoted is a path as a POSIX shell takes it.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// A refusedError ends with exit code 1.
type refusedError struct{ cause error }

func (e *refusedError) Error() string   { return e.cause.Error() }
func (e *refusedError) Unwrap() []error { return []error{e.cause, errRefused} }
