package providers

import (
	"context"
	"time"
)

// A clock is the provider's own, as its answers tell it. It travels beside a look-up as
// net/http/httptrace does: who observes is no business of the provider's code.
type clock struct{ latest time.Time }

type clockKey struct{}

func withClock(ctx context.Context) (context.Context, *clock) {
	c := new(clock)
	return context.WithValue(ctx, clockKey{}, c), c
}

// tellClock notes the time that an answer brought.
func tellClock(ctx context.Context, at time.Time) {
	if c, ok := ctx.Value(clockKey{}).(*clock); ok && at.After(c.latest) {
		c.latest = at
	}
}
