//go:build !race

package compare_test

const standardRuns = checkedRuns
