package tools

import "context"

// A Caller is who is calling: the tenant whose token came with the request. The
// zero Caller has no tenant (stdio, or a server without tokens, or the tenant
// that is heir to operations made before there were tenants).
type Caller struct {
	Tenant string
}

type callerKey struct{}

// WithCaller returns a context that says who is calling.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller that [WithCaller] put into ctx.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

type turnedAwayKey struct{}

// TurnAway marks a call that came too late: its client has gone or the server
// is ending. A guarded tool then answers shutting_down and does nothing.
func TurnAway(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnedAwayKey{}, true)
}

// TurnedAway reports whether [TurnAway] marked ctx.
func TurnedAway(ctx context.Context) bool {
	away, _ := ctx.Value(turnedAwayKey{}).(bool)
	return away
}
