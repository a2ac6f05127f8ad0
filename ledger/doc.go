// Package ledger keeps the promise: for one business action there is at most
// one effect, a duplicate gets the first result, and what is not known is
// looked up or decided by a person, never guessed.
package ledger
