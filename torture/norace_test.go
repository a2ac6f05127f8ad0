//go:build !race

package torture

// shortRun is how many random schedules a plain go test plays, and shortStride which of the exhaustive
// ones: every n-th.
const (
	shortRun     = 200
	shortStride  = 17
	raceDetector = false
)
