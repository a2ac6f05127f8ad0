//go:build race

package compare_test

// standardRuns are few: the race detector makes SQLite some ten times as slow. The figures are
// checked without it.
const standardRuns = 4
