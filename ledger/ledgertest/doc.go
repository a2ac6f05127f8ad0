// Package ledgertest helps to test the ledger and its stores: the conformance suite that every
// Store passes, a Store that fails on purpose, and a clock.
package ledgertest
