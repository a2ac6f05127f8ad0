package providers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/providers"
)

// TestTiming: what can't be kept is refused with the numbers, before anything is sent.
func TestTiming(t *testing.T) {
	t.Parallel()
	defaults := providers.Timing{Deadline: 30 * time.Second, Lease: 45 * time.Second, Window: 24 * time.Hour, Margin: time.Hour}
	for _, tc := range []struct {
		set  providers.Timing
		want string // in the error; none if empty
	}{
		{providers.Timing{}, ""},
		{providers.Timing{Margin: 45 * time.Second}, ""},
		{providers.Timing{Lease: 30 * time.Second}, "at least a second longer"},
		{providers.Timing{Margin: 44 * time.Second}, "margin (44s) is at least as long as lease (45s)"},
		{providers.Timing{Lease: 2 * time.Hour}, "margin (1h0m0s) is at least as long as lease (2h0m0s)"},
		{providers.Timing{Window: time.Hour}, "shorter than window"},
		{providers.Timing{Settle: -time.Second}, "not negative"},
	} {
		_, err := tc.set.Or(defaults)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want an error with %q", tc.set, err, tc.want)
		}
	}
}
