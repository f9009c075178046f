package forecast

import (
	"math"
	"testing"
)

// What a link carries while somebody waits is a part of what it could; times in which nobody waits, or nobody looked,
// say nothing, nor do bytes told in a lump (D-6.3).
func TestUse(t *testing.T) {
	var u Use
	carried, now := int64(0), 0.0
	look := func(seconds int, rate int64, wanted bool) {
		for range seconds {
			now++
			carried += rate
			u.See(at(now), carried, 100, wanted)
		}
	}
	part := func(what string, want float64) {
		t.Helper()
		if got := u.Part(100); math.Abs(got-want) > 0.02 {
			t.Errorf("%s: %.3f of the link is used, want %.3f", what, got, want)
		}
	}
	part("nothing known", 1)
	look(3600, 80, true)
	part("a fifth is lost", 0.81) // a minute of trust in it
	look(3600, 0, false)
	part("nobody waits", 0.81)
	now += 3600
	u.See(at(now), carried, 100, true)
	part("nobody looked", 0.81)
	carried += 1e6
	look(1, 80, true)
	part("a lump", 0.81)
	look(7200, 1, true)
	part("next to nothing flows", 1)
	look(7200, 100, true)
	part("full again", 1)
}
