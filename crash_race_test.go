//go:build race

package main

// raceDetector says that this binary is built with the race detector: its processes are
// several times as slow.
const raceDetector = true
