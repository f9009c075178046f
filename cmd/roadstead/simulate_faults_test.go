package main

import (
	"strings"
	"testing"

	"github.com/roadstead/roadstead/internal/fault"
)

// The fault simulation says what it ran, and every option that cannot work is named.
func TestSimulateFaults(t *testing.T) {
	out, err := runSimulate(t, "--faults", "--seeds", "2-3", "--hours", "0.5")
	if err != nil || !strings.HasPrefix(out, "2 seeds: ") || !strings.Contains(out, "measure=sim.faults.violations value=0 limit=0 ok=true") {
		t.Errorf("error %v, printed %s", err, out)
	}
	for _, args := range [][]string{{"--seeds", "5-2"}, {"--seeds", "many"}, {"--hours", "0"}, {"--hours", "NaN"}, {"--workers", "0"}} {
		_, err := runSimulate(t, append([]string{"--faults"}, args...)...)
		if !fault.Is(err, fault.InvalidInput) || !strings.Contains(describe(err), args[0]) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}
