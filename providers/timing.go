package providers

import (
	"fmt"
	"time"
)

// A Timing is how long things take at a provider, as a configuration may set it. Zero
// fields take the provider's own defaults: documents disagree, and limits change.
type Timing struct {
	Deadline time.Duration `yaml:"deadline"` // of one attempt
	Lease    time.Duration `yaml:"lease"`    // longer than deadline
	Settle   time.Duration `yaml:"settle"`
	Window   time.Duration `yaml:"window"`
	Margin   time.Duration `yaml:"margin"` // taken off window; at least lease
}

// Or fills what isn't set from the provider's defaults and checks the whole.
func (t Timing) Or(d Timing) (Timing, error) {
	fill := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&t.Deadline, d.Deadline)
	fill(&t.Lease, d.Lease)
	fill(&t.Settle, d.Settle)
	fill(&t.Window, d.Window)
	fill(&t.Margin, d.Margin)
	switch {
	case t.Deadline <= 0 || t.Settle < 0 || t.Window < 0 || t.Margin < 0:
		return t, fmt.Errorf("deadline is longer than nothing; settle, window and margin are not negative")
	case t.Lease < t.Deadline+time.Second:
		return t, fmt.Errorf("lease (%s) is at least a second longer than deadline (%s)", t.Lease, t.Deadline)
	case t.Window > 0 && t.Margin > 0 && t.Margin < t.Lease:
		return t, fmt.Errorf("margin (%s) is at least as long as lease (%s): a repeat that begins inside the window must have ended before the key is forgotten", t.Margin, t.Lease)
	case t.Window > 0 && t.Margin >= t.Window:
		return t, fmt.Errorf("margin (%s) is shorter than window (%s)", t.Margin, t.Window)
	}
	return t, nil
}
