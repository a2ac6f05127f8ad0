package console

import (
	"fmt"
	"testing"
	"time"
)

func TestThrottle(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	th := &throttle{now: func() time.Time { return now }}
	for i := range failuresPerAddress {
		if wait := th.wait("192.0.2.1:1000"); wait != 0 {
			t.Fatalf("try %d has to wait %v", i+1, wait)
		}
		th.failed("192.0.2.1:1000")
	}
	if wait := th.wait("192.0.2.1:2000"); wait != addressRefill {
		t.Errorf("after %d failures another port waits %v, want %v", failuresPerAddress, wait, addressRefill)
	}
	if wait := th.wait("192.0.2.2:1000"); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	now = now.Add(addressRefill)
	if wait := th.wait("192.0.2.1:3000"); wait != 0 {
		t.Errorf("after the wait it waits %v", wait)
	}
}

// However many fail, whoever hasn't failed is let through.
func TestThrottleLocksNobodyOut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	th := &throttle{now: func() time.Time { return now }}
	for i := range 2 * maxAddresses {
		th.failed(fmt.Sprintf("[2001:db8:%x::1]:443", i))
	}
	if len(th.addresses) > maxAddresses {
		t.Errorf("%d addresses are kept, want at most %d", len(th.addresses), maxAddresses)
	}
	if wait := th.wait("192.0.2.7:9"); wait != 0 {
		t.Errorf("an address that never failed waits %v", wait)
	}
	th.failed("192.0.2.7:9")
	if wait := th.wait("192.0.2.7:9"); wait == 0 {
		t.Error("while all fail, a second try isn't held back")
	}
	now = now.Add(5 * allRefill)
	if wait := th.wait("192.0.2.7:9"); wait != 0 {
		t.Errorf("seconds later it still waits %v", wait)
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:80":               "192.0.2.1",
		"[::ffff:192.0.2.1]:80":      "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80":  "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:443": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":          "fe80::/64",
		"@":                          "@",
	} {
		if got := network(remote); got != want {
			t.Errorf("network(%q) = %q, want %q", remote, got, want)
		}
	}
}
