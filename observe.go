package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/onceward/onceward/console"
	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/telemetry"
)

// gaugesEvery is how often what is open in the ledger is counted for the metrics.
const gaugesEvery = 15 * time.Second

// observers are who hears of what the server does.
type observers struct {
	telemetry *telemetry.Telemetry
	webhook   *telemetry.Webhook // nil: alarms are posted nowhere
	alarms    *console.Alarms
}

// observe puts the observers between the ledger and what it works with.
func (o *office) observe(ctx context.Context, metrics bool) (*observers, error) {
	t, err := telemetry.New(ctx, telemetry.Options{Metrics: metrics, Version: versionText(), Actions: actions, Log: o.log})
	if err != nil {
		return nil, err
	}
	obs := &observers{telemetry: t, alarms: new(console.Alarms)}
	o.ledger.Store = t.Store(o.store)
	for action, actor := range o.ledger.Actors {
		o.ledger.Actors[action] = t.Actor(action, actor)
	}
	tell := []func(ledger.Alarm){obs.alarms.Note}
	secret, err := o.config.alarmSecret()
	if err != nil {
		return nil, err
	}
	if hook := o.config.Alarms.Webhook; hook != nil {
		if obs.webhook, err = telemetry.NewWebhook(telemetry.WebhookOptions{URL: hook.URL, Secret: []byte(secret.Reveal()), Log: o.log}); err != nil {
			return nil, err
		}
		t.Deliveries(obs.webhook)
		tell = append(tell, obs.webhook.Alarm)
	}
	o.ledger.Alarm = t.Alarm(tell...)
	return obs, nil
}

// run tells what has to be told beside the calls, until ctx ends.
func (obs *observers) run(ctx context.Context, l *ledger.Ledger) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if obs.webhook != nil {
			obs.webhook.Run(ctx)
		}
	}()
	obs.telemetry.Watch(ctx, telemetry.Source{List: l.List, Held: l.Held, Fills: func(ctx context.Context) ([]telemetry.Fill, error) {
		fills, err := l.Fills(ctx)
		told := make([]telemetry.Fill, len(fills))
		for i, f := range fills {
			told[i] = telemetry.Fill{Action: f.Action, Limit: f.Limit.String(), Used: f.Used, Max: f.Limit.Max}
		}
		return told, err
	}}, gaugesEvery)
	<-done
}

// end sends what is left.
func (obs *observers) end(ctx context.Context, log *slog.Logger) {
	if err := obs.telemetry.Shutdown(ctx); err != nil {
		log.Warn("the last traces and metrics could not be sent", "error", err)
	}
}

// calls counts and traces every call of a tool, also those that are refused.
func (obs *observers) calls(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var meta map[string]any
		if request.Params.Meta != nil {
			meta = request.Params.Meta.AdditionalFields
		}
		ctx, call := obs.telemetry.Call(ctx, request.Params.Name, meta, request.Header)
		result, err := next(ctx, request)
		if err == nil && result != nil {
			call.End(result.StructuredContent, result.IsError)
		} else {
			call.End(nil, true)
		}
		return result, err
	}
}
