package main

import (
	"testing"
	"time"
)

// TestKills kills thirty times: no Attempt starts twice, no two of one Run overlap, what may not be retried starts once,
// everything ends with a reason, and every hold is given back (R-2.1, R-4.2, R-6.1, R-6.2, R-6.3, R-6.7, R01, R14, R15,
// R21).
func TestKills(t *testing.T) {
	v, err := chaos(t.Context(), plan{seed: 20, kills: 30, pause: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range v.measures() {
		if !m.ok {
			t.Error(m)
		}
	}
}
