//go:build race

package torture

// shortRun is how many random schedules a plain go test plays, and shortStride which of the exhaustive
// ones: every n-th. The race detector makes each take ten times as long.
const (
	shortRun     = 40
	shortStride  = 97
	raceDetector = true
)
