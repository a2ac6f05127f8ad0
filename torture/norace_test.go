//go:build !race

package torture

// shortRun is how many random schedules a plain go test plays, and shortStride which of the exhaustive
// ones: every n-th.
const (
	shortRun     = 150
	shortStride  = 29
	raceDetector = false
)
