// Package telemetry tells what the server does: metrics for Prometheus, traces by
// OpenTelemetry, and alarms by webhook.
//
// It works by decoration. The ledger knows nothing of it: its store, its actors and its
// Execute are wrapped, and what passes through is counted, timed and handed on
// unchanged. Where nothing is wanted nothing is wrapped.
//
// No label and no attribute holds an argument's value or personal data. Labels have few
// values, and never an id or a tenant; spans name the operation by its id.
package telemetry
