package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A progress shows how far a copy is, at most once a second: in place on a terminal, in lines elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Time

	stage          ledger.CopyStage
	begun, shown   time.Time
	from           int // operations that were done when the stage was first seen
	written        bool
	latest         int
	latestIsHidden bool
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, now: time.Now}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) show(stage ledger.CopyStage, operations int) {
	now := p.now()
	if stage != p.stage {
		p.flush(now)
		p.stage, p.begun, p.shown, p.from = stage, now, now, operations
	}
	p.latest, p.latestIsHidden = operations, true
	if now.Sub(p.shown) >= time.Second {
		p.line(now)
	}
}

// flush shows the end of a stage, if it hasn't been shown.
func (p *progress) flush(now time.Time) {
	if p.latestIsHidden {
		p.line(now)
	}
	if p.terminal && p.written {
		fmt.Fprintln(p.out)
	}
	p.written = false
}

func (p *progress) line(now time.Time) {
	rate := ""
	if took := now.Sub(p.begun); took > 0 && p.latest > p.from {
		rate = fmt.Sprintf(" (%.0f/s)", float64(p.latest-p.from)/took.Seconds())
	}
	text := fmt.Sprintf("%s %d operations%s", p.stage, p.latest, rate)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
	} else {
		fmt.Fprintln(p.out, text)
	}
	p.shown, p.written, p.latestIsHidden = now, true, false
}

func (p *progress) end() { p.flush(p.now()) }
