package moderntreasury

import (
	"slices"
	"time"

	"github.com/onceward/onceward/providers"
)

// defaultTiming: the window is documented ("Idempotent Requests"), settle isn't.
var defaultTiming = providers.Timing{
	Deadline: 30 * time.Second,
	Lease:    45 * time.Second,
	Settle:   time.Minute,
	Window:   24 * time.Hour,
	Margin:   time.Hour,
}

// Traits implements [providers.Provider].
func (p *Provider) Traits(action string) (t providers.Traits, ok bool) {
	if action != providers.PaymentOrderCreate {
		return providers.Traits{}, false
	}
	return providers.Traits{
		Deadline:  p.timing.Deadline,
		Lease:     p.timing.Lease,
		Settle:    p.timing.Settle,
		Key:       providers.KeyInHeader,
		Window:    p.timing.Window,
		Margin:    p.timing.Margin,
		Reuse:     providers.ReuseReplayed,
		Lookup:    providers.LookupByReference,
		LookupLag: time.Minute, // not documented
		// That external_id is unique doesn't say how soon the list shows it.
		ProvesAbsence: false,
		Currencies:    slices.Clone(p.currencies),
	}, true
}
