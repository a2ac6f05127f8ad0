package console

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// How often log-ins may fail. Credentials are 256 random bits, so guessing is hopeless
// anyway: this bounds the work and the noise. Only failures count, and what is used up comes
// back within seconds, so nobody is ever locked out.
const (
	failuresPerAddress = 5
	addressRefill      = 10 * time.Second // one more failure is forgiven
	failuresInAll      = 100
	allRefill          = time.Second
	maxAddresses       = 4096
)

// A throttle holds back those who fail to log in: each address by itself, and, once too many
// fail at the same time, every address that has failed at all. An address that hasn't is
// let through always.
type throttle struct {
	now func() time.Time

	mu        sync.Mutex
	all       bucket
	addresses map[string]bucket
}

// A bucket counts failures, and forgets one each refill.
type bucket struct {
	failures float64
	at       time.Time
}

func (b bucket) left(now time.Time, refill time.Duration) bucket {
	b.failures = max(0, b.failures-float64(now.Sub(b.at))/float64(refill))
	b.at = now
	return b
}

// wait is how long an address has to wait before its next try; 0 lets it try.
func (t *throttle) wait(address string) time.Duration {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.addresses[network(address)].left(now, addressRefill)
	if over := own.failures - (failuresPerAddress - 1); over > 0 {
		return time.Duration(over * float64(addressRefill))
	}
	all := t.all.left(now, allRefill)
	if over := all.failures - (failuresInAll - 1); over > 0 && own.failures > 0 {
		return time.Duration(over * float64(allRefill))
	}
	return 0
}

func (t *throttle) failed(address string) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.addresses == nil {
		t.addresses = map[string]bucket{}
	}
	name := network(address)
	if _, known := t.addresses[name]; !known && len(t.addresses) >= maxAddresses {
		t.forget(now)
	}
	own := t.addresses[name].left(now, addressRefill)
	own.failures = min(own.failures+1, failuresPerAddress)
	t.addresses[name] = own
	t.all = t.all.left(now, allRefill)
	t.all.failures = min(t.all.failures+1, failuresInAll)
}

// forget makes room for many at once, so that it is rarely called: first those go that have
// waited long enough, then whoever comes first.
func (t *throttle) forget(now time.Time) {
	for name, b := range t.addresses {
		if b.left(now, addressRefill).failures == 0 {
			delete(t.addresses, name)
		}
	}
	for name := range t.addresses {
		if len(t.addresses) <= maxAddresses*3/4 {
			return
		}
		delete(t.addresses, name)
	}
}

// network is what one visitor can't easily change: an IPv4 address, or an IPv6 /64.
func network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return prefix.String()
}
