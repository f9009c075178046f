package storm

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"
)

// A storm breaks no rule (D-13.1). STORM_SEED and STORM_HOURS look at one seed.
func TestStorm(t *testing.T) {
	first, last, length := uint64(0), uint64(7), 2*time.Hour
	if s := os.Getenv("STORM_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
		last = first
	}
	if s := os.Getenv("STORM_HOURS"); s != "" {
		h, _ := strconv.Atoi(s)
		length = time.Duration(h) * time.Hour
	}
	if s := os.Getenv("STORM_LAST"); s != "" {
		last, _ = strconv.ParseUint(s, 10, 64)
	}
	var all Stats
	for seed := first; seed <= last; seed++ {
		begun := time.Now()
		stats, err := Run(t.Context(), seed, length)
		if v := (*Violation)(nil); errors.As(err, &v) {
			t.Errorf("%v\n%s", v, v.Story)
		} else if err != nil {
			t.Fatal(err)
		}
		all.Add(stats)
		t.Logf("seed %d: %s in %s, %+v", seed, stats.Time, time.Since(begun).Round(time.Millisecond), stats)
	}
	if all.Waiting < all.Time/4 {
		t.Errorf("clients waited in %s of %s", all.Waiting, all.Time)
	}
}
