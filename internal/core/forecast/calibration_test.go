package forecast

import (
	"math/rand/v2"
	"testing"
)

// Of a steady kind of starts the stated part falls under each quantile, and a new kind is learnt within some hundred
// (D-6.3).
func TestCalibrationCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c Calibration
	for _, kind := range []func() float64{r.NormFloat64, func() float64 { return 3 + r.ExpFloat64() }} {
		before, after, n := 0, 0, 0
		for i := range 3000 {
			s, off := c.Spread(0, false), kind()
			if i > 300 {
				n++
				if off <= s.P90 {
					after++
				}
				if off < s.P10 {
					before++
				}
			}
			c.Learn(off)
			c.Before(off < s.P10)
			c.After(off > s.P90)
		}
		if p := float64(after) / float64(n); p < 0.89 || p > 0.91 {
			t.Errorf("%.3f under p90", p)
		}
		if p := float64(before) / float64(n); p < 0.09 || p > 0.11 {
			t.Errorf("%.3f under p10", p)
		}
	}
}

// Starts that are known of only long after they were announced, and that drift meanwhile, mislead the last ones seen;
// that they are held to account makes up for it (D-6.3).
func TestCalibrationOfLateNews(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	type told struct{ off, p10, p90 float64 }
	var c Calibration
	var queue []told
	late, n := 0, 0
	for i := range 20000 {
		drift := float64(i%2000) / 400 // grows, and falls back
		s := c.Spread(0, false)
		queue = append(queue, told{drift + r.NormFloat64(), s.P10, s.P90})
		if len(queue) < 200 {
			continue
		}
		q := queue[0]
		queue = queue[1:]
		c.Learn(q.off)
		c.Before(q.off < q.p10)
		c.After(q.off > q.p90)
		if i > 4000 {
			n++
			if q.off > q.p90 {
				late++
			}
		}
	}
	if p := float64(late) / float64(n); p < 0.08 || p > 0.12 {
		t.Errorf("%.3f after p90", p)
	}
}

// With little seen the theory stands; the interval is never narrower than it, and widens when starts miss it.
func TestCalibrationWidens(t *testing.T) {
	var c Calibration
	if c.Spread(0, false) != theory(0, false) {
		t.Error("something is known of nothing")
	}
	if s := c.Spread(1, false); s.P90 <= theory(0, false).P90 || s.P10 >= theory(0, false).P10 {
		t.Error("those who may still come make nothing less sure")
	}
	for range 100 {
		c.Learn(0.01)
	}
	if s := c.Spread(0, false); s.Early != theory(0, false).Early || s.Late != theory(0, false).Late {
		t.Errorf("the interval narrowed to %+v", s)
	}
	if s := c.Spread(0, true); s.P10 != theory(0, false).P10 || s.P90 != theory(0, false).P90 {
		t.Errorf("a queue of which nothing was seen is told %+v", s)
	}
	for range 100 {
		c.Learn(1.5)
	}
	if s := c.Spread(0, false); s.Late < 1.4 {
		t.Errorf("the interval did not widen: %+v", s)
	}
	d := c.Copy()
	d.Learn(9)
	if len(d.sorted) == len(c.sorted) {
		t.Error("a copy shares what it learns")
	}
}

// Misses without end move p90 beyond all that was seen, but not to where it says nothing; then it comes back.
func TestCalibrationIsBounded(t *testing.T) {
	var c Calibration
	for i := range remembered {
		c.Learn(float64(i) / remembered)
	}
	for range 10000 {
		c.After(true)
	}
	if s := c.Spread(0, false); s.P90 < 1 || s.P90 > 2 || s.Late < s.P90 {
		t.Errorf("after misses only: %+v", s)
	}
	for range 10000 {
		c.After(false)
	}
	if s := c.Spread(0, false); s.P90 > 0.6 || s.P90 < s.P50 {
		t.Errorf("after hits only: %+v", s)
	}
}
