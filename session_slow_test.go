//go:build race

package main

// slowness is how much longer everything takes with the race detector: the database is
// compiled with it, too.
const slowness = 4
