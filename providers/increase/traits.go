package increase

import (
	"time"

	"github.com/onceward/onceward/providers"
)

// defaultTiming: a key's window is for ever. Settle is not documented.
var defaultTiming = providers.Timing{
	Deadline: 30 * time.Second,
	Lease:    45 * time.Second,
	Settle:   time.Minute,
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
		Reuse:     providers.ReuseRefused,
		Lookup:    providers.LookupByKey,
		LookupLag: time.Minute, // not documented
		// Increase advises to repeat the request rather than to read lists.
		ProvesAbsence: false,
		Currencies:    []string{usd},
	}, true
}
