package sandbox

import (
	"fmt"
	"os"
	"time"
)

// Options say what kind of provider the sandbox plays. A zero Deadline, Lease or
// Window means its value in [DefaultOptions].
type Options struct {
	Deadline time.Duration // how long one attempt may take
	Lease    time.Duration // how long its worker is presumed alive; longer than Deadline
	Settle   time.Duration // how long a request may go on running after the caller gave up
	Lag      time.Duration // how long an effect stays invisible to look-ups
	Window   time.Duration // how long an idempotency key is remembered

	Lookup     bool // it can be asked what became of a key
	Idempotent bool // it does nothing a second time for a key that it remembers

	Faults []Fault // see ParseFaults

	Now  func() time.Time // the provider's clock; time.Now if nil
	Kill func()           // ends the process at once for the crash faults; SIGKILL if nil
}

// DefaultOptions is a provider that behaves: it knows keys, can be asked, and
// shows its effects at once.
func DefaultOptions() Options {
	return Options{
		Deadline:   5 * time.Second,
		Lease:      10 * time.Second,
		Window:     24 * time.Hour,
		Lookup:     true,
		Idempotent: true,
	}
}

// An OptionError says which of the sandbox's flags can't be used as it is, and what
// would be right.
type OptionError struct {
	Flag    string // as on the command line
	Problem string
}

func (e *OptionError) Error() string { return e.Flag + " " + e.Problem }

func (o Options) complete() (Options, error) {
	standard := DefaultOptions()
	o.Deadline = orElse(o.Deadline, standard.Deadline)
	o.Lease = orElse(o.Lease, standard.Lease)
	o.Window = orElse(o.Window, standard.Window)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Kill == nil {
		o.Kill = killSelf
	}
	return o, o.check()
}

func orElse(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}

func (o Options) check() error {
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"--sandbox-deadline", o.Deadline},
		{"--sandbox-lease", o.Lease},
		{"--sandbox-settle", o.Settle},
		{"--sandbox-lag", o.Lag},
		{"--sandbox-window", o.Window},
	} {
		if d.value < 0 {
			return &OptionError{d.flag, fmt.Sprintf("is %v: a duration can't be negative", d.value)}
		}
	}
	if o.Lease <= o.Deadline {
		return &OptionError{"--sandbox-lease", fmt.Sprintf(
			"is %v and --sandbox-deadline is %v: the lease must be longer than the deadline, so that an attempt is over before its worker is given up",
			o.Lease, o.Deadline)}
	}
	for _, f := range o.Faults {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

// killSelf ends the process as a power cut would: nothing is flushed, closed or
// deferred.
func killSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
}
