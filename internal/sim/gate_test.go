package sim

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFleetsSideBySide(t *testing.T) {
	a, b := small(), small()
	b.Clients = 30
	reports, err := runBoth(t.Context(), a, b, nil)
	if err != nil || reports[0].Finished != 60 || reports[1].Finished != 30 {
		t.Fatalf("%d and %d finished, error %v", reports[0].Finished, reports[1].Finished, err)
	}
	alone, err := Run(t.Context(), a, nil)
	if err != nil || alone.Hash != reports[0].Hash {
		t.Errorf("a run beside another has another hash; error %v", err)
	}
	var lines []Measure
	fleetMeasures("equal", reports[0], 0.53, func(m Measure) { lines = append(lines, m) })
	if len(lines) != 4 || !lines[0].OK || lines[0].Value != 0 {
		t.Errorf("measures %v", lines)
	}
}

// The error of a pair is the one that ended it, not the cancelling of the other.
func TestFleetsSideBySideFail(t *testing.T) {
	long, bad := small(), small()
	long.Clients, bad.Seats = 5000, 0
	for _, pair := range [][2]Config{{bad, long}, {long, bad}} {
		if _, err := runBoth(t.Context(), pair[0], pair[1], nil); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := runBoth(ctx, long, long, func(time.Duration, int, int) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
