// Package torture attacks the promise that an action happens at most once, and holds no code
// of the program. Two engines do it, both in its tests.
//
// The explorer runs real ledgers on a real store against a model of the outside world, inside
// one process: thousands of schedules a minute. Servers die before or after any durable write,
// are stopped for longer than a lease, lose the database, have wrong clocks, and the provider
// does whatever a provider may.
//
// The drill runs the built program in several processes, and kills, stops and cuts off real ones.
//
// After each schedule the outside world's own journal is compared with the ledger. The explorer
// has to find five bugs that are put into the program's source for it; else it would prove
// nothing.
package torture
