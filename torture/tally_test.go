package torture

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var update = flag.Bool("update", false, "write the tables of docs/evidence.md anew, from this run")

// A tally is what was done, for the table.
type tally struct {
	schedules, calls, requests, effects, lookUps, replays atomic.Int64
	kills, pauses, cuts, jumps                            atomic.Int64
	settled, resolved, limited, alarms, violations        atomic.Int64
}

// What all tests of this run have done, by engine and store.
var (
	onSQLite, onPostgres               tally
	processesSQLite, processesPostgres tally
	columns                            = []*tally{&onSQLite, &onPostgres, &processesSQLite, &processesPostgres}
)

var columnNames = []string{"explorer, SQLite", "explorer, PostgreSQL", "processes, SQLite", "processes, PostgreSQL"}

// counts are the rows of the table. Where an engine can't see something, it has no count.
var counts = []struct {
	name string
	of   func(*tally) *atomic.Int64
	all  bool // the engine with real processes counts it too
}{
	{"schedules", func(t *tally) *atomic.Int64 { return &t.schedules }, true},
	{"calls", func(t *tally) *atomic.Int64 { return &t.calls }, true},
	{"requests at the provider", func(t *tally) *atomic.Int64 { return &t.requests }, true},
	{"effects", func(t *tally) *atomic.Int64 { return &t.effects }, true},
	{"look-ups", func(t *tally) *atomic.Int64 { return &t.lookUps }, false},
	{"replays", func(t *tally) *atomic.Int64 { return &t.replays }, true},
	{"processes killed", func(t *tally) *atomic.Int64 { return &t.kills }, true},
	{"processes stopped for long", func(t *tally) *atomic.Int64 { return &t.pauses }, true},
	{"connections to the database cut", func(t *tally) *atomic.Int64 { return &t.cuts }, true},
	{"clock jumps", func(t *tally) *atomic.Int64 { return &t.jumps }, false},
	{"unknown outcomes settled", func(t *tally) *atomic.Int64 { return &t.settled }, true},
	{"reviews a person resolved", func(t *tally) *atomic.Int64 { return &t.resolved }, false},
	{"calls a limit refused", func(t *tally) *atomic.Int64 { return &t.limited }, false},
	{"violations", func(t *tally) *atomic.Int64 { return &t.violations }, true},
}

// table is what was done, in Markdown.
func table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n| --- |%s\n", strings.Join(columnNames, " | "), strings.Repeat(" ---: |", len(columns)))
	for _, row := range counts {
		fmt.Fprintf(&b, "| %s |", row.name)
		for i, t := range columns {
			if !row.all && i >= 2 {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %d |", row.of(t).Load())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// caught are the mutants that were found.
var caught struct {
	sync.Mutex
	rows []string
}

func noteMutant(name, found string, schedules string, after time.Duration) {
	caught.Lock()
	defer caught.Unlock()
	caught.rows = append(caught.rows, fmt.Sprintf("| %s | %s | %.1f s | %s |\n", name, schedules, after.Seconds(), found))
}

// writeEvidence writes this run's tables into the page. A table that the run has nothing for stays as it is.
func writeEvidence(took time.Duration) error {
	path := filepath.Join("..", "docs", "evidence.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(columns, func(t *tally) bool { return t.schedules.Load() == 0 }) {
		made := fmt.Sprintf("Made by `go test ./torture -count=1 -timeout 60m -torture.schedules=%d -update`, seeds from %d, in %v on a machine with %d processors.\n\n",
			*schedules, *from, took.Round(time.Second), runtime.NumCPU())
		if page, err = replace(page, "figures", made+table()); err != nil {
			return err
		}
	}
	caught.Lock()
	defer caught.Unlock()
	if len(caught.rows) == len(mutants) {
		made := "Made by the same run, or by `go test ./torture -count=1 -run TestMutants -update`.\n\n| taken out of the source | schedules until found | time | what was seen |\n| --- | ---: | ---: | --- |\n"
		if page, err = replace(page, "mutants", made+strings.Join(caught.rows, "")); err != nil {
			return err
		}
	}
	return os.WriteFile(path, page, 0o644)
}

// replace puts text between the marks of a generated part.
func replace(page []byte, part, text string) ([]byte, error) {
	begins, ends := []byte("<!-- "+part+": begin -->\n"), []byte("<!-- "+part+": end -->\n")
	before, rest, ok := bytes.Cut(page, begins)
	_, after, also := bytes.Cut(rest, ends)
	if !ok || !also {
		return nil, fmt.Errorf("docs/evidence.md has lost the marks of its %s", part)
	}
	return slices.Concat(before, begins, []byte(text), ends, after), nil
}
