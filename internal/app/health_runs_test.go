package app

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/dispatcher"
)

// Readiness warns of pools that nobody decides in, of Runs without a runner, of leases overdue by twice (R01), and of
// holds that no living Attempt has, and stays ready.
func TestReadinessOfRuns(t *testing.T) {
	well := dispatcher.Figures{Pool: "default", Owned: true, Loaded: true, Counts: dispatch.Counts{Online: 1}, OldestAge: time.Second}
	deserted, foreign, late := well, well, well
	deserted.Counts.Online, deserted.Counts.Queued = 0, 3
	foreign.Owned = false
	late.Overdue = 2
	for _, c := range []struct {
		pools  []dispatcher.Figures
		census attempts.Census
		wrong  string
	}{
		{[]dispatcher.Figures{well}, attempts.Census{Drift: map[string]int64{"money": 0}}, ""},
		{nil, attempts.Census{}, ""},
		{[]dispatcher.Figures{well, foreign}, attempts.Census{}, "pools"},
		{[]dispatcher.Figures{well, deserted}, attempts.Census{}, "runners"},
		{[]dispatcher.Figures{late}, attempts.Census{}, "leases"},
		{[]dispatcher.Figures{well}, attempts.Census{Overdue: 1}, "leases"},
		{[]dispatcher.Figures{well}, attempts.Census{Drift: map[string]int64{"missing": 1}}, "holds"},
	} {
		for _, check := range runsChecks(c.pools, c.census) {
			if check.OK != (check.Name != c.wrong) || check.Detail == "" {
				t.Errorf("%+v %+v: %+v", c.pools, c.census, check)
			}
		}
	}
}
